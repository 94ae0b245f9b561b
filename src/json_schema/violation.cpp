#include "json_schema/violation.hpp"

#include <algorithm>
#include <array>
#include <ranges>
#include <utility>

#include <boost/json/string.hpp>

#include "json/path.hpp"
#include "json_schema/program.hpp"
#include "json_schema/value.hpp"

namespace sluice {
namespace {

constexpr auto kTypeNames = std::to_array<std::pair<std::uint8_t, std::string_view>>({
    {kTypeString, "string"},
    {kTypeNumber, "number"},
    {kTypeInteger, "integer"},
    {kTypeBoolean, "boolean"},
    {kTypeArray, "array"},
    {kTypeObject, "object"},
    {kTypeNull, "null"},
});

}  // namespace

std::string JsonSchemaViolation::describe(std::string_view root) const {
  std::string out(root);
  if (!path.empty() && !path.starts_with('[') && !root.empty()) out += '.';
  out += path;
  if (!out.empty()) out += ": ";
  return out + message;
}

std::size_t ViolationDraft::closeness() const {
  // Alternatives usually differ in the type of the value or in a member such as `kind`. An
  // alternative that fails there was not the one intended. One that fails elsewhere or further
  // inside probably was.
  if (names_value && path.size() <= 1) return 0;
  if (expected_types != 0 && path.empty()) return 0;
  return 1 + path.size();
}

JsonSchemaViolation ViolationDraft::finish() && {
  JsonSchemaViolation out;
  for (const auto& step : std::views::reverse(path)) {
    std::visit([&out](const auto& part) { append_json_path(out.path, part); }, step);
  }
  out.message = std::move(message);
  out.is_unfinished = is_unfinished;
  return out;
}

void append_mismatch(std::string& list, std::string_view reason) {
  constexpr std::size_t kMaxListed = 400;
  constexpr std::string_view kMore = "...";
  const bool fits = list.size() + reason.size() <= kMaxListed;
  if (!fits && list.ends_with(kMore)) return;
  if (!list.empty()) list += "; ";
  list += fits ? reason : kMore;
}

std::string describe_mismatches(std::size_t count, std::string_view list) {
  return "matches none of the " + std::to_string(count) + " alternatives: " + std::string(list);
}

std::string describe_types(std::uint8_t types) {
  std::vector<std::string_view> names;
  for (const auto& [bits, name] : kTypeNames) {
    if ((types & bits) != bits) continue;
    types = static_cast<std::uint8_t>(types & ~bits);
    names.push_back(name);
  }
  std::string out;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (i != 0) out += i + 1 == names.size() ? " or " : ", ";
    out += names[i];
  }
  return out;
}

std::string_view type_name(const json::value& value) {
  switch (value.kind()) {
    case json::kind::null:
      return "null";
    case json::kind::bool_:
      return "boolean";
    case json::kind::string:
      return "string";
    case json::kind::array:
      return "array";
    case json::kind::object:
      return "object";
    case json::kind::int64:
    case json::kind::uint64:
    case json::kind::double_:
      return is_integer(value) ? "integer" : "number";
  }
  return "";
}

std::string describe_value(const json::value& value) {
  if (value.is_string()) return describe_text(value.get_string());
  if (value.is_structured()) return std::string(type_name(value));
  return to_json(value);
}

}  // namespace sluice
