// The functions that the type tables of structs point to, and the entry points for all types.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "coding/type_support.hpp"
#include "sluice/schema.hpp"

namespace sluice::detail {

/// What only decoding needs. It is determined later than the layout, because that takes a `T{}` and
/// the description, and making these may encode a `T`.
struct StructOptions {
  bool open = false;
  std::vector<bool> optional;  // for each member
};

struct StructLayout {
  struct Slot {
    std::string_view name;
    std::size_t offset = 0;
    const Type* type = nullptr;
  };

  std::vector<Slot> slots;
  std::vector<std::string_view> names;
  mutable std::atomic<const StructOptions*> options = nullptr;
};

namespace {

/// Calls `use` with a `T{}`.
template <class Use>
void visit_initial(const StructType& type, Use use) {
  type.visit_initial(
      [](void* context, const void* object) { (*static_cast<Use*>(context))(object); }, &use);
}

std::vector<const void*> members_of(const StructType& type, const void* object) {
  std::vector<const void*> out(type.count);
  type.find_members(object, out.data());
  return out;
}

StructDescription description_of(const StructType& type) {
  return type.describe != nullptr ? type.describe() : StructDescription({}, {});
}

json::value encode_initial(const Type& type, Encoder& encoder) {
  if (type.encode_initial != nullptr) return type.encode_initial(encoder);
  if (type.kind == Type::Kind::structure) {
    json::value out;
    visit_initial(static_cast<const StructType&>(type),
                  [&](const void* object) { out = type.encode(type, object, encoder); });
    return out;
  }
  constexpr std::uint64_t kZero = 0;
  return type.encode(type, &kZero, encoder);
}

bool is_zero(const Type& type, const void* value) {
  constexpr std::uint64_t kZero = 0;
  return std::memcmp(value, &kZero, type.size) == 0;
}

/// The JSON value that a member's initialiser gives it. Nothing if the member would have the same
/// value without an initialiser.
std::optional<json::value> preset_of(const Type& type, const void* member) {
  Encoder encoder;
  if (type.kind == Type::Kind::nullable) {
    if (static_cast<const NullableType&>(type).get(member) == nullptr) return std::nullopt;
    return type.encode(type, member, encoder);
  }
  if (type.kind == Type::Kind::enumeration) {
    if (is_zero(type, member)) return std::nullopt;  // 0 may not be an enumerator
    return type.encode(type, member, encoder);
  }
  json::value value = type.encode(type, member, encoder);
  if (type.has_initial && value == encode_initial(type, encoder)) return std::nullopt;
  return value;
}

bool is_optional(const Type& type, const MemberDescription* described, const void* member) {
  return type.kind == Type::Kind::nullable || (described != nullptr && described->optional) ||
         preset_of(type, member).has_value();
}

/// The object that `known` points to. It is made once, and kept as long as the program runs.
template <class T, class Make>
const T& known_or_made(std::atomic<const T*>& known, const Make& make) {
  const T* found = known.load(std::memory_order_acquire);
  if (found != nullptr) return *found;
  std::unique_ptr<const T> made = make();
  if (known.compare_exchange_strong(found, made.get(), std::memory_order_acq_rel)) {
    return *made.release();
  }
  return *found;
}

/// The layout of a struct. `object` may be any object of that type.
const StructLayout& layout_of(const StructType& type, const void* object) {
  return known_or_made(*type.layout, [&] {
    auto out = std::make_unique<StructLayout>();
    const std::vector<const void*> members = members_of(type, object);
    for (std::size_t i = 0; i < type.count; ++i) {
      const Member& member = type.members[i];
      const std::string_view name = last_name(member.spelling);
      out->names.push_back(name);
      out->slots.push_back(
          {.name = name,
           .offset = static_cast<std::size_t>(static_cast<const std::byte*>(members[i]) -
                                              static_cast<const std::byte*>(object)),
           .type = member.type});
    }
    return out;
  });
}

const StructOptions& options_of(const StructType& type, const StructLayout& layout) {
  return known_or_made(layout.options, [&] {
    auto out = std::make_unique<StructOptions>();
    const StructDescription description = description_of(type);
    out->open = description.is_open();
    visit_initial(type, [&](const void* initial) {
      for (const StructLayout::Slot& slot : layout.slots) {
        out->optional.push_back(is_optional(*slot.type, description.find(slot.name),
                                            static_cast<const std::byte*>(initial) + slot.offset));
      }
    });
    return out;
  });
}

bool decode_struct_members(const StructType& type, const json::object& object, void* out,
                           Decoder& decoder) {
  if (!decoder.enter()) return false;
  if (type.reset == nullptr) fail_unreadable();
  const StructLayout& layout = layout_of(type, out);
  const StructOptions& options = options_of(type, layout);
  std::size_t found = 0;
  for (std::size_t i = 0; i < layout.slots.size(); ++i) {
    const StructLayout::Slot& slot = layout.slots[i];
    const json::value* const value = object.if_contains(slot.name);
    if (value == nullptr) {
      if (!options.optional[i]) return decoder.fail_missing(slot.name);
      continue;
    }
    ++found;
    void* const member = static_cast<std::byte*>(out) + slot.offset;
    const bool good =
        slot.type->kind == Type::Kind::nullable
            ? decode_inside(static_cast<const NullableType&>(*slot.type), *value, member, decoder)
            : slot.type->decode(*slot.type, *value, member, decoder);
    if (!good) return decoder.fail_at(slot.name);
  }
  if (found != object.size() && !options.open && !decoder.ignores_unknown_members()) {
    return decoder.fail_unknown(object, layout.names);
  }
  decoder.leave();
  return true;
}

/// The schema of a property; `preset` is its `default`, null if there is none.
json::value property_schema(const Type& type, const MemberDescription* described,
                            const std::optional<json::value>& preset, SchemaBuilder& builder) {
  const Type& shown =
      type.kind == Type::Kind::nullable ? *static_cast<const NullableType&>(type).inside : type;
  json::value schema = shown.schema(shown, builder);
  json::object& out = schema.as_object();
  if (described != nullptr) {
    for (const auto& [keyword, value] : described->attributes) out[keyword] = value;
    if (described->header) builder.count_header();
  }
  if (preset) out["default"] = *preset;
  return schema;
}

json::value make_struct_schema(const StructType& type, SchemaBuilder& builder) {
  const StructDescription description = description_of(type);
  json::object properties;
  json::array required;
  visit_initial(type, [&](const void* initial) {
    const std::vector<const void*> members = members_of(type, initial);
    for (std::size_t i = 0; i < type.count; ++i) {
      const Type& member = *type.members[i].type;
      const std::string_view name = last_name(type.members[i].spelling);
      const MemberDescription* const described = description.find(name);
      std::optional<json::value> preset = preset_of(member, members[i]);
      const bool nullable = member.kind == Type::Kind::nullable;
      const bool said_optional = described != nullptr && described->optional;
      if (!nullable && !said_optional && !preset) required.emplace_back(name);
      // For a member that optional() marks, the initial value is the default even if it looks like
      // none.
      if (!nullable && said_optional && !preset) {
        Encoder encoder;
        preset = member.encode(member, members[i], encoder);
      }
      properties[name] = property_schema(member, described, preset, builder);
    }
  });
  json::object out{{"type", "object"}};
  if (!description.description().empty()) out["description"] = description.description();
  out["properties"] = std::move(properties);
  if (!required.empty()) out["required"] = std::move(required);
  if (!description.is_open()) out["additionalProperties"] = false;
  return out;
}

}  // namespace

json::value struct_schema(const Type& type, SchemaBuilder& builder) {
  const auto& self = static_cast<const StructType&>(type);
  return builder.define(&type, type_name_in(self.spelling),
                        [&] { return make_struct_schema(self, builder); });
}

bool decode_struct(const Type& type, const json::value& value, void* out, Decoder& decoder) {
  if (!value.is_object()) return decoder.fail_type("object", value);
  const auto& self = static_cast<const StructType&>(type);
  self.reset(out);
  return decode_struct_members(self, value.get_object(), out, decoder);
}

json::value encode_struct(const Type& type, const void* value, Encoder& encoder) {
  encoder.enter();
  const StructLayout& layout = layout_of(static_cast<const StructType&>(type), value);
  json::object out;
  out.reserve(layout.slots.size());
  for (const StructLayout::Slot& slot : layout.slots) {
    const void* const member = static_cast<const std::byte*>(value) + slot.offset;
    if (slot.type->kind == Type::Kind::nullable &&
        static_cast<const NullableType*>(slot.type)->get(member) == nullptr) {
      continue;
    }
    out.emplace(slot.name, slot.type->encode(*slot.type, member, encoder));
  }
  encoder.leave();
  return out;
}

bool decode_fresh(const Type& type, const json::value& value, void* out, Decoder& decoder) {
  if (type.kind != Type::Kind::structure || !value.is_object()) {
    return type.decode(type, value, out, decoder);
  }
  return decode_struct_members(static_cast<const StructType&>(type), value.get_object(), out,
                               decoder);
}

json::value schema_of(const Type& type) {
  SchemaBuilder builder(&type);
  json::value schema = type.schema(type, builder);
  return builder.finish(std::move(schema));
}

bool decode(const Type& type, const json::value& value, void* out, std::string_view root,
            UnknownMembers unknown, DecodeError& error) {
  Decoder decoder(unknown);
  if (decode_fresh(type, value, out, decoder)) return true;
  error = decoder.error(root);
  return false;
}

bool decode(const Type& type, const json::object& object, void* out, std::string_view root,
            UnknownMembers unknown, DecodeError& error) {
  if (type.kind != Type::Kind::structure) {
    return decode(type, json::value(object), out, root, unknown, error);
  }
  Decoder decoder(unknown);
  if (decode_struct_members(static_cast<const StructType&>(type), object, out, decoder)) {
    return true;
  }
  error = decoder.error(root);
  return false;
}

json::value encode(const Type& type, const void* value) {
  Encoder encoder;
  return type.encode(type, value, encoder);
}

}  // namespace sluice::detail
