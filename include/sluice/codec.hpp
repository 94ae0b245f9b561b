#pragma once

// The JSON form of C++ types:
//
//   bool                                          boolean
//   integers                                      integer
//   float, double                                 number
//   std::string                                   string (UTF-8)
//   enum                                          string: the enumerator's name
//   sluice::Literal<"text">                       that string alone
//   json::value, object, array                    the same JSON
//   an aggregate of these                         object (sluice/schema.hpp)
//   containers, optionals, tuples, variants       sluice/container_codecs.hpp

#include <array>
#include <concepts>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "sluice/describe.hpp"
#include "sluice/detail/aggregate.hpp"
#include "sluice/detail/coding.hpp"
#include "sluice/detail/std_fwd.hpp"
#include "sluice/detail/type.hpp"
#include "sluice/json.hpp"

namespace sluice {

namespace detail {

template <class T>
inline constexpr bool kIsCharacter =
    std::same_as<T, char> || std::same_as<T, wchar_t> || std::same_as<T, char8_t> ||
    std::same_as<T, char16_t> || std::same_as<T, char32_t>;

template <class T>
constexpr std::size_t integer_index() {
  const std::size_t of_size = sizeof(T) == 1 ? 0 : sizeof(T) == 2 ? 1 : sizeof(T) == 4 ? 2 : 3;
  return std::is_signed_v<T> ? of_size : 4 + of_size;
}

/// Whether a `T` can be decoded as well as encoded.
template <class T>
consteval bool readable();
/// The same, but assumes that structs are readable, because they may contain themselves.
template <class T>
consteval bool readable_part() {
  if constexpr (std::is_const_v<T>) {
    return false;
  } else if constexpr (std::is_aggregate_v<T>) {
    return true;
  } else {
    return readable<T>();
  }
}
/// The same for an item that is decoded first and then moved into its container.
template <class T>
consteval bool readable_item() {
  if constexpr (std::is_default_constructible_v<T> && std::is_move_constructible_v<T>) {
    return readable_part<T>();
  } else {
    return false;
  }
}

json::value literal_schema(std::string_view text);
bool decode_literal(const json::value& value, std::string_view text, Decoder& decoder);

}  // namespace detail

/// Converts between `T` and JSON. Specialise it for a type of your own that is not an aggregate.
/// schema() returns the JSON Schema; decode() reads into `out` and returns true, or returns
/// decoder.fail(...); encode() returns the JSON. Several threads may call them at the same time,
/// also threads of the library other than its event loops. They must not wait: long arguments of
/// all clients are decoded on two threads.
template <class T>
struct Codec {
  static_assert(
      !std::is_pointer_v<T>,
      "a pointer has no JSON form: use the value itself, std::optional or std::unique_ptr");
  static_assert(!std::is_array_v<T>, "a C array has no JSON form: use std::array or std::vector");
  static_assert(!detail::kIsCharacter<T>, "a character has no JSON form: use std::string");
  static_assert(!std::same_as<T, std::string_view>,
                "std::string_view would outlive the JSON it looks at: use std::string");
  static_assert(!std::is_enum_v<T>,
                "this enum needs a fixed underlying type: write `enum class`, or `enum E : int`");
  static_assert(!std::is_union_v<T>, "a union has no JSON form: use std::variant");
  static_assert(std::is_pointer_v<T> || std::is_array_v<T> || detail::kIsCharacter<T> ||
                    std::same_as<T, std::string_view> || std::is_enum_v<T> || std::is_union_v<T>,
                "this type has no JSON form: make it an aggregate (no constructors, no private "
                "members), use one of the types that sluice/codec.hpp lists, or specialise "
                "sluice::Codec for it");

