#pragma once

// JSON Schema, decoding and encoding from one declaration: a plain struct.
//
//   struct Move { int to; std::optional<int> by; bool quiet = true; };
//
//   sluice::schema_of<Move>()   {"type":"object","properties":{"to":{"type":"integer"},
//                                "by":{"type":"integer"},"quiet":{"type":"boolean","default":true}},
//                                "required":["to"],"additionalProperties":false}
//   sluice::decode<Move>(value, "arguments")   a Move, or `arguments.to: expected integer, got
//   string` sluice::encode(Move{.to = 3})              {"to":3,"quiet":true}
//
// A member may be missing if it is a std::optional or a smart pointer, if its initialiser gives it
// another value than 0, false, "" or {} (C++ cannot tell those from no initialiser), or if the
// description says optional(). A missing member keeps what its initialiser says, which is the
// `default` in the schema. An empty std::optional is not written, and null does not stand for it.
// A member that the struct does not have is an error, unless the description says open() or the
// caller says UnknownMembers::ignore.
//
// Decoding checks types and ranges of types. Bounds, patterns and other keywords of a description
// stand in the schema: a server validates arguments against it before it decodes them.
//
// Structs have up to 32 members, and no base classes, C arrays, bit-fields or references. See
// sluice/codec.hpp for the types of members and sluice/describe.hpp for what can be said about
// them.

#include <array>
#include <concepts>
#include <cstddef>
#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

#include "sluice/codec.hpp"
#include "sluice/container_codecs.hpp"
#include "sluice/describe.hpp"
#include "sluice/detail/aggregate.hpp"
#include "sluice/detail/coding.hpp"
#include "sluice/json.hpp"

namespace sluice {

/// Why JSON is not a `T`, and where.
struct DecodeError {
  std::string path;     // `arguments.items[2].to`
  std::string message;  // `expected integer, got string`

  /// `arguments.items[2].to: expected integer, got string`
  std::string describe() const { return path + ": " + message; }
};

namespace detail {

template <class T>
concept Struct = std::is_aggregate_v<T> && std::is_class_v<T> && !std::is_union_v<T>;

/// Its address identifies a type.
template <class T>
inline constexpr char kTypeKey = 0;

template <class T>
concept DescribesItself = requires {
  { T::describe() } -> std::convertible_to<StructDescription>;
};
template <class T>
concept DescribedOutside = requires {
  { Describe<T>::describe() } -> std::convertible_to<StructDescription>;
};

template <class T>
StructDescription description_of() {
  if constexpr (DescribesItself<T>) {
    return T::describe();
  } else if constexpr (DescribedOutside<T>) {
    return Describe<T>::describe();
  } else {
    return StructDescription("", {});
  }
}

/// The schema of a struct, member by member.
class StructSchema {
 public:
  explicit StructSchema(const StructDescription& description);
  /// `preset` is the `default`, null if there is none.
  void add(std::string_view name, json::value schema, bool optional,
           const std::optional<json::value>& preset, SchemaBuilder& builder);
  json::value finish() &&;

 private:
  const StructDescription& description_;
  json::object properties_;
  json::array required_;
};

/// What its initialiser says about a member: its value in JSON, unless that is what it would be
/// without an initialiser.
template <class M>
std::optional<json::value> preset_of(const M& member) {
  Encoder encoder;
  if constexpr (Nullable<M>) {
    if (!member) return std::nullopt;
    return Codec<M>::encode(member, encoder);
  } else {
    const M plain{};
    if constexpr (std::is_enum_v<M>) {
      if (member == plain) return std::nullopt;  // 0 need not be an enumerator
      return Codec<M>::encode(member, encoder);
    } else {
      json::value value = Codec<M>::encode(member, encoder);
      if (value == Codec<M>::encode(plain, encoder)) return std::nullopt;
      return value;
    }
  }
}

/// What decoding needs to know about a struct.
template <class T>
struct StructTraits {
  static constexpr std::size_t kCount = count_members<T>();

  bool open = false;
  std::array<bool, kCount> optional{};

  static const StructTraits& get() {
    static const StructTraits traits = make();
    return traits;
  }

 private:
  static StructTraits make() {
    StructTraits traits;
    const StructDescription description = description_of<T>();
    traits.open = description.is_open();
    const T presets{};
    const auto members = tie_members(presets);
    [&]<std::size_t... kIndex>(std::index_sequence<kIndex...>) {
      ((traits.optional[kIndex] =
            is_optional(std::get<kIndex>(members), description.find(kMemberNames<T>[kIndex]))),
       ...);
    }(std::make_index_sequence<kCount>{});
    return traits;
  }

  template <class M>
  static bool is_optional(const M& preset, const MemberDescription* described) {
    return Nullable<M> || (described != nullptr && described->optional) ||
           preset_of(preset).has_value();
  }
};

}  // namespace detail

template <detail::Struct T>
struct Codec<T> {
  static_assert(detail::kInitializers<T> <= detail::kMaxMembers,
                "a struct may have up to 32 members: put some of them into structs of their own");
  static_assert(!detail::kHasBase<T>,
                "a struct with a base class has no JSON form: make the base class a member");
  static_assert(detail::kInitializers<T> > detail::kMaxMembers || !detail::kHasArray<T>,
                "a C array has no JSON form: use std::array or std::vector");
  static_assert(std::default_initializable<T>,
                "a struct needs a default for each member: one of them cannot be made from {}");

