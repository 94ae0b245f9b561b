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

// Why a value breaks its schema, in words. Only for values that do.

/// `1 item`, `2 items`.
std::string counted(std::uint64_t count, std::string_view one, std::string_view many);

/// `expected integer, got string`; `types` is a set of SchemaType.
std::string explain_types(std::uint8_t types, const json::value& value);
/// `expected at least 3, got 2`, given the relation `at least `.
std::string explain_number(std::string_view relation, const json::value& bound,
                           const json::value& value);
/// `expected at most 2 items, got 3`.
std::string explain_count(std::uint64_t count, std::uint64_t low, std::uint64_t high,
                          std::string_view one, std::string_view many);
/// `missing required property "a"`: the first that `object` lacks.
std::string explain_missing(const ObjectRules& rules, const json::object& object);
/// `expected one of 1, 2, got 3`; lists the first few of many.
std::string explain_allowed(std::span<const json::value> allowed, const json::value& value);

/// Of the alternatives that failed, the one that came closest, if one did.
class ClosestAlternative {
 public:
  void add(ViolationDraft&& other);
  /// Why `value` follows none of the `count` alternatives added. Leaves the closest one empty.
  void explain(ViolationDraft& violation, std::size_t count, const json::value& value);

 private:
  ViolationDraft violation_;
  std::size_t closeness_ = 0;
  std::size_t rivals_ = 0;  // that are as close, this one included
  std::uint8_t types_ = 0;  // of all, if each failed because of the value's type
  bool only_types_ = true;
};

}  // namespace sluice
