#pragma once

// What the codecs of include/sluice/codec.hpp work with.

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "sluice/json.hpp"

namespace sluice {

/// What decode() does with a member that the struct does not have.
enum class UnknownMembers : bool { reject, ignore };

/// Why JSON is not a value of a type, and where.
struct DecodeError {
  std::string path;     // `arguments.items[2].to`
  std::string message;  // `expected integer, got string`

  /// `arguments.items[2].to: expected integer, got string`
  std::string describe() const;
};

/// Collects one schema document. Types that contain themselves become `$defs`.
class SchemaBuilder {
 public:
  /// `root` identifies the type of the whole document.
  explicit SchemaBuilder(const void* root);
  ~SchemaBuilder();
  SchemaBuilder(const SchemaBuilder&) = delete;
  SchemaBuilder& operator=(const SchemaBuilder&) = delete;

  /// The schema of the type `key`, which `build()` makes, or a reference to it.
  template <class Build>
  json::value define(const void* key, std::string_view name, const Build& build) {
    if (const json::value* const reference = begin(key, name)) return *reference;
    return end(build());
  }

  /// Notes that a property got an `x-mcp-header`.
  void count_header();

  /// The document. Throws std::logic_error if an `x-mcp-header` is not unique, or not reachable by
  /// `properties` alone (MCP 2026-07-28, Streamable HTTP, "Schema Extension").
  json::value finish(json::value schema) const;

 private:
  struct Definitions;

  const json::value* begin(const void* key, std::string_view name);
  json::value end(json::value schema);

  Definitions* definitions_;  // owned
};

/// Decoding of one value. The functions that fail return false, so that a codec can return them.
class Decoder {
 public:
  explicit Decoder(UnknownMembers unknown) : unknown_(unknown) {}

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
  /// Names a member of `object` that is not among `members`.
  bool fail_unknown(const json::object& object, std::span<const std::string_view> members);

  /// Adds a step to where the failure is, from the inside to the outside.
  bool fail_at(std::size_t index);
  bool fail_at(std::string_view name);

  /// One level deeper; false, with a failure, where it is too deep.
  bool enter();
  void leave() { --depth_; }

  /// For an alternative that may fail without the value failing.
  Decoder alternative() const;

  /// How the alternatives failed; the one that came closest is told.
  class Alternatives {
   public:
    void add(Decoder&& failed);
    bool fail(Decoder& decoder, const json::value& value);

   private:
    std::string message_;
    std::string path_;
    std::string types_;  // `integer or string`, if that is why all of them failed
    bool only_types_ = true;
    std::size_t steps_ = 0;
    std::size_t closeness_ = 0;
    std::size_t rivals_ = 0;
    std::size_t count_ = 0;
  };

  /// What failed, after something has; `root` is what the path calls the value.
  DecodeError error(std::string_view root) const;

 private:
  UnknownMembers unknown_;
  std::size_t depth_ = 0;
  std::string message_;
  std::string type_;       // the type that was expected, if that is why it failed
  bool named_ = false;     // it has not the name or the literal that was expected
  std::string path_;       // `.items[2].to`
  std::size_t steps_ = 0;  // of the path
};

/// Encoding of one value. A value that JSON cannot express is a mistake of the program, and so an
/// exception.
class Encoder {
 public:
  /// One level deeper. Throws std::length_error where it is too deep.
  void enter();
  void leave() { --depth_; }

  /// Throws std::domain_error for NaN and infinity.
  static json::value number(double value);
  /// Throws std::domain_error: `number` is no enumerator of `type`.
  [[noreturn]] static void fail_enumerator(std::string_view type, long long number);

 private:
  std::size_t depth_ = 0;
};

}  // namespace sluice
