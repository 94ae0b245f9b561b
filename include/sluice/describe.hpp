#pragma once

// Adds descriptions and bounds to the JSON Schema of a plain struct. The struct has a static
// function describe() for that. For a struct that you cannot change, specialise sluice::Describe.
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

/// Specialise this for a type that cannot have a describe() of its own. For a struct, define
/// `static auto describe()`. For an enum, define `static constexpr auto names =
/// std::to_array<std::pair<Color, std::string_view>>(...)` with the JSON name of every enumerator.
template <class T>
struct Describe;

/// The name in `Mcp-Param-<name>`. It must be a token (RFC 9110, section 5.6.2); that is checked at
/// compile time.
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
/// The types that MCP 2026-07-28 allows in headers.
template <class T>
concept HeaderValue = std::integral<T> || Text<T> || std::is_enum_v<T>;

struct MemberDescription {
  std::string_view member;
  json::object attributes;
  /// Whether the member may be missing. Nothing: that depends on its type and initialiser.
  std::optional<bool> optional = {};
  bool header = false;
};

/// The part of Field that does not depend on the member.
class FieldBase {
 public:
  const MemberDescription& said() const { return said_; }

 protected:
  /// `spelling` is what the compiler prints for the member.
  FieldBase(const char* spelling, std::string_view description);
  FieldBase(const FieldBase& other);
  FieldBase(FieldBase&& other) noexcept;
  FieldBase& operator=(const FieldBase&) = delete;
  FieldBase& operator=(FieldBase&&) = delete;
  ~FieldBase();

  void set(std::string_view name, json::value&& value);
  void set_text(std::string_view name, std::string_view value);
  void set_number(std::string_view name, std::int64_t value);
  void set_number(std::string_view name, std::uint64_t value);
  void set_number(std::string_view name, double value);
  void set_true(std::string_view name);
  void set_examples(std::initializer_list<json::value_ref> values);
  void set_optional(bool optional) { said_.optional = optional; }
  void set_header(std::string_view name);

 private:
  MemberDescription said_;
};

}  // namespace detail

/// The description of one member. Each function adds the keyword of its name to the member's schema
/// (JSON Schema 2020-12, Validation, sections 6, 7 and 9).
template <auto kMember>
class Field : public detail::FieldBase {
  using Pointer = detail::MemberPointer<decltype(kMember)>;
  using Value = typename detail::WithoutOptional<typename Pointer::value_type>::type;

 public:
  using owner_type = typename Pointer::owner_type;

  explicit Field(std::string_view description)
      : FieldBase(detail::pretty_value<kMember>(), description) {}

  Field minimum(Value bound) &&
    requires detail::Number<Value>
  {
    number("minimum", bound);
    return std::move(*this);
  }
  Field maximum(Value bound) &&
    requires detail::Number<Value>
  {
    number("maximum", bound);
    return std::move(*this);
  }
  Field exclusive_minimum(Value bound) &&
    requires detail::Number<Value>
  {
    number("exclusiveMinimum", bound);
    return std::move(*this);
  }
  Field exclusive_maximum(Value bound) &&
    requires detail::Number<Value>
  {
    number("exclusiveMaximum", bound);
    return std::move(*this);
  }
  Field multiple_of(Value divisor) &&
    requires detail::Number<Value>
  {
    number("multipleOf", divisor);
    return std::move(*this);
  }
  // Lengths are in Unicode characters.

