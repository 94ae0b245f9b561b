#pragma once

// Tables that tell the library about a program's types: how to create, read and write a value, and
// where its members are. Templates only fill in the tables. The code that uses them is part of the
// library, so it is compiled once and not in every program.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

#include "sluice/detail/coding.hpp"
#include "sluice/json.hpp"

namespace sluice {

class StructDescription;

namespace detail {

/// The table of a type with a JSON form. Each function does what the Codec function of the same
/// name does. Its first argument is this table, which it may cast to the derived table.
struct Type {
  enum class Kind : std::uint8_t { plain, structure, enumeration, nullable };

  json::value (*schema)(const Type& type, SchemaBuilder& builder);
  bool (*decode)(const Type& type, const json::value& value, void* out, Decoder& decoder);
  json::value (*encode)(const Type& type, const void* value, Encoder& encoder);
  /// Encodes `T{}`. Null if `T{}` is all zeros, as for numbers, and for kinds other than `plain`.
  json::value (*encode_initial)(Encoder& encoder) = nullptr;
  std::uint32_t size = 0;  // in bytes
  Kind kind = Kind::plain;
  bool is_signed = false;   // for integers and enums
  bool has_initial = true;  // `T{}` can be made
  bool is_leaf = false;     // nothing can be nested in a value
};

/// A std::optional or a smart pointer.
struct NullableType : Type {
  const Type* inside;
  const void* (*get)(const void* nullable);  // null if there is nothing inside
  void (*reset)(void* nullable);
  /// Reads the value inside. If that fails, `nullable` does not change. Null if the type can only
  /// be encoded.
  bool (*decode_inside)(void* nullable, const json::value& value, Decoder& decoder);
};

/// A std::vector with the default allocator, except std::vector<bool>.
struct VectorType : Type {
  const Type* item;
  const void* (*items)(const void* vector, std::size_t& count);
  /// Returns the items; new ones are `T{}`. Null if the type can only be encoded.
  void* (*resize)(void* vector, std::size_t count);
};

struct EnumType : Type {
  const std::string_view* names;
  const void* values;  // an array of `count` values of the enum
  std::size_t count;
  const char* spelling;  // what the compiler prints for the type
};

struct Member {
  const char* spelling;  // what the compiler prints for it; its name is at the end
  const Type* type;
};

/// What the library has computed about a struct.
struct StructLayout;

struct StructType : Type {
  /// Called with a `T{}`.
  using Visit = void (*)(void* context, const void* object);

  const Member* members;
  std::size_t count;
  const char* spelling;  // what the compiler prints for the type
  /// Writes the addresses of the members of `object`.
  void (*find_members)(const void* object, const void** members);
  void (*visit_initial)(Visit visit, void* context);
  /// Makes a `T` at `place` as `T object;` does: members without an initialiser that have no
  /// constructor keep the bytes that were there.
  void (*construct)(void* place);
  void (*destroy)(void* object);
  std::size_t alignment;
  void (*reset)(void* object);      // to `T{}`; null if the type can only be encoded
  StructDescription (*describe)();  // null if the struct has no description
  std::atomic<const StructLayout*>* layout;
};

/// Signed integers of 1, 2, 4 and 8 bytes, then the unsigned ones.
extern const Type kIntegerTypes[8];
extern const Type kBoolType;
extern const Type kFloatType;
extern const Type kDoubleType;
extern const Type kLongDoubleType;
extern const Type kStringType;
extern const Type kJsonValueType;
extern const Type kJsonObjectType;
extern const Type kJsonArrayType;

// The functions that templates put into the tables.

/// For a type that can only be encoded. Throws std::logic_error.
bool decode_unreadable(const Type& type, const json::value& value, void* out, Decoder& decoder);
/// Does what type.decode() does, for an `out` that is a new `T{}`.
bool decode_fresh(const Type& type, const json::value& value, void* out, Decoder& decoder);

json::value nullable_schema(const Type& type, SchemaBuilder& builder);
bool decode_nullable(const Type& type, const json::value& value, void* out, Decoder& decoder);
json::value encode_nullable(const Type& type, const void* value, Encoder& encoder);

json::value vector_schema(const Type& type, SchemaBuilder& builder);
bool decode_vector(const Type& type, const json::value& value, void* out, Decoder& decoder);
json::value encode_vector(const Type& type, const void* value, Encoder& encoder);
json::value encode_empty_array(Encoder& encoder);

json::value enum_schema(const Type& type, SchemaBuilder& builder);
bool decode_enum(const Type& type, const json::value& value, void* out, Decoder& decoder);
json::value encode_enum(const Type& type, const void* value, Encoder& encoder);

json::value struct_schema(const Type& type, SchemaBuilder& builder);
bool decode_struct(const Type& type, const json::value& value, void* out, Decoder& decoder);
json::value encode_struct(const Type& type, const void* value, Encoder& encoder);

// The functions of sluice/schema.hpp for the type of a table.

/// The bytes that the items of containers take in the value that this thread has decoded last,
/// since this was called before.
std::size_t take_decoded_memory();

json::value schema_of(const Type& type, SchemaUse use = SchemaUse::decoding);
/// Reads into `out`, which must be a new `T{}`. On failure returns false and sets `error`.
bool decode(const Type& type, const json::value& value, void* out, std::string_view root,
            UnknownMembers unknown, DecodeError& error);
bool decode(const Type& type, const json::object& object, void* out, std::string_view root,
            UnknownMembers unknown, DecodeError& error);
json::value encode(const Type& type, const void* value);

/// The codec of a type that has a table.
template <class T, const auto& kTable>
struct TableCodec {
  using TableOf = T;
  static constexpr const Type* kType = &kTable;

  static json::value schema(SchemaBuilder& builder) { return kTable.schema(kTable, builder); }
  static bool decode(const json::value& value, T& out, Decoder& decoder) {
    return kTable.decode(kTable, value, std::addressof(out), decoder);
  }
  static json::value encode(const T& value, Encoder& encoder) {
    return kTable.encode(kTable, std::addressof(value), encoder);
  }
};

}  // namespace detail
}  // namespace sluice
