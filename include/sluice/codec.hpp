#pragma once

// How C++ types and JSON correspond:
//
//   bool                                          boolean
//   integers                                      integer
//   float, double                                 number
//   std::string                                   string (UTF-8)
//   enum                                          string: the enumerator's name
//   sluice::Literal<"text">                       that string alone
//   json::value, object, array                    themselves
//   an aggregate of these                         object (sluice/schema.hpp)
//   containers, optionals, tuples, variants       sluice/container_codecs.hpp

#include <algorithm>
#include <array>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>

#include "sluice/describe.hpp"
#include "sluice/detail/aggregate.hpp"
#include "sluice/detail/coding.hpp"
#include "sluice/json.hpp"

namespace sluice {

namespace detail {

template <class T>
inline constexpr bool kIsCharacter =
    std::same_as<T, char> || std::same_as<T, wchar_t> || std::same_as<T, char8_t> ||
    std::same_as<T, char16_t> || std::same_as<T, char32_t>;

}  // namespace detail

/// The correspondence of `T` and JSON. Specialise it for a type of your own that is no aggregate:
/// schema(builder) is its JSON Schema, decode(value, out, decoder) reads it or returns
/// decoder.fail(...), encode(value, encoder) writes it.
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
    std::copy_n(text, kSize, characters);
  }
  constexpr std::string_view view() const { return {characters, kSize - 1}; }
  char characters[kSize];
};

/// A string that has one value: `Literal<"circle"> kind;` tells one alternative of a std::variant
/// from the others.
template <FixedText kText>
struct Literal {
  static constexpr std::string_view text() { return kText.view(); }
  bool operator==(const Literal&) const = default;
};

template <>
struct Codec<bool> {
  static json::value schema(SchemaBuilder&) { return {{"type", "boolean"}}; }
  static bool decode(const json::value& value, bool& out, Decoder& decoder) {
    if (!value.is_bool()) return decoder.fail_type("boolean", value);
    out = value.get_bool();
    return true;
  }
  static json::value encode(bool value, Encoder&) { return value; }
};

/// The schema bounds what is narrower than 32 bits, and unsigned from below; the rest is left to
/// decoding, since bounds of ten digits tell a reader nothing.
template <class T>
  requires(std::integral<T> && !std::same_as<T, bool> && !detail::kIsCharacter<T>)
struct Codec<T> {
  using Limits = std::numeric_limits<T>;

  static json::value schema(SchemaBuilder&) {
    json::object out{{"type", "integer"}};
    constexpr bool kNarrow = sizeof(T) < sizeof(std::int32_t);
    if (kNarrow || std::is_unsigned_v<T>) out["minimum"] = Limits::min();
    if (kNarrow) out["maximum"] = Limits::max();
    return out;
  }

  static bool decode(const json::value& value, T& out, Decoder& decoder) {
    if (!value.is_number()) return decoder.fail_type("integer", value);
    if (value.is_double()) {
      const double number = value.get_double();
      if (number != std::trunc(number)) return decoder.fail_value("integer", value);
      // Both bounds are powers of two, and so exact.
      constexpr double kLow = static_cast<double>(Limits::min());
      const double above = std::ldexp(1.0, Limits::digits);
      if (!(number >= kLow && number < above)) return fail_range(value, decoder);
      out = static_cast<T>(number);
      return true;
    }
    const bool fits = value.is_int64() ? std::in_range<T>(value.get_int64())
                                       : std::in_range<T>(value.get_uint64());
    if (!fits) return fail_range(value, decoder);
    out = value.is_int64() ? static_cast<T>(value.get_int64()) : static_cast<T>(value.get_uint64());
    return true;
  }

  static json::value encode(T value, Encoder&) { return value; }

 private:
  static bool fail_range(const json::value& value, Decoder& decoder) {
    return decoder.fail_value(
        "integer from " + std::to_string(Limits::min()) + " to " + std::to_string(Limits::max()),
        value);
  }
};

template <std::floating_point T>
struct Codec<T> {
  static json::value schema(SchemaBuilder&) { return {{"type", "number"}}; }
  static bool decode(const json::value& value, T& out, Decoder& decoder) {
    if (!value.is_number()) return decoder.fail_type("number", value);
    out = value.to_number<T>();
    return std::isfinite(out) ||
           decoder.fail("expected number, got one that is too large to be stored");
  }
  static json::value encode(T value, Encoder&) {
    return Encoder::number(static_cast<double>(value));
  }
};

