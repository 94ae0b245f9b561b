#pragma once

// Makes a JSON Schema, a decoder and an encoder from one declaration: a plain struct.
//
//   struct Move { int to; std::optional<int> by; bool quiet = true; };
//
//   sluice::schema_of<Move>()
//     {"type":"object","properties":{"to":{"type":"integer"},"by":{"type":"integer"},
//      "quiet":{"type":"boolean","default":true}},"required":["to"],"additionalProperties":false}
//   sluice::decode<Move>(value, "arguments")
//     a Move, or the error `arguments.to: expected integer, got string`
//   sluice::encode(Move{.to = 3})
//     {"to":3,"quiet":true}
//
// A member may be missing in the JSON if it is a std::optional or a smart pointer, if it has an
// initialiser, or if its description says optional(). A missing member keeps the value of its
// initialiser, which is the `default` in the schema. Initialisers of numbers, bools and enums are
// always seen. Those of other types are seen only if they make the member differ from one without
// an initialiser, so not `std::string unit = "";` or `std::vector<int> items = {};`. Such a member
// needs optional() in its description, or std::optional. A description can also say required().
//
// An empty std::optional is not written. It is read from null too, which many language models write
// for an argument that they leave out. A member of the JSON that the struct does not have is an
// error, unless the struct's description says open() or the caller passes UnknownMembers::ignore.
//
// Decoding checks types and their ranges. Bounds, patterns and other keywords of a description are
// only part of the schema; a server validates arguments against it before it decodes them.
//
// A struct has at most 32 members, and no base classes, C arrays, bit-fields or references.
// sluice/codec.hpp and sluice/container_codecs.hpp list the types that members may have;
// sluice/describe.hpp says how to describe members. All functions are thread-safe.

#include <atomic>
#include <concepts>
#include <cstddef>
#include <expected>
#include <memory>
#include <new>
#include <string_view>
#include <type_traits>
#include <utility>

#include "sluice/codec.hpp"
#include "sluice/container_codecs.hpp"
#include "sluice/describe.hpp"
#include "sluice/detail/aggregate.hpp"
#include "sluice/detail/coding.hpp"
#include "sluice/detail/type.hpp"
#include "sluice/json.hpp"

