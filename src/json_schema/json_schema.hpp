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

/// What a schema may cost, to compile and to validate against. A schema or an instance that needs
/// more is refused with an error that names the limit.
struct JsonSchemaLimits {
  /// Subschemas of all documents that are read, used or not.
  std::size_t max_subschemas = 20'000;
  /// Bytes of one regular expression, and how many different ones a schema may have.
  std::size_t max_pattern_bytes = 4096;
  std::size_t max_patterns = 256;
  /// Memory that one of them may take once compiled, with what matching caches.
  std::size_t max_pattern_memory = 2UL * 1024 * 1024;
  /// Subschemas that may be at work inside each other while an instance is validated.
  std::size_t max_depth = 512;
  /// Steps of one validation: about one per subschema and value that meet, per value compared, per
  /// 32 bytes of text looked at, and per 4 places in a regular expression that a byte of text may
  /// come to. The default is a few tenths of a second at worst.
  std::uint64_t max_steps = 4'000'000;
};

/// Schema documents by their absolute URI, without a fragment.
using JsonSchemaDocuments = std::map<std::string, json::value, std::less<>>;

struct JsonSchemaOptions {
  /// Whether `format` is checked (JSON Schema Validation section 7.2.2) or a mere annotation. The
  /// formats that are checked: date-time, date, time, duration, email, idn-email, hostname, ipv4,
  /// ipv6, uri, uri-reference, iri, iri-reference, uri-template, uuid, json-pointer,
  /// relative-json-pointer, regex. Others stay annotations.
  bool assert_formats = false;
  /// What `$ref` and `$schema` may lead to, beside the schema itself and the meta-schemas of
  /// 2020-12. Used during compile() alone. Nothing is ever fetched.
  const JsonSchemaDocuments* documents = nullptr;
  JsonSchemaLimits limits = {};
};

/// Where an instance breaks its schema, and how.
struct JsonSchemaViolation {
  /// From the validated value to the offending one: `items[2].to`, `["odd key"].x`; empty for the
  /// validated value itself.
  std::string path;
  /// Such as `expected integer, got string`. Quotes at most a few dozen bytes of the instance.
  std::string message;
  /// The steps, or the depth, did not suffice to find out, or to say why not.
  bool is_unfinished = false;

  /// `arguments.items[2].to: expected integer, got string`, given "arguments" as the root's name.
  std::string describe(std::string_view root) const;
};

struct JsonSchemaProgram;

/// A compiled JSON Schema (2020-12). A cheap handle to something immutable: copies share it, and
/// any thread may validate with it at any time.
///
/// Schemas that name an older draft (2019-09, 07, 06) in `$schema` are read by the rules of that
/// draft, without `$recursiveRef`. Regular expressions are those of ECMA-262 with its `u` flag, but
/// for backreferences and for lookaround elsewhere than right after a leading `^` or right before a
/// trailing `$`; they match in linear time. Numbers are compared by their exact value.
class JsonSchema {
 public:
  /// Compiles `schema`, which need not outlive the call. Errors carry JSON-RPC's -32602 and name
  /// the place as a JSON pointer: `invalid schema at #/properties/a/type: there is no type
  /// "strnig"`.
  static Result<JsonSchema> compile(const json::value& schema,
                                    const JsonSchemaOptions& options = {});

  /// Whether `instance` follows the schema; if not, the first violation. Where no alternative of an
  /// anyOf or oneOf matches, it is that of the closest one, if there is one. Does not allocate
  /// for an instance that is valid, unless the schema has uniqueItems, propertyNames, or
  /// unevaluated* over more than 128 members. Takes no more than `max_steps`, nor more than its
  /// limits allow.
  std::expected<void, JsonSchemaViolation> validate(
      const json::value& instance,
      std::uint64_t max_steps = std::numeric_limits<std::uint64_t>::max()) const;

 private:
  explicit JsonSchema(std::shared_ptr<const JsonSchemaProgram> program);

  std::shared_ptr<const JsonSchemaProgram> program_;
};

}  // namespace sluice