  static json::value schema(SchemaBuilder& builder) {
    return builder.define(&detail::kTypeKey<T>, detail::kTypeName<T>, [&] {
      const StructDescription description = detail::description_of<T>();
      detail::StructSchema out(description);
      const T presets{};
      const auto members = detail::tie_members(presets);
      each([&]<std::size_t kIndex>() {
        using Member = std::remove_cvref_t<decltype(std::get<kIndex>(members))>;
        // optional() makes a preset of what looks like none.
        Encoder encoder;
        const auto* const described = description.find(kNames[kIndex]);
        std::optional<json::value> preset = detail::preset_of(std::get<kIndex>(members));
        if constexpr (!detail::Nullable<Member>) {
          if (!preset && described != nullptr && described->optional) {
            preset = Codec<Member>::encode(std::get<kIndex>(members), encoder);
          }
        }
        out.add(kNames[kIndex], member_schema<Member>(builder),
                detail::StructTraits<T>::get().optional[kIndex], preset, builder);
      });
      return std::move(out).finish();
    });
  }

  static bool decode(const json::value& value, T& out, Decoder& decoder) {
    if (!value.is_object()) return decoder.fail_type("object", value);
    if (!decoder.enter()) return false;
    const json::object& object = value.get_object();
    const detail::StructTraits<T>& traits = detail::StructTraits<T>::get();
    out = T{};
    const auto members = detail::tie_members(out);
    std::size_t found = 0;
    bool good = true;
    each([&]<std::size_t kIndex>() {
      good = good && decode_member(object, kNames[kIndex], std::get<kIndex>(members),
                                   traits.optional[kIndex], found, decoder);
    });
    if (!good) return false;
    if (found != object.size() && !traits.open && !decoder.ignores_unknown_members()) {
      return decoder.fail_unknown(object, kNames);
    }
    decoder.leave();
    return true;
  }

  static json::value encode(const T& value, Encoder& encoder) {
    encoder.enter();
    json::object out;
    out.reserve(kNames.size());
    const auto members = detail::tie_members(value);
    each([&]<std::size_t kIndex>() {
      const auto& member = std::get<kIndex>(members);
      using Member = std::remove_cvref_t<decltype(member)>;
      if constexpr (detail::Nullable<Member>) {
        if (!member) return;
      }
      out.emplace(kNames[kIndex], Codec<Member>::encode(member, encoder));
    });
    encoder.leave();
    return out;
  }

 private:
  static constexpr const auto& kNames = detail::kMemberNames<T>;

  template <class Visit>
  static void each(const Visit& visit) {
    [&]<std::size_t... kIndex>(std::index_sequence<kIndex...>) {
      (visit.template operator()<kIndex>(), ...);
    }(std::make_index_sequence<detail::count_members<T>()>{});
  }

  template <class Member>
  static json::value member_schema(SchemaBuilder& builder) {
    if constexpr (detail::Nullable<Member>) {
      return Codec<typename detail::IsNullable<Member>::inside>::schema(builder);
    } else {
      return Codec<Member>::schema(builder);
    }
  }

  template <class Member>
  static bool decode_member(const json::object& object, std::string_view name, Member& out,
                            bool optional, std::size_t& found, Decoder& decoder) {
    const json::value* const value = object.if_contains(name);
    if (value == nullptr) return optional || decoder.fail_missing(name);
    ++found;
    if constexpr (detail::Nullable<Member>) {
      return Codec<Member>::decode_inside(*value, out, decoder) || decoder.fail_at(name);
    } else {
      return Codec<Member>::decode(*value, out, decoder) || decoder.fail_at(name);
    }
  }
};

/// The JSON Schema (2020-12) of `T`. Throws std::logic_error where its descriptions contradict
/// MCP's rules for `x-mcp-header`.
template <class T>
json::value schema_of() {
  SchemaBuilder builder(&detail::kTypeKey<T>);
  json::value schema = Codec<T>::schema(builder);
  return builder.finish(std::move(schema));
}

/// Reads a `T`. `root` is what errors call `value`. At most 128 levels deep.
template <class T>
std::expected<T, DecodeError> decode(const json::value& value, std::string_view root = "value",
                                     UnknownMembers unknown = UnknownMembers::reject) {
  T out{};
  Decoder decoder(unknown);
  if (!Codec<T>::decode(value, out, decoder)) {
    return std::unexpected(DecodeError{decoder.path(root), decoder.message()});
  }
  return out;
}

/// Writes a `T`. Throws std::domain_error for NaN, infinity and what is no enumerator of its enum,
/// and std::length_error beyond 128 levels: JSON has no text for the former, and nobody reads the
/// latter.
template <class T>
json::value encode(const T& value) {
  Encoder encoder;
  return Codec<T>::encode(value, encoder);
}

}  // namespace sluice