namespace sluice {

namespace detail {

template <class T>
concept Struct = std::is_aggregate_v<T> && std::is_class_v<T> && !std::is_union_v<T>;

template <class T>
concept DescribesItself = requires {
  { T::describe() } -> std::convertible_to<StructDescription>;
};
/// Whether `T` has a member of the name describe, whatever it is.
template <class T>
concept HasDescribe = requires { &T::describe; };
template <class T>
concept DescribedOutside = requires {
  { Describe<T>::describe() } -> std::convertible_to<StructDescription>;
};

/// Whether what a describe() returns describes members of a struct other than `T`.
template <class T, class Description>
inline constexpr bool kDescribesOther = [] {
  if constexpr (requires { typename Description::owner_type; }) {
    using Owner = typename Description::owner_type;
    return !std::is_void_v<Owner> && !std::same_as<Owner, T>;
  } else {
    return false;
  }
}();

template <class T, class Describer>
StructDescription describe_by() {
  static_assert(!kDescribesOther<T, decltype(Describer::describe())>,
                "the describe() of a struct describes members of another struct");
  return Describer::describe();
}

/// The function that describes `T`; null if there is none.
template <class T>
constexpr auto description_of() -> StructDescription (*)() {
  if constexpr (DescribesItself<T>) {
    return describe_by<T, T>;
  } else if constexpr (DescribedOutside<T>) {
    return describe_by<T, Describe<T>>;
  } else {
    static_assert(!HasDescribe<T>,
                  "the describe() of a struct must be `static` and return what sluice::describe() "
                  "returns");
    return nullptr;
  }
}

template <class T>
inline constexpr std::size_t kMembers = count_members<T>();

template <class T, class Index = std::make_index_sequence<kMembers<T>>>
struct MemberTable;
template <class T, std::size_t... kIndex>
struct MemberTable<T, std::index_sequence<kIndex...>> {
  // One extra entry, because C++ has no empty arrays.
  static inline constinit const Member kMembers[sizeof...(kIndex) + 1] = {
      {pretty_member<T, kIndex>(), type_of<MemberOf<T, kIndex>>()}..., {nullptr, nullptr}};
  static consteval bool readable() { return (detail::readable<MemberOf<T, kIndex>>() && ...); }
};

template <class T>
void find_members(const void* object, const void** members) {
  with_members(*static_cast<const T*>(object), [members](const auto&... member) {
    std::size_t next = 0;
    static_cast<void>(next);
    static_cast<void>(members);
    ((members[next++] = std::addressof(member)), ...);
  });
}
template <class T>
void visit_initial(StructType::Visit visit, void* context) {
  const T initial{};
  visit(context, std::addressof(initial));
}
template <class T>
void construct_struct(void* place) {
  ::new (place) T;
}
template <class T>
void destroy_struct(void* object) {
  static_cast<T*>(object)->~T();
}
template <class T>
void reset_struct(void* object) {
  *static_cast<T*>(object) = T{};
}
template <class T>
constexpr auto reset_or_null() -> void (*)(void*) {
  if constexpr (std::is_move_assignable_v<T>) {
    return reset_struct<T>;
  } else {
    return nullptr;
  }
}

template <class T>
inline constinit std::atomic<const StructLayout*> known_layout = nullptr;

template <class T>
inline constinit const StructType kStructType = {{.schema = struct_schema,
                                                  .decode = decode_struct,
                                                  .encode = encode_struct,
                                                  .size = sizeof(T),
                                                  .kind = Type::Kind::structure},
                                                 MemberTable<T>::kMembers,
                                                 kMembers<T>,
                                                 pretty_type<T>(),
                                                 find_members<T>,
                                                 visit_initial<T>,
                                                 construct_struct<T>,
                                                 destroy_struct<T>,
                                                 alignof(T),
                                                 reset_or_null<T>(),
                                                 description_of<T>(),
                                                 &known_layout<T>};

}  // namespace detail

template <detail::Struct T>
struct Codec<T> : detail::TableCodec<T, detail::kStructType<T>> {
  static_assert(detail::kElements<T> <= detail::kMaxMembers,
                "a struct may have up to 32 members: put some of them into structs of their own");
  static_assert(
      !detail::kHasBase<T>,
      "a struct with a base class has no JSON form: make the base class a member; nor has "
      "one with a std::any, or whatever else takes anything");
  static_assert(std::default_initializable<T>,
                "a struct needs a default for each member: one of them cannot be made from {}");

  static consteval bool readable() {
    return std::is_move_assignable_v<T> && detail::MemberTable<T>::readable();
  }
};

/// The JSON Schema (2020-12) of `T`, by default of what decode() takes. Throws std::logic_error if
/// a header name (`x-mcp-header`) is not unique, or if it is not reached by `properties` alone
/// (2026-07-28, Streamable HTTP, Schema Extension).
template <class T>
json::value schema_of(SchemaUse use = SchemaUse::decoding) {
  return detail::schema_of(*detail::type_of<T>(), use);
}

/// Reads a `T` from `value`. The error says what does not fit, and where: its path begins with
/// `root`. A `value` of more than 128 levels is an error.
template <class T>
std::expected<T, DecodeError> decode(const json::value& value, std::string_view root = "value",
                                     UnknownMembers unknown = UnknownMembers::reject) {
  std::expected<T, DecodeError> out;
  DecodeError error;
  if (!detail::decode(*detail::readable_type_of<T>(), value, std::addressof(*out), root, unknown,
                      error)) {
    out = std::unexpected(std::move(error));
  }
  return out;
}

/// Writes a `T`. Throws std::domain_error for NaN, infinity and an enum's value without an
/// enumerator, which JSON cannot express; std::length_error for more than 128 levels, which no
/// decoder accepts; and std::bad_variant_access for a variant that is valueless by exception.
template <class T>
json::value encode(const T& value) {
  return detail::encode(*detail::type_of<T>(), std::addressof(value));
}

}  // namespace sluice
