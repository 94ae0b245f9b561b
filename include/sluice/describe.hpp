#pragma once

// What a plain struct cannot say by itself: descriptions and bounds of its members. A struct says
// it in a static function describe(); for one that is not yours, specialise sluice::Describe.
//
//   struct Search {
//     std::string query;
//     int limit = 10;
//
//     static auto describe() {
//       return sluice::describe("Searches the archive",
//                               sluice::field<&Search::query>("What to look for").min_length(1),
//                               sluice::field<&Search::limit>().minimum(1).maximum(100));
//     }
//   };

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "sluice/detail/aggregate.hpp"
#include "sluice/json.hpp"

namespace sluice {

/// Describes a type that cannot have a describe() of its own. For a struct: `static auto
/// describe()`. For an enum: `static constexpr auto names = std::to_array<std::pair<Color,
/// std::string_view>>(...)` with the names of all its enumerators in JSON.
template <class T>
struct Describe;

/// The name in `Mcp-Param-<name>`: a token of RFC 9110 section 5.6.2, checked by the compiler.
class HeaderName {
 public:
  template <class Text>
    requires std::convertible_to<const Text&, std::string_view>
  consteval HeaderName(const Text& text) : text_(text) {  // NOLINT(google-explicit-constructor)
    constexpr std::string_view kMarks = "!#$%&'*+-.^_`|~";
    if (text_.empty()) throw "a header name is not empty";
    for (const char c : text_) {
      const bool allowed = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                           (c >= '0' && c <= '9') || kMarks.contains(c);
      if (!allowed) throw "a header name consists of letters, digits and !#$%&'*+-.^_`|~";
    }
  }
  constexpr std::string_view text() const { return text_; }

 private:
  std::string_view text_;
};

namespace detail {

template <class T>
struct MemberPointer;
template <class Owner, class Value>
struct MemberPointer<Value Owner::*> {
  using owner_type = Owner;
  using value_type = Value;
};

template <class T>
struct WithoutOptional {
  using type = T;
};
template <class T>
struct WithoutOptional<std::optional<T>> {
  using type = T;
};

template <class T>
concept Number = std::is_arithmetic_v<T> && !std::same_as<T, bool>;
template <class T>
concept Text = std::same_as<T, std::string>;
template <class T>
concept List = requires(const T& list) {
  typename T::value_type;
  list.begin();
} && !Text<T> && !requires { typename T::mapped_type; };
/// MCP 2026-07-28 takes no other types in headers.
template <class T>
concept HeaderValue = std::integral<T> || Text<T> || std::is_enum_v<T>;

struct MemberDescription {
  std::string_view member;
  json::object attributes;
  bool optional = false;
  bool header = false;
};

}  // namespace detail

/// What is said about one member: each function adds a keyword of JSON Schema (Validation sections
/// 6 and 9) to its schema.
template <auto kMember>
class Field {
  using Pointer = detail::MemberPointer<decltype(kMember)>;
  using Value = typename detail::WithoutOptional<typename Pointer::value_type>::type;

 public:
  using owner_type = typename Pointer::owner_type;

  explicit Field(std::string_view description) {
    description_.member = detail::kMemberName<kMember>;
    if (!description.empty()) description_.attributes["description"] = description;
  }

  Field minimum(Value bound) &&
    requires detail::Number<Value>
  {
    return std::move(*this).attribute("minimum", bound);
  }
  Field maximum(Value bound) &&
    requires detail::Number<Value>
  {
    return std::move(*this).attribute("maximum", bound);
  }
  Field exclusive_minimum(Value bound) &&
    requires detail::Number<Value>
  {
    return std::move(*this).attribute("exclusiveMinimum", bound);
  }
  Field exclusive_maximum(Value bound) &&
    requires detail::Number<Value>
  {
    return std::move(*this).attribute("exclusiveMaximum", bound);
  }
  Field multiple_of(Value divisor) &&
    requires detail::Number<Value>
  {
    return std::move(*this).attribute("multipleOf", divisor);
  }
  /// In Unicode characters.
  Field min_length(std::uint64_t count) &&
    requires detail::Text<Value>
  {
    return std::move(*this).attribute("minLength", count);
  }
  Field max_length(std::uint64_t count) &&
    requires detail::Text<Value>
  {
    return std::move(*this).attribute("maxLength", count);
  }
  /// A regular expression of ECMA-262, for a part of the text unless it has ^ and $.
  Field pattern(std::string_view expression) &&
    requires detail::Text<Value>
  {
    return std::move(*this).attribute("pattern", json::string(expression));
  }
  /// Such as "date-time", "email" or "uri".
  Field format(std::string_view name) &&
    requires detail::Text<Value>
  {
    return std::move(*this).attribute("format", json::string(name));
  }
  Field min_items(std::uint64_t count) &&
    requires detail::List<Value>
  {
    return std::move(*this).attribute("minItems", count);
  }
  Field max_items(std::uint64_t count) &&
    requires detail::List<Value>
  {
    return std::move(*this).attribute("maxItems", count);
  }
  Field unique_items() &&
    requires detail::List<Value>
  {
    return std::move(*this).attribute("uniqueItems", true);
  }
  Field title(std::string_view text) && {
    return std::move(*this).attribute("title", json::string(text));
  }
  Field deprecated() && { return std::move(*this).attribute("deprecated", true); }
  Field examples(std::initializer_list<json::value_ref> values) && {
    return std::move(*this).attribute("examples", json::array(values));
  }
  /// The member may be missing; it then keeps what its initialiser says, also where that is 0,
  /// false or "".
  Field optional() && {
    description_.optional = true;
    return std::move(*this);
  }
  /// Clients of MCP 2026-07-28 repeat it in the HTTP header `Mcp-Param-<name>` (`x-mcp-header`).
  Field header(HeaderName name) &&
    requires detail::HeaderValue<Value>
  {
    description_.header = true;
    return std::move(*this).attribute("x-mcp-header", json::string(name.text()));
  }
  /// Any other keyword.
  Field attribute(std::string_view name, json::value value) && {
    description_.attributes[name] = std::move(value);
    return std::move(*this);
  }

  detail::MemberDescription take() && { return std::move(description_); }

 private:
  detail::MemberDescription description_;
};

template <auto kMember>
  requires std::is_member_object_pointer_v<decltype(kMember)>
Field<kMember> field(std::string_view description = {}) {
  return Field<kMember>(description);
}

/// What is said about a struct.
class StructDescription {
 public:
  StructDescription(std::string_view description, std::vector<detail::MemberDescription> members)
      : description_(description), members_(std::move(members)) {}

  /// Other members than those of the struct are let through, and not read.
  StructDescription open() && {
    open_ = true;
    return std::move(*this);
  }

  const std::string& description() const { return description_; }
  bool is_open() const { return open_; }
  /// Null if nothing is said about it.
  const detail::MemberDescription* find(std::string_view member) const {
    for (const detail::MemberDescription& known : members_) {
      if (known.member == member) return &known;
    }
    return nullptr;
  }

 private:
  std::string description_;
  std::vector<detail::MemberDescription> members_;
  bool open_ = false;
};

template <auto... kMembers>
StructDescription describe(std::string_view description, Field<kMembers>... fields) {
  std::vector<detail::MemberDescription> members;
  members.reserve(sizeof...(kMembers));
  (members.push_back(std::move(fields).take()), ...);
  return StructDescription(description, std::move(members));
}
template <auto... kMembers>
StructDescription describe(Field<kMembers>... fields) {
  return describe(std::string_view{}, std::move(fields)...);
}

}  // namespace sluice