template <>
struct Codec<std::string> {
  static json::value schema(SchemaBuilder&) { return {{"type", "string"}}; }
  static bool decode(const json::value& value, std::string& out, Decoder& decoder) {
    if (!value.is_string()) return decoder.fail_type("string", value);
    out.assign(value.get_string().data(), value.get_string().size());
    return true;
  }
  static json::value encode(const std::string& value, Encoder&) { return json::string(value); }
};

template <FixedText kText>
struct Codec<Literal<kText>> {
  static json::value schema(SchemaBuilder&) {
    return {{"type", "string"}, {"const", kText.view()}};
  }
  static bool decode(const json::value& value, Literal<kText>&, Decoder& decoder) {
    static constexpr std::array kNames{kText.view()};
    return (value.is_string() && std::string_view(value.get_string()) == kText.view()) ||
           decoder.fail_name(kNames, value);
  }
  static json::value encode(Literal<kText>, Encoder&) { return json::string(kText.view()); }
};

template <class T>
  requires std::same_as<T, json::value> || std::same_as<T, json::object> ||
           std::same_as<T, json::array>
struct Codec<T> {
  static json::value schema(SchemaBuilder&) {
    if constexpr (std::same_as<T, json::object>) return {{"type", "object"}};
    if constexpr (std::same_as<T, json::array>) return {{"type", "array"}};
    return json::object();
  }
  static bool decode(const json::value& value, T& out, Decoder& decoder) {
    if constexpr (std::same_as<T, json::object>) {
      if (!value.is_object()) return decoder.fail_type("object", value);
      out = value.get_object();
    } else if constexpr (std::same_as<T, json::array>) {
      if (!value.is_array()) return decoder.fail_type("array", value);
      out = value.get_array();
    } else {
      out = value;
    }
    return true;
  }
  static json::value encode(const T& value, Encoder&) { return value; }
};

template <>
struct Codec<std::monostate> {
  static json::value schema(SchemaBuilder&) { return {{"type", "null"}}; }
  static bool decode(const json::value& value, std::monostate&, Decoder& decoder) {
    return value.is_null() || decoder.fail_type("null", value);
  }
  static json::value encode(std::monostate, Encoder&) { return nullptr; }
};

template <detail::FixedEnum T>
struct Codec<T> {
  static json::value schema(SchemaBuilder&) {
    json::array names;
    for (const std::string_view name : kNames) names.emplace_back(name);
    return {{"type", "string"}, {"enum", std::move(names)}};
  }

  static bool decode(const json::value& value, T& out, Decoder& decoder) {
    if (value.is_string()) {
      const auto found = std::ranges::find(kNames, std::string_view(value.get_string()));
      if (found != kNames.end()) {
        out = kValues[static_cast<std::size_t>(found - kNames.begin())];
        return true;
      }
    }
    return decoder.fail_name(kNames, value);
  }

  static json::value encode(T value, Encoder&) {
    const auto found = std::ranges::find(kValues, value);
    if (found == kValues.end()) {
      Encoder::fail_enumerator(
          detail::kTypeName<T>,
          static_cast<long long>(static_cast<std::underlying_type_t<T>>(value)));
    }
    return json::string(kNames[static_cast<std::size_t>(found - kValues.begin())]);
  }

 private:
  static constexpr auto kPairs = [] {
    if constexpr (requires { Describe<T>::names; }) {
      std::array<detail::Enumerator<T>, Describe<T>::names.size()> pairs;
      for (std::size_t i = 0; i < pairs.size(); ++i) {
        pairs[i] = {Describe<T>::names[i].first, Describe<T>::names[i].second};
      }
      return pairs;
    } else {
      return detail::kEnumerators<T>;
    }
  }();
  static_assert(!kPairs.empty(),
                "no enumerator of this enum is between -16 and 127: list them in a "
                "specialisation of sluice::Describe (see sluice/describe.hpp)");
  static constexpr auto kNames = [] {
    std::array<std::string_view, kPairs.size()> names;
    for (std::size_t i = 0; i < names.size(); ++i) names[i] = kPairs[i].name;
    return names;
  }();
  static constexpr auto kValues = [] {
    std::array<T, kPairs.size()> values{};
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = kPairs[i].value;
    return values;
  }();
};

}  // namespace sluice