  static json::value schema(SchemaBuilder& builder);
  static bool decode(const json::value& value, T& out, Decoder& decoder);
  static json::value encode(const T& value, Encoder& encoder);
};

/// Text as a template argument.
template <std::size_t kSize>
struct FixedText {
  consteval FixedText(const char (&text)[kSize]) {  // NOLINT(google-explicit-constructor)
    for (std::size_t i = 0; i < kSize; ++i) characters[i] = text[i];
  }
  constexpr std::string_view view() const { return {characters, kSize - 1}; }
  char characters[kSize];
};

/// A string that can have only one value. A member such as `Literal<"circle"> kind;` distinguishes
/// one alternative of a std::variant from the others.
template <FixedText kText>
struct Literal {
  static constexpr std::string_view text() { return kText.view(); }
  bool operator==(const Literal&) const = default;
};

/// Encoded like `T`; cannot be decoded.
template <class T>
struct Codec<const T> : Codec<T> {};

template <>
struct Codec<bool> : detail::TableCodec<bool, detail::kBoolType> {};

/// The schema has bounds for types narrower than 32 bits, and a minimum for unsigned types. Only
/// decoding checks the other bounds: ten digits in a schema would tell its reader nothing.
template <class T>
  requires(std::integral<T> && sizeof(T) <= sizeof(long long) && !std::same_as<T, bool> &&
           !detail::kIsCharacter<T>)
struct Codec<T> : detail::TableCodec<T, detail::kIntegerTypes[detail::integer_index<T>()]> {};

template <>
struct Codec<float> : detail::TableCodec<float, detail::kFloatType> {};
template <>
struct Codec<double> : detail::TableCodec<double, detail::kDoubleType> {};

template <>
struct Codec<long double> : detail::TableCodec<long double, detail::kLongDoubleType> {};

template <>
struct Codec<std::string> : detail::TableCodec<std::string, detail::kStringType> {};

template <FixedText kText>
struct Codec<Literal<kText>> {
  static json::value schema(SchemaBuilder&) { return detail::literal_schema(kText.view()); }
  static bool decode(const json::value& value, Literal<kText>&, Decoder& decoder) {
    return detail::decode_literal(value, kText.view(), decoder);
  }
  static json::value encode(Literal<kText>, Encoder&) { return json::string(kText.view()); }
};

template <>
struct Codec<json::value> : detail::TableCodec<json::value, detail::kJsonValueType> {};
template <>
struct Codec<json::object> : detail::TableCodec<json::object, detail::kJsonObjectType> {};
template <>
struct Codec<json::array> : detail::TableCodec<json::array, detail::kJsonArrayType> {};

template <>
struct Codec<std::monostate> {
  static json::value schema(SchemaBuilder&) { return {{"type", "null"}}; }
  static bool decode(const json::value& value, std::monostate&, Decoder& decoder) {
    return value.is_null() || decoder.fail_type("null", value);
  }
  static json::value encode(const std::monostate&, Encoder&) { return nullptr; }
};

namespace detail {

template <class T>
inline constexpr auto kEnumPairs = [] {
  if constexpr (requires { Describe<T>::names; }) {
    std::array<Enumerator<T>, Describe<T>::names.size()> pairs;
    for (std::size_t i = 0; i < pairs.size(); ++i) {
      pairs[i] = {Describe<T>::names[i].first, Describe<T>::names[i].second};
    }
    return pairs;
  } else {
    return kEnumerators<T>;
  }
}();

template <class T>
inline constexpr auto kEnumNames = [] {
  std::array<std::string_view, kEnumPairs<T>.size()> names;
  for (std::size_t i = 0; i < names.size(); ++i) names[i] = kEnumPairs<T>[i].name;
  return names;
}();

template <class T>
inline constexpr auto kEnumValues = [] {
  std::array<T, kEnumPairs<T>.size()> values{};
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = kEnumPairs<T>[i].value;
  return values;
}();

template <class T>
inline constinit const EnumType kEnumType = {
    {.schema = enum_schema,
     .decode = decode_enum,
     .encode = encode_enum,
     .size = sizeof(T),
     .kind = Type::Kind::enumeration,
     .is_signed = std::is_signed_v<std::underlying_type_t<T>>,
     .is_leaf = true},
    kEnumNames<T>.data(),
    kEnumValues<T>.data(),
    kEnumNames<T>.size(),
    pretty_type<T>()};

}  // namespace detail

template <detail::FixedEnum T>
struct Codec<T> : detail::TableCodec<T, detail::kEnumType<T>> {
  static_assert(!detail::kEnumPairs<T>.empty(),
                "no enumerator of this enum is between -16 and 127: list them in a "
                "specialisation of sluice::Describe (see sluice/describe.hpp)");
};

namespace detail {

// The table of a type whose codec does not have one.

template <class T>
json::value codec_schema(const Type&, SchemaBuilder& builder) {
  return Codec<T>::schema(builder);
}
template <class T>
bool codec_decode(const Type&, const json::value& value, void* out, Decoder& decoder) {
  // A copy of a JSON value uses the memory resource of the original. A message's memory is freed
  // before its call ends, and the codec may keep a copy, so it gets a value on the heap: a copy,
  // unless the codec around it has one already.
  if (value.storage() == json::storage_ptr()) {
    return Codec<T>::decode(value, *static_cast<T*>(out), decoder);
  }
  const json::value owned(value, json::storage_ptr());
  return Codec<T>::decode(owned, *static_cast<T*>(out), decoder);
}
template <class T>
json::value codec_encode(const Type&, const void* value, Encoder& encoder) {
  return Codec<T>::encode(*static_cast<const T*>(value), encoder);
}
template <class T>
json::value codec_encode_initial(Encoder& encoder) {
  const T initial{};
  return Codec<T>::encode(initial, encoder);
}

template <class T>
inline constexpr bool kIsLiteral = false;
template <FixedText kText>
inline constexpr bool kIsLiteral<Literal<kText>> = true;

template <class T>
concept CodecReads = requires(const json::value& value, T& out, Decoder& decoder) {
  Codec<T>::decode(value, out, decoder);
};

template <class T>
constexpr Type make_codec_type() {
  Type out{.schema = codec_schema<T>,
           .decode = decode_unreadable,
           .encode = codec_encode<T>,
           .size = sizeof(T),
           .kind = std::is_enum_v<T> ? Type::Kind::enumeration : Type::Kind::plain,
           .has_initial = std::is_default_constructible_v<T>,
           .is_leaf = kIsLiteral<T>};
  if constexpr (CodecReads<T>) out.decode = codec_decode<T>;
  if constexpr (std::is_default_constructible_v<T> && !std::is_enum_v<T>) {
    out.encode_initial = codec_encode_initial<T>;
  }
  return out;
}

template <class T>
inline constinit const Type kCodecType = make_codec_type<T>();

template <class T>
concept HasTable = requires { requires std::same_as<typename Codec<T>::TableOf, T>; };

/// The table of `T`. A codec that is derived from the codec of another type does not use that
/// type's table.
template <class T>
constexpr const Type* type_of() {
  if constexpr (std::is_const_v<T>) {
    return type_of<std::remove_const_t<T>>();
  } else if constexpr (HasTable<T>) {
    return Codec<T>::kType;
  } else {
    return &kCodecType<T>;
  }
}

template <class T>
consteval bool readable() {
  if constexpr (std::is_const_v<T>) {
    return false;
  } else if constexpr (HasTable<T> && requires { Codec<T>::readable(); }) {
    return Codec<T>::readable();
  } else {
    return CodecReads<T>;
  }
}

/// The table of `T`. Compiles only if a `T` can be decoded.
template <class T>
constexpr const Type* readable_type_of() {
  static_assert(readable<T>(),
                "this type can be encoded, but not decoded: it or one of its members is const, "
                "has no default constructor, cannot be assigned, or its Codec has no decode()");
  return type_of<T>();
}

}  // namespace detail

}  // namespace sluice
