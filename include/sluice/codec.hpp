#pragma once

// How C++ types and JSON correspond:
//
//   bool, integers, float, double      boolean, integer, number
//   std::string                        string (UTF-8)
//   enum                               string: the enumerator's name
//   sluice::Literal<"text">            that string alone
//   std::optional, std::unique_ptr     what is inside, or null; as a member: what is inside, or
//   missing std::vector, deque, list, array    array std::set, unordered_set            array
//   without equal items std::pair, std::tuple              array of that length std::map,
//   unordered_map            object; the keys are std::string std::variant the first alternative
//   that fits; std::monostate is null an aggregate of these              object: see
//   sluice/schema.hpp json::value, object, array         themselves

#include <algorithm>
#include <array>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <limits>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <variant>
#include <vector>

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

namespace detail {

template <class T>
struct IsNullable : std::false_type {};
template <class T>
struct IsNullable<std::optional<T>> : std::true_type {
  using inside = T;
  static void emplace(std::optional<T>& out, T&& value) { out = std::move(value); }
};
template <class T>
struct IsNullable<std::unique_ptr<T>> : std::true_type {
  using inside = T;
  static void emplace(std::unique_ptr<T>& out, T&& value) {
    out = std::make_unique<T>(std::move(value));
  }
};
template <class T>
struct IsNullable<std::shared_ptr<T>> : std::true_type {
  using inside = T;
  static void emplace(std::shared_ptr<T>& out, T&& value) {
    out = std::make_shared<T>(std::move(value));
  }
};
template <class T>
concept Nullable = IsNullable<T>::value;

json::value nullable_schema(json::value inside);

template <class T>
struct IsSequence : std::false_type {};
template <class T, class A>
struct IsSequence<std::vector<T, A>> : std::true_type {};
template <class T, class A>
struct IsSequence<std::deque<T, A>> : std::true_type {};
template <class T, class A>
struct IsSequence<std::list<T, A>> : std::true_type {};

template <class T>
struct IsSet : std::false_type {};
template <class T, class C, class A>
struct IsSet<std::set<T, C, A>> : std::true_type {};
template <class T, class H, class E, class A>
struct IsSet<std::unordered_set<T, H, E, A>> : std::true_type {};

template <class T>
struct IsMap : std::false_type {};
template <class K, class T, class C, class A>
struct IsMap<std::map<K, T, C, A>> : std::true_type {};
template <class K, class T, class H, class E, class A>
struct IsMap<std::unordered_map<K, T, H, E, A>> : std::true_type {};

template <class T>
struct IsArray : std::false_type {};
template <class T, std::size_t kSize>
struct IsArray<std::array<T, kSize>> : std::true_type {};

template <class T>
struct IsTuple : std::false_type {};
template <class... T>
struct IsTuple<std::tuple<T...>> : std::true_type {};
template <class A, class B>
struct IsTuple<std::pair<A, B>> : std::true_type {};

template <class T>
bool decode_item(const json::array& array, std::size_t index, T& out, Decoder& decoder) {
  return Codec<T>::decode(array[index], out, decoder) || decoder.fail_at(index);
}

}  // namespace detail

template <detail::Nullable T>
struct Codec<T> {
  using Inside = typename detail::IsNullable<T>::inside;

  static json::value schema(SchemaBuilder& builder) {
    return detail::nullable_schema(Codec<Inside>::schema(builder));
  }
  static bool decode(const json::value& value, T& out, Decoder& decoder) {
    if (value.is_null()) {
      out = T{};
      return true;
    }
    return decode_inside(value, out, decoder);
  }
  /// For a member: there, it is missing rather than null.
  static bool decode_inside(const json::value& value, T& out, Decoder& decoder) {
    Inside inside{};
    if (!Codec<Inside>::decode(value, inside, decoder)) return false;
    detail::IsNullable<T>::emplace(out, std::move(inside));
    return true;
  }
  static json::value encode(const T& value, Encoder& encoder) {
    return value ? Codec<Inside>::encode(*value, encoder) : json::value(nullptr);
  }
};

template <class T>
  requires(detail::IsSequence<T>::value || detail::IsSet<T>::value)
struct Codec<T> {
  using Item = typename T::value_type;

  static json::value schema(SchemaBuilder& builder) {
    json::object out{{"type", "array"}, {"items", Codec<Item>::schema(builder)}};
    if constexpr (detail::IsSet<T>::value) out["uniqueItems"] = true;
    return out;
  }
  static bool decode(const json::value& value, T& out, Decoder& decoder) {
    if (!value.is_array()) return decoder.fail_type("array", value);
    if (!decoder.enter()) return false;
    out.clear();
    const json::array& array = value.get_array();
    for (std::size_t i = 0; i < array.size(); ++i) {
      Item item{};
      if (!detail::decode_item(array, i, item, decoder)) return false;
      if constexpr (detail::IsSet<T>::value) {
        if (!out.insert(std::move(item)).second) {
          decoder.fail("is equal to an item before it");
          return decoder.fail_at(i);
        }
      } else {
        out.push_back(std::move(item));
      }
    }
    decoder.leave();
    return true;
  }
  static json::value encode(const T& value, Encoder& encoder) {
    encoder.enter();
    json::array out;
    out.reserve(value.size());
    for (const auto& item : value) out.push_back(Codec<Item>::encode(item, encoder));
    encoder.leave();
    return out;
  }
};

