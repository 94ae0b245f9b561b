#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "json/json.hpp"
#include "json_schema/program.hpp"
#include "json_schema/violation.hpp"

namespace sluice {

// Explains in words why a value violates its schema. Only for values that do.

/// `1 item`, `2 items`.
std::string counted(std::uint64_t count, std::string_view one, std::string_view many);

/// `expected integer, got string`; `types` is a set of SchemaType.
std::string explain_types(std::uint8_t types, const json::value& value);
/// `expected at least 3, got 2`, where `relation` is `at least `.
std::string explain_number(std::string_view relation, const json::value& bound,
                           const json::value& value);
/// `expected at most 2 items, got 3`.
std::string explain_count(std::uint64_t count, std::uint64_t low, std::uint64_t high,
                          std::string_view one, std::string_view many);
/// `missing required property "a"`, for the first one that `object` lacks.
std::string explain_missing(const ObjectRules& rules, const json::object& object);
/// `expected one of 1, 2, got 3`. If there are many, only the first few are listed.
std::string explain_allowed(std::span<const json::value> allowed, const json::value& value);

/// The failed alternative that came closest to matching, if one came closer than all others.
class ClosestAlternative {
 public:
  void add(ViolationDraft&& other);
  /// Explains why `value` matches none of the `count` alternatives that were added. Moves the
  /// closest one out of this object.
  void explain(ViolationDraft& violation, std::size_t count, const json::value& value);

 private:
  ViolationDraft violation_;
  std::size_t closeness_ = 0;
  std::size_t rivals_ = 0;  // how many are equally close, including this one
  std::uint8_t types_ = 0;  // that the alternatives expect; used if `only_types_`
  bool only_types_ = true;
  std::string mismatches_;  // as append_mismatch() makes it
};

}  // namespace sluice
