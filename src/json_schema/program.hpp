#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <boost/json/value.hpp>

#include "json/json.hpp"
#include "json_schema/formats/format.hpp"
#include "json_schema/formats/pattern.hpp"
#include "json_schema/json_schema.hpp"

// The compiled form of a schema: one vector with one node per subschema. A node holds its type mask
// and, for each kind of instance, the index of a table of rules. So a value is checked only against
// the rules for its own kind.

namespace sluice {

using SchemaIndex = std::uint32_t;
inline constexpr SchemaIndex kNoSchema = std::numeric_limits<SchemaIndex>::max();
inline constexpr std::uint64_t kNoLimit = std::numeric_limits<std::uint64_t>::max();

/// A set of instance types. kTypeFraction stands for numbers that are not integers; the schema's
/// "number" is kTypeNumber, which has both bits.
enum SchemaType : std::uint8_t {
  kTypeNull = 1,
  kTypeBoolean = 2,
  kTypeInteger = 4,
  kTypeFraction = 8,
  kTypeString = 16,
  kTypeArray = 32,
  kTypeObject = 64,
};
inline constexpr std::uint8_t kTypeNumber = kTypeInteger | kTypeFraction;
inline constexpr std::uint8_t kAnyType = 127;

struct SchemaNode {
  std::uint8_t types = kAnyType;  // 0 for the schema `false`
  bool unevaluated = false;       // has unevaluatedItems or unevaluatedProperties
  std::uint32_t resource = 0;     // the schema resource it belongs to, for $dynamicRef
  SchemaIndex number = kNoSchema;
  SchemaIndex string = kNoSchema;
  SchemaIndex array = kNoSchema;
  SchemaIndex object = kNoSchema;
  SchemaIndex any = kNoSchema;  // the rules that apply to instances of every kind
};

/// A member that is null stands for a rule that is absent.
struct NumberRules {
  json::value minimum;
  json::value maximum;
  json::value exclusive_minimum;
  json::value exclusive_maximum;
  json::value multiple_of;
};

struct StringRules {
  std::uint64_t min_length = 0;  // lengths are in Unicode characters
  std::uint64_t max_length = kNoLimit;
  SchemaIndex pattern = kNoSchema;
  JsonFormat format = JsonFormat::none;
};

struct ArrayRules {
  std::uint64_t min_items = 0;
  std::uint64_t max_items = kNoLimit;
  std::uint64_t min_contains = 1;
  std::uint64_t max_contains = kNoLimit;
  std::vector<SchemaIndex> prefix;
  SchemaIndex items = kNoSchema;
  SchemaIndex contains = kNoSchema;
  SchemaIndex unevaluated = kNoSchema;
  bool unique = false;
  bool contains_evaluates = true;  // items that match `contains` count as evaluated, since 2020-12
};

/// A name that `properties` or `required` mentions.
struct PropertyRule {
  std::string name;
  SchemaIndex node = kNoSchema;  // kNoSchema if the name is only required
  bool required = false;
};

/// The order of ObjectRules::properties. Sizes come first, because they decide most comparisons.
inline bool precedes_in_rules(std::string_view a, std::string_view b) {
  return a.size() != b.size() ? a.size() < b.size() : a < b;
}

struct PatternRule {
  SchemaIndex pattern = kNoSchema;
  SchemaIndex node = kNoSchema;
};

/// If the instance has the property `name`, it must also have those in `required` and follow
/// `node`.
struct DependencyRule {
  std::string name;
  std::vector<std::string> required;
  SchemaIndex node = kNoSchema;
};

struct ObjectRules {
  std::uint64_t min_properties = 0;
  std::uint64_t max_properties = kNoLimit;
  std::vector<PropertyRule> properties;  // sorted by precedes_in_rules()
  /// Properties (indices) whose values are from a list, if there are others to descend into. They
  /// tell alternatives apart, so they are checked first: nested alternatives that are only told
  /// apart behind what is nested in them would take exponential time.
  std::vector<std::size_t> distinguishing;
  std::size_t required = 0;  // how many of the properties are required
  std::vector<PatternRule> patterns;
  std::vector<DependencyRule> dependencies;
  SchemaIndex additional = kNoSchema;
  SchemaIndex names = kNoSchema;
  SchemaIndex unevaluated = kNoSchema;
};

struct DynamicAnchor {
  std::uint32_t resource = 0;
  SchemaIndex node = kNoSchema;
};

/// A $dynamicRef whose target depends on the path through the schemas. The outermost resource on
/// the path that has the anchor is the target, or `initial` if none has it.
struct DynamicReference {
  std::string anchor;
  SchemaIndex initial = kNoSchema;
  /// In ascending order of their resource. Shared by all references to the anchor.
  std::shared_ptr<const std::vector<DynamicAnchor>> candidates;
};

struct AnyRules {
  SchemaIndex reference = kNoSchema;
  SchemaIndex dynamic_reference = kNoSchema;  // index in JsonSchemaProgram::dynamic_references
  std::vector<SchemaIndex> all_of;
  std::vector<SchemaIndex> any_of;
  std::vector<SchemaIndex> one_of;
  SchemaIndex negated = kNoSchema;
  SchemaIndex condition = kNoSchema;
  SchemaIndex consequence = kNoSchema;
  SchemaIndex alternative = kNoSchema;
  bool has_enumeration = false;  // `enum`
  std::vector<json::value> enumeration;
  bool has_constant = false;  // `const`
  json::value constant;
};

struct JsonSchemaProgram {
  std::vector<SchemaNode> nodes;  // the first is the root
  std::vector<NumberRules> numbers;
  std::vector<StringRules> strings;
  std::vector<ArrayRules> arrays;
  std::vector<ObjectRules> objects;
  std::vector<AnyRules> any;
  std::vector<JsonPattern> patterns;
  std::vector<DynamicReference> dynamic_references;
  JsonSchemaLimits limits;
  bool null_for_optional = false;
  std::size_t memory = 0;  // JsonSchema::memory()

  /// Sets ObjectRules::distinguishing, when everything else is there.
  void find_distinguishing();
  /// Sets `memory`, when everything else is there. `of_schema` is what the schema's JSON takes.
  void measure(std::size_t of_schema);
};

}  // namespace sluice
