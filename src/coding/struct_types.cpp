// The functions that the type tables of structs point to, and the entry points for all types.

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <optional>
#include <span>
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
    bool is_leaf = false;
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
  constexpr long double kZero = 0;  // as large as the largest number
  return type.encode(type, &kZero, encoder);
}

/// Memory for one object of a struct.
class Storage {
 public:
  explicit Storage(const StructType& type)
      : size_(type.size),
        alignment_(static_cast<std::align_val_t>(type.alignment)),
        bytes_(static_cast<std::byte*>(::operator new(size_, alignment_))) {}
  ~Storage() { ::operator delete(bytes_, size_, alignment_); }
  Storage(const Storage&) = delete;
  Storage& operator=(const Storage&) = delete;

  std::span<std::byte> bytes() const { return {bytes_, size_}; }

 private:
  std::size_t size_;
  std::align_val_t alignment_;
  std::byte* bytes_;
};

/// For each byte of a struct, whether `T object;` writes it. It leaves out members without an
/// initialiser that have no constructor, such as numbers, and gaps between members.
std::vector<bool> written_bytes(const StructType& type) {
  constexpr std::array kBefore = {std::byte(0x55), std::byte(0xAA)};
  const Storage storage(type);
  std::vector<std::size_t> kept(type.size, 0);
  for (const std::byte before : kBefore) {
    std::ranges::fill(storage.bytes(), before);
    type.construct(storage.bytes().data());
    for (std::size_t i = 0; i < type.size; ++i) kept[i] += storage.bytes()[i] == before ? 1 : 0;
    type.destroy(storage.bytes().data());
  }
  std::vector<bool> written;
  for (const std::size_t count : kept) written.push_back(count < kBefore.size());
  return written;
}

/// Whether something writes a number, an enum or a struct that would not be written without an
/// initialiser. `written` belongs to the struct around it.
bool is_initialized(const Type& type, std::size_t offset, const std::vector<bool>& written) {
  const bool is_scalar = type.kind == Type::Kind::enumeration ||
                         (type.kind == Type::Kind::plain && type.encode_initial == nullptr);
  if (!is_scalar && type.kind != Type::Kind::structure) return false;
  const std::vector<bool> without = is_scalar ? std::vector<bool>(type.size, false)
                                              : written_bytes(static_cast<const StructType&>(type));
  for (std::size_t i = 0; i < type.size; ++i) {
    if (written[offset + i] && !without[i]) return true;
  }
  return false;
}

/// Whether a member has another value than it would have without an initialiser.
bool has_preset(const Type& type, const void* member) {
  if (type.kind == Type::Kind::nullable) {
    return static_cast<const NullableType&>(type).get(member) != nullptr;
  }
  if (type.kind == Type::Kind::enumeration) return false;
  if (!type.has_initial) return true;
  Encoder encoder;
  return type.encode(type, member, encoder) != encode_initial(type, encoder);
}

/// How a member is read and shown.
struct Presence {
  bool optional = false;  // may be missing
  bool has_default = false;
};

Presence presence_of(const Type& type, const MemberDescription* described, const void* member,
                     std::size_t offset, const std::vector<bool>& written) {
  const bool initialized = is_initialized(type, offset, written) || has_preset(type, member);
  const bool nullable = type.kind == Type::Kind::nullable;
  const bool optional = described != nullptr && described->optional.has_value()
                            ? *described->optional
                            : nullable || initialized;
  // What optional() marks has a default even if its initialiser cannot be seen.
  return {.optional = optional, .has_default = optional && (initialized || !nullable)};
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

bool is_leaf(const Type& type) {
  return type.kind == Type::Kind::nullable ? is_leaf(*static_cast<const NullableType&>(type).inside)
                                           : type.is_leaf;
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
           .type = member.type,
           .is_leaf = is_leaf(*member.type)});
    }
    return out;
  });
}

