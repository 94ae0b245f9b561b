// The type tables of integers, numbers, strings and JSON values.

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "json/json.hpp"
#include "sluice/detail/type.hpp"
#include "sluice/schema.hpp"

namespace sluice::detail {
namespace {

// How values of each type are read and written. Integers are accessed with memcpy, because one
// table serves both `long` and `long long`, which must not alias.

template <class T>
T load(const void* value) {
  T out;
  std::memcpy(&out, value, sizeof out);
  return out;
}
template <class T>
void store(void* out, T value) {
  std::memcpy(out, &value, sizeof value);
}

template <class T>
json::value integer_schema(const Type& /*type*/, SchemaBuilder& /*builder*/) {
  using Limits = std::numeric_limits<T>;
  json::object out{{"type", "integer"}};
  constexpr bool kNarrow = sizeof(T) < sizeof(std::int32_t);
  if (kNarrow || std::is_unsigned_v<T>) out["minimum"] = Limits::min();
  if (kNarrow) out["maximum"] = Limits::max();
  return out;
}

template <class T>
std::string integer_range() {
  using Limits = std::numeric_limits<T>;
  return "integer from " + std::to_string(Limits::min()) + " to " + std::to_string(Limits::max());
}

template <class T>
bool fail_range(const json::value& value, Decoder& decoder) {
  return decoder.fail_value(integer_range<T>(), value);
}

template <class T>
bool decode_integer(const Type& /*type*/, const json::value& value, void* out, Decoder& decoder) {
  if (value.is_int64()) {
    if (!std::in_range<T>(value.get_int64())) return fail_range<T>(value, decoder);
    store(out, static_cast<T>(value.get_int64()));
    return true;
  }
  if (!value.is_number()) return decoder.fail_type("integer", value);
  if (value.is_uint64()) {
    if (!std::in_range<T>(value.get_uint64())) return fail_range<T>(value, decoder);
    store(out, static_cast<T>(value.get_uint64()));
    return true;
  }
  const double number = value.get_double();
  if (number != std::trunc(number)) return decoder.fail_value("integer", value);
  const std::optional<std::int64_t> integer = exact_integer(number);
  if (!integer) {
    return decoder.fail("expected " + integer_range<T>() +
                        ", got one that is too large to be exact");
  }
  if (!std::in_range<T>(*integer)) return fail_range<T>(value, decoder);
  store(out, static_cast<T>(*integer));
  return true;
}

template <class T>
json::value encode_integer(const Type& /*type*/, const void* value, Encoder& /*encoder*/) {
  return load<T>(value);
}

template <class T>
constexpr Type integer_type() {
  return {.schema = integer_schema<T>,
          .decode = decode_integer<T>,
          .encode = encode_integer<T>,
          .size = sizeof(T),
          .is_signed = std::is_signed_v<T>,
          .is_leaf = true};
}

json::value bool_schema(const Type& /*type*/, SchemaBuilder& /*builder*/) {
  return {{"type", "boolean"}};
}
bool decode_bool(const Type& /*type*/, const json::value& value, void* out, Decoder& decoder) {
  if (!value.is_bool()) return decoder.fail_type("boolean", value);
  *static_cast<bool*>(out) = value.get_bool();
  return true;
}
json::value encode_bool(const Type& /*type*/, const void* value, Encoder& /*encoder*/) {
  return *static_cast<const bool*>(value);
}

bool fail_too_large(Decoder& decoder) {
  return decoder.fail("expected number, got one that is too large to be stored");
}

template <class T>
bool decode_number(const json::value& value, T& out, Decoder& decoder) {
  if (!value.is_number()) return decoder.fail_type("number", value);
  out = value.to_number<T>();
  return std::isfinite(out) || fail_too_large(decoder);
}

json::value number_schema(const Type& /*type*/, SchemaBuilder& /*builder*/) {
  return {{"type", "number"}};
}
template <class T>
bool decode_floating(const Type& /*type*/, const json::value& value, void* out, Decoder& decoder) {
  return decode_number(value, *static_cast<T*>(out), decoder);
}
template <class T>
json::value encode_floating(const Type& /*type*/, const void* value, Encoder& /*encoder*/) {
  return Encoder::number(static_cast<double>(*static_cast<const T*>(value)));
}

/// How many bytes of text are copied in the time of reading a number.
constexpr std::size_t kBytesPerWork = 64;

json::value string_schema(const Type& /*type*/, SchemaBuilder& /*builder*/) {
  return {{"type", "string"}};
}
bool decode_string(const Type& /*type*/, const json::value& value, void* out, Decoder& decoder) {
  if (!value.is_string()) return decoder.fail_type("string", value);
  const std::string_view text = value.get_string();
  decoder.count(text.size() / kBytesPerWork);
  static_cast<std::string*>(out)->assign(text);
  return true;
}
json::value encode_string(const Type& /*type*/, const void* value, Encoder& /*encoder*/) {
  return json::string(*static_cast<const std::string*>(value));
}
json::value encode_empty_string(Encoder& /*encoder*/) {
  return json::string();
}

template <class T>
json::value encode_json(const Type& /*type*/, const void* value, Encoder& /*encoder*/) {
  return *static_cast<const T*>(value);
}
template <class T>
json::value encode_initial_json(Encoder& /*encoder*/) {
  return T();
}

/// A number that is too large has become infinite, and would go on as null.
bool check_numbers(const json::value& value, Decoder& decoder) {
  decoder.count(1);
  if (const double* const number = value.if_double()) {
    return std::isfinite(*number) || fail_too_large(decoder);
  }
  if (const json::array* const array = value.if_array()) {
    for (std::size_t i = 0; i < array->size(); ++i) {
      if (!check_numbers((*array)[i], decoder)) return decoder.fail_at(i);
    }
  } else if (const json::object* const object = value.if_object()) {
    for (const auto& [name, member] : *object) {
      if (!check_numbers(member, decoder)) return decoder.fail_at(name);
    }
  }
  return true;
}

json::value json_value_schema(const Type& /*type*/, SchemaBuilder& /*builder*/) {
  return json::object();
}
bool decode_json_value(const Type& /*type*/, const json::value& value, void* out,
                       Decoder& decoder) {
  if (!check_numbers(value, decoder)) return false;
  *static_cast<json::value*>(out) = value;
  return true;
}

json::value json_object_schema(const Type& /*type*/, SchemaBuilder& /*builder*/) {
  return {{"type", "object"}};
}
bool decode_json_object(const Type& /*type*/, const json::value& value, void* out,
                        Decoder& decoder) {
  if (!value.is_object()) return decoder.fail_type("object", value);
  if (!check_numbers(value, decoder)) return false;
  *static_cast<json::object*>(out) = value.get_object();
  return true;
}

json::value json_array_schema(const Type& /*type*/, SchemaBuilder& /*builder*/) {
  return {{"type", "array"}};
}
bool decode_json_array(const Type& /*type*/, const json::value& value, void* out,
                       Decoder& decoder) {
  if (!value.is_array()) return decoder.fail_type("array", value);
  if (!check_numbers(value, decoder)) return false;
  *static_cast<json::array*>(out) = value.get_array();
  return true;
}

}  // namespace

constinit const Type kIntegerTypes[8] = {
    integer_type<std::int8_t>(),   integer_type<std::int16_t>(),  integer_type<std::int32_t>(),
    integer_type<std::int64_t>(),  integer_type<std::uint8_t>(),  integer_type<std::uint16_t>(),
    integer_type<std::uint32_t>(), integer_type<std::uint64_t>(),
};
constinit const Type kBoolType = {.schema = bool_schema,
                                  .decode = decode_bool,
                                  .encode = encode_bool,
                                  .size = sizeof(bool),
                                  .is_leaf = true};
constinit const Type kFloatType = {.schema = number_schema,
                                   .decode = decode_floating<float>,
                                   .encode = encode_floating<float>,
                                   .size = sizeof(float),
                                   .is_leaf = true};
constinit const Type kDoubleType = {.schema = number_schema,
                                    .decode = decode_floating<double>,
                                    .encode = encode_floating<double>,
                                    .size = sizeof(double),
                                    .is_leaf = true};
constinit const Type kLongDoubleType = {.schema = number_schema,
                                        .decode = decode_floating<long double>,
                                        .encode = encode_floating<long double>,
                                        .size = sizeof(long double),
                                        .is_leaf = true};
constinit const Type kStringType = {.schema = string_schema,
                                    .decode = decode_string,
                                    .encode = encode_string,
                                    .encode_initial = encode_empty_string,
                                    .size = sizeof(std::string),
                                    .is_leaf = true};
constinit const Type kJsonValueType = {.schema = json_value_schema,
                                       .decode = decode_json_value,
                                       .encode = encode_json<json::value>,
                                       .encode_initial = encode_initial_json<json::value>,
                                       .size = sizeof(json::value)};
constinit const Type kJsonObjectType = {.schema = json_object_schema,
                                        .decode = decode_json_object,
                                        .encode = encode_json<json::object>,
                                        .encode_initial = encode_initial_json<json::object>,
                                        .size = sizeof(json::object)};
constinit const Type kJsonArrayType = {.schema = json_array_schema,
                                       .decode = decode_json_array,
                                       .encode = encode_json<json::array>,
                                       .encode_initial = encode_initial_json<json::array>,
                                       .size = sizeof(json::array)};

json::value literal_schema(std::string_view text) {
  return {{"type", "string"}, {"const", text}};
}

bool decode_literal(const json::value& value, std::string_view text, Decoder& decoder) {
  return (value.is_string() && std::string_view(value.get_string()) == text) ||
         decoder.fail_name({&text, 1}, value);
}

}  // namespace sluice::detail
