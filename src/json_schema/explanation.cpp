#include "json_schema/explanation.hpp"

#include <algorithm>
#include <utility>

#include "json/path.hpp"

namespace sluice {

std::string counted(std::uint64_t count, std::string_view one, std::string_view many) {
  return std::to_string(count).append(" ").append(count == 1 ? one : many);
}

std::string explain_types(std::uint8_t types, const json::value& value) {
  return "expected " + describe_types(types) + ", got " + std::string(type_name(value));
}

std::string explain_number(std::string_view relation, const json::value& bound,
                           const json::value& value) {
  return std::string("expected ").append(relation) + to_json(bound) + ", got " +
         describe_value(value);
}

std::string explain_count(std::uint64_t count, std::uint64_t low, std::uint64_t high,
                          std::string_view one, std::string_view many) {
  const bool few = count < low;
  return (few ? "expected at least " : "expected at most ") + counted(few ? low : high, one, many) +
         ", got " + std::to_string(count);
}

std::string explain_missing(const ObjectRules& rules, const json::object& object) {
  const auto missing = std::ranges::find_if(rules.properties, [&](const PropertyRule& rule) {
    return rule.required && !object.contains(rule.name);
  });
  return "missing required property " + describe_text(missing->name);
}

std::string explain_allowed(std::span<const json::value> allowed, const json::value& value) {
  constexpr std::size_t kMaxListed = 10;
  std::string message = allowed.size() == 1 ? "expected " : "expected one of ";
  for (std::size_t i = 0; i < std::min(allowed.size(), kMaxListed); ++i) {
    if (i != 0) message += ", ";
    message += allowed[i].is_structured() ? "a certain " : "";
    message += describe_value(allowed[i]);
  }
  if (allowed.size() > kMaxListed) message += ", ...";
  return message.append(", got ").append(describe_value(value));
}

void ClosestAlternative::add(ViolationDraft&& other) {
  if (other.expected_types == 0 || !other.path.empty()) only_types_ = false;
  types_ |= other.expected_types;
  append_mismatch(mismatches_, ViolationDraft(other).finish().describe(""));
  const std::size_t other_closeness = other.closeness();
  if (rivals_ != 0 && other_closeness < closeness_) return;
  rivals_ = rivals_ != 0 && other_closeness == closeness_ ? rivals_ + 1 : 1;
  closeness_ = other_closeness;
  violation_ = std::move(other);
}

void ClosestAlternative::explain(ViolationDraft& violation, std::size_t count,
                                 const json::value& value) {
  if (count == 1 || (closeness_ > 0 && rivals_ == 1)) {
    violation = std::move(violation_);
  } else if (only_types_) {
    violation.expected_types = types_;
    violation.message = explain_types(types_, value);
  } else {
    violation.message = describe_mismatches(count, mismatches_);
  }
}

}  // namespace sluice