const StructOptions& options_of(const StructType& type, const StructLayout& layout) {
  return known_or_made(layout.options, [&] {
    auto out = std::make_unique<StructOptions>();
    const StructDescription description = description_of(type);
    out->open = description.is_open();
    const std::vector<bool> written = written_bytes(type);
    visit_initial(type, [&](const void* initial) {
      for (const StructLayout::Slot& slot : layout.slots) {
        const void* const member = static_cast<const std::byte*>(initial) + slot.offset;
        out->optional.push_back(
            presence_of(*slot.type, description.find(slot.name), member, slot.offset, written)
                .optional);
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
  const auto decode_member = [&](const StructLayout::Slot& slot, const json::value& value) {
    void* const member = static_cast<std::byte*>(out) + slot.offset;
    return slot.type->decode(*slot.type, value, member, decoder) || decoder.fail_at(slot.name);
  };
  // An alternative of a variant that is not the right one should fail before it has read what is
  // nested in it.
  std::size_t found = 0;
  for (std::size_t i = 0; i < layout.slots.size(); ++i) {
    const StructLayout::Slot& slot = layout.slots[i];
    const json::value* const value = object.if_contains(slot.name);
    if (value == nullptr) {
      if (!options.optional[i]) return decoder.fail_missing(slot.name);
      continue;
    }
    ++found;
    if (slot.is_leaf && !decode_member(slot, *value)) return false;
  }
  if (found != object.size() && !options.open && !decoder.ignores_unknown_members()) {
    return decoder.fail_unknown(object, layout.names);
  }
  for (const StructLayout::Slot& slot : layout.slots) {
    if (slot.is_leaf) continue;
    const json::value* const value = object.if_contains(slot.name);
    if (value != nullptr && !decode_member(slot, *value)) return false;
  }
  decoder.leave();
  return true;
}

/// The schema of a property. `preset` has the value that is its `default`; null if there is none.
json::value property_schema(const Type& type, const MemberDescription* described,
                            const void* preset, SchemaBuilder& builder) {
  const Type& shown =
      type.kind == Type::Kind::nullable ? *static_cast<const NullableType&>(type).inside : type;
  json::value schema = shown.schema(shown, builder);
  json::object& out = schema.as_object();
  if (described != nullptr) {
    for (const auto& [keyword, value] : described->attributes) out[keyword] = value;
    if (described->header) builder.count_header();
  }
  if (preset != nullptr) {
    Encoder encoder;
    out["default"] = type.encode(type, preset, encoder);
  }
  return schema;
}

json::value make_struct_schema(const StructType& type, SchemaBuilder& builder) {
  const StructDescription description = description_of(type);
  json::object properties;
  json::array required;
  const std::vector<bool> written = written_bytes(type);
  visit_initial(type, [&](const void* initial) {
    for (const StructLayout::Slot& slot : layout_of(type, initial).slots) {
      const void* const member = static_cast<const std::byte*>(initial) + slot.offset;
      const MemberDescription* const described = description.find(slot.name);
      Presence presence = presence_of(*slot.type, described, member, slot.offset, written);
      if (builder.use() == SchemaUse::encoding) {
        presence = {.optional = slot.type->kind == Type::Kind::nullable};
      }
      if (!presence.optional) required.emplace_back(slot.name);
      properties[slot.name] =
          property_schema(*slot.type, described, presence.has_default ? member : nullptr, builder);
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

json::value schema_of(const Type& type, SchemaUse use) {
  SchemaBuilder builder(&type, use);
  json::value schema = type.schema(type, builder);
  return builder.finish(std::move(schema));
}

namespace {
thread_local std::size_t last_memory = 0;

/// Takes note of the memory of what has been decoded, or says why it could not be.
bool end_decoding(bool decoded, const Decoder& decoder, std::string_view root, DecodeError& error) {
  last_memory = decoder.memory();
  if (decoded && !decoder.is_exhausted()) return true;
  error = decoder.error(root);
  return false;
}
}  // namespace

std::size_t take_decoded_memory() {
  return std::exchange(last_memory, 0);
}

bool decode(const Type& type, const json::value& value, void* out, std::string_view root,
            UnknownMembers unknown, DecodeError& error) {
  Decoder decoder(unknown);
  return end_decoding(decode_fresh(type, value, out, decoder), decoder, root, error);
}

bool decode(const Type& type, const json::object& object, void* out, std::string_view root,
            UnknownMembers unknown, DecodeError& error) {
  if (type.kind != Type::Kind::structure) {
    return decode(type, json::value(object), out, root, unknown, error);
  }
  Decoder decoder(unknown);
  return end_decoding(
      decode_struct_members(static_cast<const StructType&>(type), object, out, decoder), decoder,
      root, error);
}

json::value encode(const Type& type, const void* value) {
  Encoder encoder;
  return type.encode(type, value, encoder);
}

}  // namespace sluice::detail
