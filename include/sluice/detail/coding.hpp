#pragma once

// The tools of codecs (sluice/codec.hpp). None of these classes is thread-safe: each object serves
// one schema or one value.

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "sluice/json.hpp"

namespace sluice {

/// Whether decode() rejects or ignores a member that the struct does not have.
enum class UnknownMembers : bool { reject, ignore };

/// Says why JSON does not fit a type, and where.
struct DecodeError {
  std::string path;     // `arguments.items[2].to`
  std::string message;  // `expected integer, got string`

  /// `arguments.items[2].to: expected integer, got string`
  std::string describe() const;
};

/// What a schema describes: values that are decoded, or values that have been encoded. The latter
/// have all members of a struct, except for empty std::optionals.
enum class SchemaUse : bool { decoding, encoding };

/// Builds one schema document. Types that contain themselves become `$defs`.
class SchemaBuilder {
 public:
  /// `root` identifies the type of the whole document.
  explicit SchemaBuilder(const void* root, SchemaUse use = SchemaUse::decoding);
  ~SchemaBuilder();
  SchemaBuilder(const SchemaBuilder&) = delete;
  SchemaBuilder& operator=(const SchemaBuilder&) = delete;

  /// The schema of the type that `key` identifies: what `build()` returns, or a reference to it.
  template <class Build>
  json::value define(const void* key, std::string_view name, const Build& build) {
    if (const json::value* const reference = begin(key, name)) return *reference;
    return end(build());
  }

  SchemaUse use() const;

  /// Counts a property with an `x-mcp-header`.
  void count_header();

  /// The document. Throws std::logic_error if an `x-mcp-header` is not unique, or if it is not
  /// reached by `properties` alone (2026-07-28, Streamable HTTP, Schema Extension).
  json::value finish(json::value schema) const;

 private:
  struct Definitions;

  const json::value* begin(const void* key, std::string_view name);
  json::value end(json::value schema);

  Definitions* definitions_;  // owned
};

/// Decodes one value. Each fail function notes the failure and returns false, so that a codec can
/// write `return decoder.fail(...)`.
///
/// The alternatives of nested variants could be tried without end. So only a limited part of the
/// work may be for alternatives that fail; when it is used up, the whole value fails.
class Decoder {
 public:
  explicit Decoder(UnknownMembers unknown) : unknown_(unknown) {}
  Decoder(const Decoder&) = delete;
  Decoder& operator=(const Decoder&) = delete;

  bool ignores_unknown_members() const { return unknown_ == UnknownMembers::ignore; }

  bool fail(std::string message);
  /// `expected <what>, got <the value's type>`.
  bool fail_type(std::string_view what, const json::value& value);
  /// `expected <what>, got <the value>`.
  bool fail_value(std::string_view what, const json::value& value);
  /// `expected one of "red", "green", got <the value>`.
  bool fail_name(std::span<const std::string_view> names, const json::value& value);
  /// `expected <count> items, got <got>`.
  bool fail_size(std::size_t count, std::size_t got);
  bool fail_missing(std::string_view member);
  /// Names a member of `object` that is not one of `members`.
  bool fail_unknown(const json::object& object, std::span<const std::string_view> members);

  // These put a step in front of the failure's path. The codec of a container calls them after the
  // codec of an item has failed.

  bool fail_at(std::size_t index);
  bool fail_at(std::string_view name);

  /// Goes one level deeper, into a container that will have `items` of `item_size` bytes. Fails if
  /// that is too deep, or if the whole value takes more than kMostMemory then.
  bool enter(std::size_t items = 0, std::size_t item_size = 0);
  static constexpr std::size_t kMostMemory = std::size_t{64} << 20U;
  /// How many bytes the items of all containers take.
  std::size_t memory() const { return effort_->memory; }
  void leave() { --depth_; }
  /// Counts as much work as reading so many numbers.
  void count(std::size_t work) { effort_->work += work; }

  /// A decoder for one alternative of a variant, which may fail while another one succeeds.
  Decoder alternative() const;

  /// Collects how the alternatives failed, and reports the one that came closest.
  class Alternatives {
   public:
    void add(Decoder&& failed);
    bool fail(Decoder& decoder, const json::value& value);

   private:
    std::string message_;
    std::string path_;
    std::string types_;  // such as `integer or string or `, while all have failed by their type
    bool only_types_ = true;
    std::string mismatches_;  // what is wrong with each
    std::size_t steps_ = 0;
    std::size_t closeness_ = 0;
    std::size_t rivals_ = 0;
    std::size_t count_ = 0;
  };

  /// Whether too much of the work was for alternatives that failed. Then the value has failed, even
  /// if one of its codecs has not noticed it.
  bool is_exhausted() const;
  /// The failure; call it only if there is one. The path begins with `root`.
  DecodeError error(std::string_view root) const;

 private:
  struct Effort {
    std::size_t work = 0;
    std::size_t wasted = 0;  // for alternatives that have failed
    std::size_t memory = 0;  // without that of alternatives that have failed
  };

  Decoder(UnknownMembers unknown, std::size_t depth, Effort& effort)
      : unknown_(unknown), depth_(depth), effort_(&effort), before_(effort) {
    ++effort.work;
  }
  /// The whole work since this decoder was made is wasted.
  void waste();

  UnknownMembers unknown_;
  std::size_t depth_ = 0;
  std::string message_;
  std::string type_;       // the expected type, if the value has another one
  bool named_ = false;     // the value is not the expected name or literal
  std::string path_;       // `.items[2].to`
  std::size_t steps_ = 0;  // of the path
  Effort own_ = {};
  Effort* effort_ = &own_;  // of the whole value
  Effort before_ = {};
};

/// Encodes one value. It throws for a value that JSON cannot express, because that is a mistake in
/// the program.
class Encoder {
 public:
  /// Goes one level deeper. Throws std::length_error if that is too deep.
  void enter();
  void leave() { --depth_; }

  /// Throws std::domain_error for NaN and infinity.
  static json::value number(double value);
  /// Throws the std::domain_error for a `number` that is not an enumerator of `type`.
  [[noreturn]] static void fail_enumerator(std::string_view type, long long number);

 private:
  std::size_t depth_ = 0;
};

}  // namespace sluice
