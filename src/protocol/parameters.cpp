#include "protocol/parameters.hpp"

#include "rpc/error_codes.hpp"

namespace sluice {

const json::value* find_parameter(const json::object& params, std::string_view name) {
  const json::value* const value = params.if_contains(name);
  return value == nullptr || value->is_null() ? nullptr : value;
}

Result<std::string> text_parameter(const json::object& params, std::string_view name) {
  const json::value* const value = find_parameter(params, name);
  if (value == nullptr) return std::string();
  if (value->is_string()) return std::string(value->get_string());
  return fail(kInvalidParams, "Invalid params: " + std::string(name) + " must be a string");
}

std::optional<std::int64_t> integer_of(const json::value& value) {
  if (const std::int64_t* const integer = value.if_int64()) return *integer;
  const double* const number = value.if_double();
  return number == nullptr ? std::nullopt : exact_integer(*number);
}

}  // namespace sluice