template <class T, std::size_t kSize>
struct Codec<std::array<T, kSize>> {
  static json::value schema(SchemaBuilder& builder) {
    return {{"type", "array"},
            {"items", Codec<T>::schema(builder)},
            {"minItems", kSize},
            {"maxItems", kSize}};
  }
  static bool decode(const json::value& value, std::array<T, kSize>& out, Decoder& decoder) {
    if (!value.is_array()) return decoder.fail_type("array", value);
    const json::array& array = value.get_array();
    if (array.size() != kSize) return decoder.fail_size(kSize, array.size());
    if (!decoder.enter()) return false;
    for (std::size_t i = 0; i < kSize; ++i) {
      if (!detail::decode_item(array, i, out[i], decoder)) return false;
    }
    decoder.leave();
    return true;
  }
  static json::value encode(const std::array<T, kSize>& value, Encoder& encoder) {
    encoder.enter();
    json::array out;
    for (const T& item : value) out.push_back(Codec<T>::encode(item, encoder));
    encoder.leave();
    return out;
  }
};

template <class T>
  requires detail::IsTuple<T>::value
struct Codec<T> {
  static constexpr std::size_t kSize = std::tuple_size_v<T>;

  static json::value schema(SchemaBuilder& builder) {
    json::array items;
    each([&]<std::size_t kIndex>() { items.push_back(Item<kIndex>::schema(builder)); });
    return {{"type", "array"},
            {"prefixItems", std::move(items)},
            {"items", false},
            {"minItems", kSize}};
  }
  static bool decode(const json::value& value, T& out, Decoder& decoder) {
    if (!value.is_array()) return decoder.fail_type("array", value);
    const json::array& array = value.get_array();
    if (array.size() != kSize) return decoder.fail_size(kSize, array.size());
    if (!decoder.enter()) return false;
    bool good = true;
    each([&]<std::size_t kIndex>() {
      good = good && detail::decode_item(array, kIndex, std::get<kIndex>(out), decoder);
    });
    decoder.leave();
    return good;
  }
  static json::value encode(const T& value, Encoder& encoder) {
    encoder.enter();
    json::array out;
    each([&]<std::size_t kIndex>() {
      out.push_back(Item<kIndex>::encode(std::get<kIndex>(value), encoder));
    });
    encoder.leave();
    return out;
  }

 private:
  template <std::size_t kIndex>
  using Item = Codec<std::tuple_element_t<kIndex, T>>;

  template <class Visit>
  static void each(const Visit& visit) {
    [&]<std::size_t... kIndex>(std::index_sequence<kIndex...>) {
      (visit.template operator()<kIndex>(), ...);
    }(std::make_index_sequence<kSize>{});
  }
};

template <class T>
  requires detail::IsMap<T>::value
struct Codec<T> {
  static_assert(std::same_as<typename T::key_type, std::string>,
                "the keys of a JSON object are text: use std::string as the key type");
  using Value = typename T::mapped_type;

  static json::value schema(SchemaBuilder& builder) {
    return {{"type", "object"}, {"additionalProperties", Codec<Value>::schema(builder)}};
  }
  static bool decode(const json::value& value, T& out, Decoder& decoder) {
    if (!value.is_object()) return decoder.fail_type("object", value);
    if (!decoder.enter()) return false;
    out.clear();
    for (const auto& [name, member] : value.get_object()) {
      Value item{};
      if (!Codec<Value>::decode(member, item, decoder)) {
        return decoder.fail_at(std::string_view(name));
      }
      out.emplace(name, std::move(item));
    }
    decoder.leave();
    return true;
  }
  static json::value encode(const T& value, Encoder& encoder) {
    encoder.enter();
    json::object out;
    for (const auto& [name, member] : value) out[name] = Codec<Value>::encode(member, encoder);
    encoder.leave();
    return out;
  }
};

template <class... T>
struct Codec<std::variant<T...>> {
  static json::value schema(SchemaBuilder& builder) {
    return {{"anyOf", json::array{Codec<T>::schema(builder)...}}};
  }
  static bool decode(const json::value& value, std::variant<T...>& out, Decoder& decoder) {
    Decoder::Alternatives failures;
    return (decode_as<T>(value, out, decoder, failures) || ...) || failures.fail(decoder, value);
  }
  static json::value encode(const std::variant<T...>& value, Encoder& encoder) {
    return std::visit(
        [&]<class Alternative>(const Alternative& alternative) {
          return Codec<Alternative>::encode(alternative, encoder);
        },
        value);
  }

 private:
  template <class Alternative>
  static bool decode_as(const json::value& value, std::variant<T...>& out, Decoder& decoder,
                        Decoder::Alternatives& failures) {
    Decoder own = decoder.alternative();
    Alternative alternative{};
    if (!Codec<Alternative>::decode(value, alternative, own)) {
      failures.add(std::move(own));
      return false;
    }
    out = std::move(alternative);
    return true;
  }
};

}  // namespace sluice
