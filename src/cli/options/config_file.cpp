#include "cli/options/config_file.hpp"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>
#include <sstream>
#include <system_error>
#include <utility>

// toml++ 3.3 assumes that a table header starts with a key, which "[=" does not. Without its
// assumptions, its parser refuses such a header with an error that has a line number.
// clang-format off
#include <toml++/impl/preprocessor.h>
#undef TOML_ASSERT_ASSUME
#define TOML_ASSERT_ASSUME(expr) static_assert(true)
#include <toml++/toml.h>
// clang-format on

#include "cli/options/exit_code.hpp"
#include "cli/options/toml_syntax.hpp"

namespace sluice {
namespace {

std::string origin_of(std::string_view name, const toml::source_region& source) {
  return std::string(name) + ":" + std::to_string(source.begin.line);
}

std::optional<std::string> scalar_text(const toml::node& node) {
  if (const auto* text = node.as_string()) return text->get();
  if (const auto* number = node.as_integer()) return std::to_string(number->get());
  if (const auto* flag = node.as_boolean()) return flag->get() ? "true" : "false";
  if (const auto* number = node.as_floating_point()) return std::to_string(number->get());
  return std::nullopt;
}

Result<FileValue> to_value(const toml::node& node, std::string_view name, const std::string& key) {
  FileValue value;
  value.origin = origin_of(name, node.source());
  const auto unsupported = [&] {
    return fail(kExitUsage,
                value.origin + ": " + key + ": give a string, a number or an array of strings");
  };
  if (const auto* array = node.as_array()) {
    value.is_list = true;
    for (const toml::node& element : *array) {
      auto text = scalar_text(element);
      if (!text) return unsupported();
      value.values.push_back(*std::move(text));
    }
    return value;
  }
  auto text = scalar_text(node);
  if (!text) return unsupported();
  value.values.push_back(*std::move(text));
  return value;
}

Result<void> add_table(FileValues& out, const toml::table& table, std::string_view name,
                       const std::string& prefix) {
  for (const auto& [toml_key, node] : table) {
    const std::string key = prefix + std::string(toml_key.str());
    if (const auto* inner = node.as_table(); inner != nullptr && prefix.empty()) {
      if (auto added = add_table(out, *inner, name, key + "."); !added) return added;
      continue;
    }
    auto value = to_value(node, name, key);
    if (!value) return std::unexpected(std::move(value.error()));
    out.emplace(key, *std::move(value));
  }
  return {};
}

/// Parses `text` and returns what `use` makes of the table, a Result.
template <class Use>
auto with_table(std::string_view text, std::string_view name, Use use)
    -> decltype(use(std::declval<const toml::table&>())) {
  // Each dot in a key makes a nested table, and toml++ destroys nested tables recursively.
  constexpr std::ptrdiff_t kMaxDots = 10'000;
  if (std::ranges::count(text, '.') > kMaxDots) {
    return fail(kExitUsage,
                std::string(name) + ": contains more than " + std::to_string(kMaxDots) + " dots");
  }
  // toml++ 3.3 has no defined behaviour for most such characters.
  if (const auto line = line_of_foreign_character(text)) {
    return fail(kExitUsage, std::string(name) + ":" + std::to_string(*line) +
                                ": a key that is not in quotes has only A-Z, a-z, 0-9, _ and -; "
                                "only strings and comments may have characters beyond ASCII");
  }
  try {
    return use(toml::parse(text, name));
  } catch (const toml::parse_error& error) {
    return fail(kExitUsage,
                origin_of(name, error.source()) + ": " + std::string(error.description()));
  }
}

/// Nothing if `node` is nested in more than `levels` levels.
std::optional<json::value> json_of(const toml::node& node, std::size_t levels) {
  if (levels == 0) return std::nullopt;
  if (const auto* table = node.as_table()) {
    json::object out;
    for (const auto& [key, inner] : *table) {
      auto value = json_of(inner, levels - 1);
      if (!value) return std::nullopt;
      out.insert_or_assign(key.str(), *std::move(value));
    }
    return out;
  }
  if (const auto* array = node.as_array()) {
    json::array out;
    for (const toml::node& inner : *array) {
      auto value = json_of(inner, levels - 1);
      if (!value) return std::nullopt;
      out.push_back(*std::move(value));
    }
    return out;
  }
  if (const auto* text = node.as_string()) return json::value(text->get());
  if (const auto* number = node.as_integer()) return json::value(number->get());
  if (const auto* number = node.as_floating_point()) return json::value(number->get());
  if (const auto* flag = node.as_boolean()) return json::value(flag->get());
  std::ostringstream text;  // a date or a time
  node.visit([&](const auto& value) {
    if constexpr (toml::is_date<decltype(value)> || toml::is_time<decltype(value)> ||
                  toml::is_date_time<decltype(value)>) {
      text << value.get();
    }
  });
  return json::value(text.str());
}

}  // namespace

Result<FileValues> parse_config_text(std::string_view text, std::string_view name) {
  return with_table(text, name, [&](const toml::table& table) -> Result<FileValues> {
    FileValues out;
    if (auto added = add_table(out, table, name, ""); !added) {
      return std::unexpected(std::move(added.error()));
    }
    return out;
  });
}

Result<json::value> parse_toml_as_json(std::string_view text, std::string_view name) {
  return with_table(text, name, [&](const toml::table& table) -> Result<json::value> {
    auto value = json_of(table, kMaxJsonDepth);
    if (value) return *std::move(value);
    return fail(kExitUsage, std::string(name) + ": is nested in more than " +
                                std::to_string(kMaxJsonDepth) + " levels");
  });
}

Result<FileValues> read_config_file(const std::string& path) {
  constexpr std::size_t kMaxFile = std::size_t{1} << 20U;
  auto text = read_small_file(path, kMaxFile);
  if (!text) return std::unexpected(std::move(text.error()));
  return parse_config_text(*text, path);
}

Result<std::string> read_small_file(const std::string& path, std::size_t limit) {
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  const std::unique_ptr<std::FILE, Close> file(std::fopen(path.c_str(), "re"));
  if (!file) return fail(kExitUsage, path + ": " + std::strerror(errno));
  std::string text(limit + 1, '\0');
  text.resize(std::fread(text.data(), 1, text.size(), file.get()));
  if (std::ferror(file.get()) != 0) return fail(kExitUsage, path + ": " + std::strerror(errno));
  if (text.size() > limit) {
    return fail(kExitUsage, path + ": larger than " + std::to_string(limit) + " bytes");
  }
  return text;
}

Result<void> check_regular_file(const std::string& path) {
  std::error_code ignored;
  const auto status = std::filesystem::status(path, ignored);
  if (!std::filesystem::exists(status) || std::filesystem::is_regular_file(status)) return {};
  return fail(kExitUsage, path + ": not a regular file; a running server reads no other");
}

}  // namespace sluice
