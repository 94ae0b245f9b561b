// The functions that the type tables of nullables, vectors and enums point to.

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstring>
#include <span>
#include <stdexcept>
#include <string_view>
#include <utility>
#include <variant>

#include "coding/type_support.hpp"
#include "sluice/schema.hpp"

namespace sluice::detail {

std::string_view type_name_in(std::string_view spelling) {
  spelling.remove_prefix(spelling.find("T = ") + 4);
  return last_name(spelling.substr(0, spelling.find_first_of("<;]")));
}

void fail_unreadable() {
  throw std::logic_error("decoding into a type that can only be encoded");
}

bool decode_unreadable(const Type& /*type*/, const json::value& /*value*/, void* /*out*/,
                       Decoder& /*decoder*/) {
  fail_unreadable();
}

void fail_valueless() {
  throw std::bad_variant_access();
}

json::value nullable_schema(const Type& type, SchemaBuilder& builder) {
  const Type& inside = *static_cast<const NullableType&>(type).inside;
  return {{"anyOf", json::array{inside.schema(inside, builder), json::object{{"type", "null"}}}}};
}

bool decode_nullable(const Type& type, const json::value& value, void* out, Decoder& decoder) {
  const auto& nullable = static_cast<const NullableType&>(type);
  if (!value.is_null()) {
    if (nullable.decode_inside == nullptr) fail_unreadable();
    return nullable.decode_inside(out, value, decoder);
  }
  nullable.reset(out);
  return true;
}

json::value encode_nullable(const Type& type, const void* value, Encoder& encoder) {
  const auto& nullable = static_cast<const NullableType&>(type);
  const void* const inside = nullable.get(value);
  if (inside == nullptr) return nullptr;
  return nullable.inside->encode(*nullable.inside, inside, encoder);
}

json::value vector_schema(const Type& type, SchemaBuilder& builder) {
  const Type& item = *static_cast<const VectorType&>(type).item;
  return {{"type", "array"}, {"items", item.schema(item, builder)}};
}

bool decode_vector(const Type& type, const json::value& value, void* out, Decoder& decoder) {
  if (!value.is_array()) return decoder.fail_type("array", value);
  const json::array& array = value.get_array();
  const auto& vector = static_cast<const VectorType&>(type);
  if (!decoder.enter(array.size(), vector.item->size)) return false;
  if (vector.resize == nullptr) fail_unreadable();
  auto* items = static_cast<std::byte*>(vector.resize(out, 0));
  // Grows step by step while items are decoded, so that a small bad message cannot force a large
  // allocation.
  constexpr std::size_t kFirstSize = 16;
  std::size_t size = 0;
  for (std::size_t i = 0; i < array.size(); ++i) {
    if (i == size) {
      size = std::min(array.size(), std::max(2 * size, kFirstSize));
      items = static_cast<std::byte*>(vector.resize(out, size));
    }
    if (!decode_fresh(*vector.item, array[i], items + i * vector.item->size, decoder)) {
      vector.resize(out, i);
      return decoder.fail_at(i);
    }
  }
  decoder.leave();
  return true;
}

json::value encode_vector(const Type& type, const void* value, Encoder& encoder) {
  encoder.enter();
  const auto& vector = static_cast<const VectorType&>(type);
  std::size_t count = 0;
  const auto* items = static_cast<const std::byte*>(vector.items(value, count));
  json::array out;
  out.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    out.push_back(vector.item->encode(*vector.item, items + i * vector.item->size, encoder));
  }
  encoder.leave();
  return out;
}

json::value encode_empty_array(Encoder& /*encoder*/) {
  return json::array();
}

json::value enum_schema(const Type& type, SchemaBuilder& /*builder*/) {
  const auto& self = static_cast<const EnumType&>(type);
  json::array names;
  for (const std::string_view name : std::span(self.names, self.count)) names.emplace_back(name);
  return {{"type", "string"}, {"enum", std::move(names)}};
}

bool decode_enum(const Type& type, const json::value& value, void* out, Decoder& decoder) {
  const auto& self = static_cast<const EnumType&>(type);
  const std::span names(self.names, self.count);
  if (value.is_string()) {
    const auto found = std::ranges::find(names, std::string_view(value.get_string()));
    if (found != names.end()) {
      const auto index = static_cast<std::size_t>(found - names.begin());
      std::memcpy(out, static_cast<const std::byte*>(self.values) + index * type.size, type.size);
      return true;
    }
  }
  return decoder.fail_name(names, value);
}

json::value encode_enum(const Type& type, const void* value, Encoder& encoder) {
  const auto& self = static_cast<const EnumType&>(type);
  for (std::size_t i = 0; i < self.count; ++i) {
    const std::byte* const known = static_cast<const std::byte*>(self.values) + i * type.size;
    if (std::memcmp(known, value, type.size) == 0) return json::string(self.names[i]);
  }
  const Type& number = kIntegerTypes[std::countr_zero(type.size) + (type.is_signed ? 0 : 4)];
  const json::value shown = number.encode(number, value, encoder);
  Encoder::fail_enumerator(
      type_name_in(self.spelling),
      shown.is_int64() ? shown.get_int64() : static_cast<long long>(shown.get_uint64()));
}

}  // namespace sluice::detail
