#include "server/api/entry_checks.hpp"

#include <algorithm>
#include <cstddef>
#include <initializer_list>
#include <set>
#include <stdexcept>

#include "core/log/log.hpp"
#include "core/text/text.hpp"
#include "core/text/utf8.hpp"
#include "json_schema/formats/format.hpp"

namespace sluice {
namespace {

constexpr std::size_t kLongestToolName = 128;
constexpr std::string_view kToolNameCharacters =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-.";

/// Throws with "KIND 'NAME': " and the rest.
[[noreturn]] void refuse(std::string_view kind, std::string_view name,
                         std::initializer_list<std::string_view> why) {
  std::string text(kind);
  text.append(" '").append(name).append("': ");
  for (const std::string_view part : why) text.append(part);
  throw std::invalid_argument(text);
}

bool has_control(std::string_view text) {
  while (!text.empty()) {
    const std::size_t length = first_utf8_part(text).length;
    if (is_control(code_point_of(text.substr(0, length)))) return true;
    text.remove_prefix(length);
  }
  return false;
}

}  // namespace

void check_name(std::string_view kind, std::string_view name) {
  if (name.empty()) refuse(kind, name, {"give it a name"});
  if (!is_valid_utf8(name)) refuse(kind, "", {"its name must be UTF-8"});
  if (has_control(name)) refuse(kind, "", {"its name must not have control characters"});
}

void check_tool_name(std::string_view name) {
  check_name("tool", name);
  if (name.size() <= kLongestToolName &&
      name.find_first_not_of(kToolNameCharacters) == std::string_view::npos) {
    return;
  }
  log_warning(
      "clients may refuse the name of a tool: use at most 128 of A-Z, a-z, 0-9, '_', '-' and '.'",
      {{"tool", name}});
}

void check_header_name(std::string_view name) {
  if (!name.empty() && std::ranges::all_of(name, is_token_char)) return;
  refuse("header field", is_valid_utf8(name) ? name : "", {"this is not a name (RFC 9110)"});
}

void check_uri(std::string_view uri) {
  if (is_valid_utf8(uri) && has_json_format(uri, JsonFormat::uri)) return;
  refuse("resource", is_valid_utf8(uri) ? uri : "",
         {"this is not a URI (RFC 3986): begin with a scheme, as in note://about, and "
          "percent-encode spaces and the like"});
}

UriTemplate checked_template(std::string_view text) {
  Result<UriTemplate> parsed = UriTemplate::parse(text);
  if (!parsed) throw std::invalid_argument(parsed.error().message);
  // An expression at the beginning may give the scheme.
  const std::string_view literal = text.substr(0, text.find('{'));
  const std::string begins = std::string(literal) + (literal.contains(':') ? "" : "x:");
  if (!is_valid_utf8(text) || !has_json_format(text, JsonFormat::uri_template) ||
      (!literal.empty() && !has_json_format(begins, JsonFormat::uri))) {
    refuse("resource template", is_valid_utf8(text) ? text : "",
           {"it does not give URIs (RFC 3986): begin with a scheme, as in note://{name}, and "
            "percent-encode spaces and the like"});
  }
  return *std::move(parsed);
}

std::vector<PromptArgument> text_members(std::string_view kind, std::string_view name,
                                         const detail::Type& type) {
  const json::value schema = detail::schema_of(type);
  const json::object& root = schema.get_object();
  const auto text_at = [](const json::object& object, std::string_view key) {
    const json::value* const text = object.if_contains(key);
    return text == nullptr ? std::string() : std::string(text->as_string());
  };
  const json::value* const required = root.if_contains("required");
  std::vector<PromptArgument> out;
  for (const auto& [key, property] : root.at("properties").as_object()) {
    const json::object& said = property.as_object();
    const json::value* const is = said.if_contains("type");
    if (is == nullptr || *is != "string") {
      refuse(kind, name,
             {"the member ", key,
              " of its struct must be a text, because clients send nothing else here"});
    }
    out.push_back({.name = std::string(key),
                   .description = text_at(said, "description"),
                   .required = required != nullptr &&
                               std::ranges::find(required->as_array(), json::value(key)) !=
                                   required->as_array().end(),
                   .title = text_at(said, "title")});
  }
  return out;
}

void check_variables(std::string_view text, const UriTemplate& uri, const detail::Type& type) {
  static constexpr std::string_view kKind = "resource template";
  const std::vector<PromptArgument> members = text_members(kKind, text, type);
  for (const std::string_view variable : uri.variables()) {
    if (std::ranges::find(members, variable, &PromptArgument::name) != members.end()) continue;
    refuse(kKind, text,
           {"the struct of its handler has no member for the variable ", variable,
            ": add one, or take sluice::Variables"});
  }
  for (const PromptArgument& member : members) {
    if (!member.required || uri.has_variable(member.name)) continue;
    refuse(kKind, text,
           {"it has no variable for the member ", member.name,
            " of its handler's struct, so that every read would fail"});
  }
}

void check_arguments(std::string_view prompt, const std::vector<PromptArgument>& arguments) {
  std::set<std::string_view> names;
  for (const PromptArgument& argument : arguments) {
    check_name("argument", argument.name);
    if (names.insert(argument.name).second) continue;
    refuse("prompt", prompt, {"it has two arguments ", argument.name});
  }
}

}  // namespace sluice
