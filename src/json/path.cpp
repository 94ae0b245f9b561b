#include "json/path.hpp"

#include <charconv>
#include <optional>
#include <system_error>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include "core/text/utf8.hpp"
#include "json/json.hpp"

namespace sluice {
namespace {

constexpr std::size_t kMaxQuoted = 40;  // bytes

bool is_plain_name(std::string_view name) {
  constexpr std::string_view kFirst = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_$";
  constexpr std::string_view kRest =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_$0123456789-";
  return !name.empty() && name.size() <= kMaxQuoted && kFirst.contains(name.front()) &&
         name.find_first_not_of(kRest) == std::string_view::npos;
}

std::optional<std::string> unescape_token(std::string_view token) {
  std::string out;
  for (std::size_t i = 0; i < token.size(); ++i) {
    if (token[i] != '~') {
      out += token[i];
      continue;
    }
    if (++i == token.size() || (token[i] != '0' && token[i] != '1')) return std::nullopt;
    out += token[i] == '0' ? '~' : '/';
  }
  return out;
}

const json::value* find_member(const json::value& value, const std::string& token) {
  if (const json::object* const object = value.if_object()) return object->if_contains(token);
  const json::array* const array = value.if_array();
  if (array == nullptr || token.empty() || (token.size() > 1 && token.front() == '0')) {
    return nullptr;
  }
  std::size_t index = 0;
  const char* const end = token.data() + token.size();
  const auto [stop, error] = std::from_chars(token.data(), end, index);
  return error == std::errc() && stop == end ? array->if_contains(index) : nullptr;
}

}  // namespace

void append_json_path(std::string& path, std::size_t index) {
  path.append("[").append(std::to_string(index)).append("]");
}

void append_json_path(std::string& path, std::string_view name) {
  if (is_plain_name(name)) {
    if (!path.empty()) path += '.';
    path += name;
  } else {
    path.append("[").append(describe_text(name)).append("]");
  }
}

const json::value* find_pointer_token(const json::value& value, std::string_view token) {
  const std::optional<std::string> name = unescape_token(token);
  return name ? find_member(value, *name) : nullptr;
}

std::string describe_text(std::string_view text) {
  std::string out;
  if (text.size() <= kMaxQuoted) {
    append_json_string(out, text);
    return out;
  }
  const std::string_view head = text.substr(0, kMaxQuoted);
  append_json_string(out, std::string(head.substr(0, complete_utf8_prefix(head))) + "...");
  return out;
}

}  // namespace sluice
