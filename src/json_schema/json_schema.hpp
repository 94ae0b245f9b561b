#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "json/json.hpp"

namespace sluice {

/// Limits on the cost of compiling a schema and of validating against it. A schema or an instance
/// that needs more is refused with an error that names the limit.
struct JsonSchemaLimits {
  /// Subschemas in all documents that are read, whether they are used or not.
  std::size_t max_subschemas = 20'000;
  /// Bytes of one regular expression, and the number of different ones in a schema.
  std::size_t max_pattern_bytes = 4096;
  std::size_t max_patterns = 256;
  /// Bytes of memory that one compiled regular expression may take, including its matching caches.
  std::size_t max_pattern_memory = 2UL * 1024 * 1024;
  /// Work of compiling all regular expressions of a schema, in about 0.1 microseconds.
  std::uint64_t max_pattern_work = std::numeric_limits<std::uint64_t>::max();
  /// How deep subschemas may be nested while an instance is validated.
  std::size_t max_depth = 512;
  /// Steps of one validation. One step is about: one subschema applied to one value, one comparison
  /// of values, 32 bytes of text examined, or 4 places in a regular expression that a byte of text
  /// may reach. The default takes a few tenths of a second at worst.
  std::uint64_t max_steps = 4'000'000;

  /// For schemas that a peer has written and a loop compiles, so that any of them takes a few
  /// milliseconds and 10 MiB at most.
  static constexpr JsonSchemaLimits for_peers() {
    return {.max_subschemas = 4000,
            .max_patterns = 64,
            .max_pattern_memory = 128UL * 1024,
            .max_pattern_work = 50'000};
  }
};

/// Schema documents by their absolute URI, without a fragment.
using JsonSchemaDocuments = std::map<std::string, json::value, std::less<>>;

struct JsonSchemaOptions {
  /// Whether `format` is checked (JSON Schema Validation section 7.2.2) or only an annotation.
  /// These formats are checked: date-time, date, time, duration, email, idn-email, hostname, ipv4,
  /// ipv6, uri, uri-reference, iri, iri-reference, uri-template, uuid, json-pointer,
  /// relative-json-pointer, regex. All others remain annotations.
  bool assert_formats = false;
  /// Whether a property that is not required may be null, whatever its schema says. Language models
  /// often write null for an argument that they leave out.
  bool null_for_optional = false;
  /// Documents that `$ref` and `$schema` may refer to, besides the schema itself and the
  /// meta-schemas of 2020-12. Used only during compile(). Nothing is ever fetched.
  const JsonSchemaDocuments* documents = nullptr;
  JsonSchemaLimits limits = {};
};

/// Where and how an instance violates its schema.
struct JsonSchemaViolation {
  /// The path from the validated value to the offending one, such as `items[2].to` or
  /// `["odd key"].x`. Empty for the validated value itself.
  std::string path;
  /// A text such as `expected integer, got string`. Quotes at most a few dozen bytes of the
  /// instance.
  std::string message;
  /// Whether the limit on steps or depth was reached before it was known whether the instance is
  /// valid, or why it is not.
  bool is_unfinished = false;

  /// Path and message, such as `arguments.items[2].to: expected integer, got string`; `root` is the
  /// name of the validated value, here "arguments".
  std::string describe(std::string_view root) const;
};

struct JsonSchemaProgram;

/// A compiled JSON Schema (2020-12). This is a cheap handle: copies share the same immutable data,
/// and any thread may validate with it at any time.
///
/// A schema that names an older draft (2019-09, 07, 06) in `$schema` is read by the rules of that
/// draft, without `$recursiveRef`. Regular expressions are those of ECMA-262 with its `u` flag. Not
/// supported are backreferences, and lookaround except right after a leading `^` or right before a
/// trailing `$`. Matching takes linear time. Numbers are compared by their exact value.
class JsonSchema {
 public:
  /// Compiles `schema`, which need not outlive the call. Errors carry JSON-RPC's -32602, or
  /// kLimitReached for what may be valid, but is not supported or too large. They give the location
  /// as a JSON pointer: `invalid schema at #/properties/a/type: there is no type "strnig"`.
  static Result<JsonSchema> compile(const json::value& schema,
                                    const JsonSchemaOptions& options = {});

  /// Validates `instance` against the schema. Returns the first violation if there is one. If no
  /// alternative of an anyOf or oneOf matches, that is the violation of the closest alternative,
  /// provided that one is closest. Does not allocate for a valid instance, unless the schema has
  /// uniqueItems, propertyNames, or unevaluated* over more than 128 members. Takes at most
  /// `max_steps` steps, and at most what the schema's limits allow.
  std::expected<void, JsonSchemaViolation> validate(
      const json::value& instance,
      std::uint64_t max_steps = std::numeric_limits<std::uint64_t>::max()) const;

  /// About how many bytes of memory it takes, with all that its regular expressions may take.
  std::size_t memory() const;

 private:
  explicit JsonSchema(std::shared_ptr<const JsonSchemaProgram> program);

  std::shared_ptr<const JsonSchemaProgram> program_;
};

}  // namespace sluice