  Field min_length(std::uint64_t count) &&
    requires detail::Text<Value>
  {
    number("minLength", count);
    return std::move(*this);
  }
  Field max_length(std::uint64_t count) &&
    requires detail::Text<Value>
  {
    number("maxLength", count);
    return std::move(*this);
  }
  /// A regular expression (ECMA-262). It may match any part of the text, unless it has ^ and $.
  Field pattern(std::string_view expression) &&
    requires detail::Text<Value>
  {
    set_text("pattern", expression);
    return std::move(*this);
  }
  /// `name` is, for example, "date-time", "email" or "uri".
  Field format(std::string_view name) &&
    requires detail::Text<Value>
  {
    set_text("format", name);
    return std::move(*this);
  }
  Field min_items(std::uint64_t count) &&
    requires detail::List<Value>
  {
    number("minItems", count);
    return std::move(*this);
  }
  Field max_items(std::uint64_t count) &&
    requires detail::List<Value>
  {
    number("maxItems", count);
    return std::move(*this);
  }
  Field unique_items() &&
    requires detail::List<Value>
  {
    set_true("uniqueItems");
    return std::move(*this);
  }
  Field title(std::string_view text) && {
    set_text("title", text);
    return std::move(*this);
  }
  Field deprecated() && {
    set_true("deprecated");
    return std::move(*this);
  }
  Field examples(std::initializer_list<json::value_ref> values) && {
    set_examples(values);
    return std::move(*this);
  }
  /// Allows the member to be missing. It then keeps the value that it has in `T{}`. An initialiser
  /// alone allows that too, unless it is the empty one of a string or a container
  /// (sluice/schema.hpp).
  Field optional() && {
    set_optional(true);
    return std::move(*this);
  }
  /// Requires the member in the JSON, although it has an initialiser or is a std::optional.
  Field required() && {
    set_optional(false);
    return std::move(*this);
  }
  /// Makes clients of MCP 2026-07-28 repeat the value in the HTTP header `Mcp-Param-<name>`
  /// (`x-mcp-header`).
  Field header(HeaderName name) &&
    requires detail::HeaderValue<Value>
  {
    set_header(name.text());
    return std::move(*this);
  }
  /// Adds any other keyword.
  Field attribute(std::string_view name, json::value value) && {
    set(name, std::move(value));
    return std::move(*this);
  }

 private:
  template <class Number>
  void number(std::string_view name, Number value) {
    using Wide = std::conditional_t<
        std::is_floating_point_v<Number>, double,
        std::conditional_t<std::is_signed_v<Number>, std::int64_t, std::uint64_t>>;
    set_number(name, static_cast<Wide>(value));
  }
};

template <auto kMember>
  requires std::is_member_object_pointer_v<decltype(kMember)>
Field<kMember> field(std::string_view description = {}) {
  return Field<kMember>(description);
}

/// The description of a struct; describe() makes it.
class StructDescription {
 public:
  StructDescription(std::string_view description,
                    std::initializer_list<const detail::FieldBase*> fields);
  StructDescription(const StructDescription& other);
  StructDescription(StructDescription&& other) noexcept;
  StructDescription& operator=(const StructDescription& other);
  StructDescription& operator=(StructDescription&& other) noexcept;
  ~StructDescription();

  /// Allows members that the struct does not have, and ignores them.
  StructDescription open() &&;

  const std::string& description() const { return description_; }
  bool is_open() const { return open_; }
  /// Null if the member has no description. Owned by this object.
  const detail::MemberDescription* find(std::string_view member) const;

 private:
  std::string description_;
  std::vector<detail::MemberDescription> members_;
  bool open_ = false;
};

namespace detail {

/// The struct that all of the members belong to; void if there are no members.
template <auto... kMembers>
struct OwnerOf {
  using type = void;
};
template <auto kFirst, auto... kMembers>
struct OwnerOf<kFirst, kMembers...> {
  using type = typename MemberPointer<decltype(kFirst)>::owner_type;
  static_assert((std::same_as<typename MemberPointer<decltype(kMembers)>::owner_type, type> && ...),
                "describe() describes members of one struct");
};

/// A description of members of `Owner`.
template <class Owner>
class DescriptionOf : public StructDescription {
 public:
  using owner_type = Owner;
  using StructDescription::StructDescription;
  DescriptionOf open() && { return DescriptionOf(std::move(*this).StructDescription::open()); }

 private:
  explicit DescriptionOf(StructDescription&& made) : StructDescription(std::move(made)) {}
};

}  // namespace detail

template <auto... kMembers>
auto describe(std::string_view description, const Field<kMembers>&... fields) {
  return detail::DescriptionOf<typename detail::OwnerOf<kMembers...>::type>(description,
                                                                            {&fields...});
}
template <auto... kMembers>
auto describe(const Field<kMembers>&... fields) {
  return detail::DescriptionOf<typename detail::OwnerOf<kMembers...>::type>({}, {&fields...});
}

}  // namespace sluice
