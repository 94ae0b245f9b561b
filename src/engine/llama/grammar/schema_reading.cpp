#include "engine/llama/grammar/schema_reading.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/llama/grammar/schema_reference.hpp"
#include "json/members.hpp"
#include "json_schema/value.hpp"

namespace sluice {
namespace {

/// The types of JSON values. `kNumberType` stands for numbers that are not integers.
enum Types : unsigned {
  kNullType = 1,
  kBooleanType = 2,
  kIntegerType = 4,
  kNumberType = 8,
  kStringType = 16,
  kArrayType = 32,
  kObjectType = 64,
  kNumeric = kIntegerType | kNumberType,
  kAny = 127,
};

/// What the value of a keyword must be.
enum class Form : std::uint8_t { any, boolean, number, length, names };

/// A keyword that demands something of the values of these types.
struct Demand {
  std::string_view keyword;
  unsigned types;
  Form form = Form::any;
};
constexpr std::array kDemands = std::to_array<Demand>({
    {"$ref", kAny},
    {"$dynamicRef", kAny},
    {"$recursiveRef", kAny},
    {"oneOf", kAny},
    {"anyOf", kAny},
    {"allOf", kAny},
    {"not", kAny},
    {"if", kAny},
    {"type", kAny},
    {"const", kAny},
    {"enum", kAny},
    {"pattern", kStringType},
    {"minLength", kStringType, Form::length},
    {"maxLength", kStringType, Form::length},
    {"minimum", kNumeric, Form::number},
    {"maximum", kNumeric, Form::number},
    {"exclusiveMinimum", kNumeric, Form::number},
    {"exclusiveMaximum", kNumeric, Form::number},
    {"multipleOf", kNumeric, Form::number},
    {"items", kArrayType},
    {"prefixItems", kArrayType},
    {"minItems", kArrayType, Form::length},
    {"maxItems", kArrayType, Form::length},
    {"uniqueItems", kArrayType, Form::boolean},
    {"contains", kArrayType},
    {"unevaluatedItems", kArrayType},
    {"properties", kObjectType},
    {"required", kObjectType, Form::names},
    {"additionalProperties", kObjectType},
    {"patternProperties", kObjectType},
    {"propertyNames", kObjectType},
    {"minProperties", kObjectType, Form::length},
    {"maxProperties", kObjectType, Form::length},
    {"dependentRequired", kObjectType},
    {"dependentSchemas", kObjectType},
    {"dependencies", kObjectType},
    {"unevaluatedProperties", kObjectType},
});

/// The least and most characters of a format that llama.cpp supports.
struct FormatLengths {
  std::string_view name;
  std::int64_t least;
  std::int64_t most;
};
constexpr std::array kFormats = std::to_array<FormatLengths>({
    {"date", 10, 10},
    {"time", 9, 18},
    {"date-time", 20, 29},
    {"uuid", 36, 36},
    {"uuid1", 36, 36},
    {"uuid2", 36, 36},
    {"uuid3", 36, 36},
    {"uuid4", 36, 36},
    {"uuid5", 36, 36},
});

constexpr std::size_t kMaxReferences = 32;  // references in a chain
constexpr std::size_t kMaxAlternatives =
    100;  // alternatives of a oneOf, which are compared in pairs
constexpr std::size_t kMaxComparison = 1000;  // steps to compare two values

const json::array* array_at(const json::object& schema, std::string_view key) {
  const json::value* const value = schema.if_contains(key);
  return value == nullptr ? nullptr : value->if_array();
}

std::int64_t count_at(const json::object& schema, std::string_view key, std::int64_t otherwise) {
  const json::value* const value = schema.if_contains(key);
  return value != nullptr && value->is_int64() ? value->get_int64() : otherwise;
}

const FormatLengths* format_of(const json::object& schema) {
  const auto* const found =
      std::ranges::find(kFormats, text_at(schema, "format"), &FormatLengths::name);
  return found == kFormats.end() ? nullptr : found;
}

unsigned type_named(std::string_view name) {
  static constexpr std::array kNames =
      std::to_array<std::pair<std::string_view, unsigned>>({{"null", kNullType},
                                                            {"boolean", kBooleanType},
                                                            {"integer", kIntegerType},
                                                            {"number", kNumeric},
                                                            {"string", kStringType},
                                                            {"array", kArrayType},
                                                            {"object", kObjectType}});
  for (const auto& [each, types] : kNames) {
    if (each == name) return types;
  }
  return kAny;
}

unsigned type_of(const json::value& value) {
  switch (value.kind()) {
    case json::kind::null:
      return kNullType;
    case json::kind::bool_:
      return kBooleanType;
    case json::kind::int64:
    case json::kind::uint64:
      return kIntegerType;
    case json::kind::double_:
      return kNumeric;
    case json::kind::string:
      return kStringType;
    case json::kind::array:
      return kArrayType;
    case json::kind::object:
      return kObjectType;
  }
  return kAny;
}

unsigned declared(const json::object& schema) {
  const json::value* const type = schema.if_contains("type");
  if (type == nullptr) return kAny;
  if (const json::string* const name = type->if_string()) return type_named(*name);
  unsigned types = 0;
  if (const json::array* const names = type->if_array()) {
    for (const json::value& each : *names) {
      if (const json::string* const name = each.if_string()) types |= type_named(*name);
    }
  }
  return types == 0 ? kAny : types;
}

bool is_true(const json::object& schema, std::string_view key) {
  const json::value* const value = schema.if_contains(key);
  return value != nullptr && value->is_bool() && value->get_bool();
}

bool has_properties(const json::object& schema) {
  return schema.contains("properties") ||
         (schema.contains("additionalProperties") && !is_true(schema, "additionalProperties"));
}

/// Whether objects of the schema may have only the properties that it names.
bool is_closed(const json::object& schema) {
  const json::value* const more = schema.if_contains("additionalProperties");
  return more == nullptr ? schema.contains("properties") : more->is_bool() && !more->get_bool();
}

/// The items of a tuple; answers have exactly these items.
const json::array* tuple_of(const json::object& schema) {
  return array_at(schema, schema.contains("items") ? "items" : "prefixItems");
}

/// How llama.cpp reads a schema with one type or none: the types of the answers, and the keywords
/// that the answers follow.
struct Node {
  [[nodiscard]] bool has(std::string_view keyword) const {
    return std::ranges::find(keywords, keyword) != keywords.end();
  }

  unsigned types = kAny;
  std::vector<std::string_view> keywords = {};
};

Node string_node(const json::object& schema) {
  if (schema.contains("pattern")) return {kStringType, {"pattern"}};
  if (format_of(schema) != nullptr) return {kStringType, {}};
  return {kStringType, {"minLength", "maxLength"}};
}

Node array_node(const json::object& schema) {
  if (tuple_of(schema) != nullptr) {
    return {kArrayType, {schema.contains("items") ? "items" : "prefixItems"}};
  }
  if (array_at(schema, "prefixItems") != nullptr) return {kArrayType, {"prefixItems"}};
  if (schema.contains("items")) return {kArrayType, {"items", "minItems", "maxItems"}};
  return {kArrayType, {"prefixItems", "minItems", "maxItems"}};
}

const Node kObjectNode{kObjectType, {"properties", "required", "additionalProperties"}};
const Node kAllOfNode{kAny, {"allOf"}};

Node untyped_node(const json::object& schema) {
  if (has_properties(schema)) return kObjectNode;
  if (schema.contains("allOf")) return kAllOfNode;
  if (schema.contains("items") || schema.contains("prefixItems")) return array_node(schema);
  const bool is_string = schema.contains("pattern") || schema.contains("minLength") ||
                         schema.contains("maxLength") || format_of(schema) != nullptr;
  return is_string ? string_node(schema) : Node{};
}

Node typed_node(const json::object& schema, unsigned type) {
  const bool is_all_of = schema.contains("allOf");
  switch (type) {
    case kObjectType:
      return is_all_of && !has_properties(schema) ? kAllOfNode : kObjectNode;
    case kStringType:
      return is_all_of ? kAllOfNode : string_node(schema);
    case kArrayType:
      return array_node(schema);
    case kIntegerType:
      return {kIntegerType, {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"}};
    default:
      return {type, {}};
  }
}

/// The keyword that llama.cpp uses before it looks at the type, if there is one.
std::optional<std::string_view> decisive(const json::object& schema) {
  for (const std::string_view keyword : {"$ref", "oneOf", "anyOf"}) {
    if (schema.contains(keyword)) return keyword;
  }
  return std::nullopt;
}

/// Whether `keyword` with this value demands nothing of any answer.
bool is_empty(std::string_view keyword, const json::value& value) {
  if (keyword == "uniqueItems") return value.is_bool() && !value.get_bool();
  if (keyword == "not" || keyword == "const" || keyword == "contains" || keyword == "if") {
    return false;
  }
  if (value.is_bool()) return value.get_bool();
  if (const json::object* const object = value.if_object()) return object->empty();
  const json::array* const array = value.if_array();
  return array != nullptr && array->empty() && keyword != "enum";
}

std::string quoted(std::string_view keyword) {
  return "\"" + std::string(keyword) + "\"";
}

/// What `value` would have to be; empty if it is.
std::string_view missed_form(Form form, const json::value& value) {
  switch (form) {
    case Form::any:
      return "";
    case Form::boolean:
      return value.is_bool() ? "" : "true or false";
    case Form::number:
      return value.is_number() ? "" : "a number";
    case Form::length: {
      const bool is_length =
          value.is_number() && is_integer(value) && value.to_number<double>() >= 0;
      return is_length ? "" : "an integer from 0 on";
    }
    case Form::names: {
      const json::array* const names = value.if_array();
      const bool is_list = names != nullptr && std::ranges::all_of(*names, [](const auto& each) {
                             return each.is_string();
                           });
      return is_list ? "" : "an array of names";
    }
  }
  return "";
}

/// A keyword whose value is none for it, as those of older drafts may be.
std::optional<std::string> malformed(const json::object& schema) {
  for (const Demand& demand : kDemands) {
    const json::value* const value = schema.if_contains(demand.keyword);
    if (value == nullptr) continue;
    if (const std::string_view form = missed_form(demand.form, *value); !form.empty()) {
      return quoted(demand.keyword) + " must be " + std::string(form);
    }
  }
  return std::nullopt;
}

class SchemaReader {
 public:
  SchemaReader(const json::value& root, std::size_t& effort) : root_(root), effort_(effort) {}

  std::optional<std::string> unfollowed(const json::object& schema) const {
    if (auto why = malformed(schema)) return why;
    if (const auto keyword = decisive(schema)) {
      if (auto why = ignored(schema, {types_of(schema), {*keyword}})) return why;
      return *keyword == "oneOf" ? ambiguous(schema) : std::nullopt;
    }
    // The schema lists its values, which are checked against the other keywords elsewhere.
    if (schema.contains("const") || schema.contains("enum")) return std::nullopt;
    const json::array* const types = array_at(schema, "type");
    if (types == nullptr) {
      return unfollowed(schema, schema.contains("type") ? typed_node(schema, declared(schema))
                                                        : untyped_node(schema));
    }
    for (const json::value& each : *types) {
      if (!each.is_string()) continue;
      if (auto why = unfollowed(schema, typed_node(schema, type_named(each.get_string())))) {
        return why;
      }
    }
    return std::nullopt;
  }

 private:
  [[nodiscard]] std::optional<std::string> unfollowed(const json::object& schema, Node node) const {
    const bool is_all_of = node.has("allOf");
    if (is_all_of) {
      if (auto why = unmergeable(schema)) return why;
      node.types = kObjectType;
    }
    node.keywords.emplace_back("type");
    if (is_all_of && (declared(schema) & kObjectType) == 0)
      return quoted("allOf") + " is supported only for objects";
    if (auto why = ignored(schema, node)) return why;
    if (node.types == kObjectType && !is_all_of) {
      if (auto why = missing(schema)) return why;
      return confused(schema);
    }
    const std::int64_t most =
        count_at(schema, node.types == kArrayType ? "maxItems" : "maxLength", -1);
    const std::int64_t least =
        count_at(schema, node.types == kArrayType ? "minItems" : "minLength", 0);
    if ((node.types == kArrayType || node.types == kStringType) && most >= 0 && least > most) {
      return "its minimum length is greater than its maximum length";
    }
    return std::nullopt;
  }

  /// Says which keyword demands something of the values of `node` that llama.cpp ignores: the first
  /// one that is not among the node's keywords.
  [[nodiscard]] std::optional<std::string> ignored(const json::object& schema,
                                                   const Node& node) const {
    for (const Demand& demand : kDemands) {
      const json::value* const value = schema.if_contains(demand.keyword);
      if (value == nullptr || (demand.types & node.types) == 0 || node.has(demand.keyword) ||
          is_met(schema, demand.keyword, *value, node)) {
        continue;
      }
      std::string why = quoted(demand.keyword) + " is not supported";
      const auto beside = std::ranges::find_if(node.keywords, [&](std::string_view each) {
        return each != "type" && schema.contains(each);
      });
      if (beside != node.keywords.end()) why += " beside " + quoted(*beside);
      if (node.types == kNumeric) why += " for numbers that are not integers";
      return why;
    }
    return std::nullopt;
  }

  /// Whether answers satisfy the keyword although the grammar does not enforce it.
  [[nodiscard]] bool is_met(const json::object& schema, std::string_view keyword,
                            const json::value& value, const Node& node) const {
    if (is_empty(keyword, value)) return true;
    const std::int64_t count = value.is_int64() ? value.get_int64() : -1;
    if (keyword == "type") return (types_of(schema) & ~declared(schema)) == 0;
    if (keyword == "if") return !schema.contains("then") && !schema.contains("else");
    if (keyword == "multipleOf") return node.types == kIntegerType && count == 1;
    if (keyword == "minLength" || keyword == "maxLength") {
      const bool is_least = keyword == "minLength";
      if (is_least && count == 0) return true;
      const FormatLengths* const format =
          schema.contains("pattern") || decisive(schema) || node.types != kStringType
              ? nullptr
              : format_of(schema);
      return format != nullptr && (is_least ? count <= format->least : count >= format->most);
    }
    if (node.types == kArrayType) {
      const json::array* const tuple = tuple_of(schema);
      const std::int64_t most = tuple == nullptr ? count_at(schema, "maxItems", -1)
                                                 : static_cast<std::int64_t>(tuple->size());
      if (keyword == "minItems") return tuple != nullptr && count <= most;
      if (keyword == "maxItems") return tuple != nullptr && count >= most;
      return keyword == "uniqueItems" && (most == 0 || most == 1);
    }
    if (node.types == kObjectType && node.has("properties")) {
      const json::object* const properties = object_at(schema, "properties");
      const json::array* const names = array_at(schema, "required");
      if (keyword == "minProperties") {
        return names != nullptr && count <= static_cast<std::int64_t>(names->size());
      }
      if (keyword == "maxProperties") {
        return is_closed(schema) &&
               count >= static_cast<std::int64_t>(properties == nullptr ? 0 : properties->size());
      }
      return keyword == "unevaluatedProperties" && is_closed(schema);
    }
    return false;
  }

  /// Says which required property is not among the properties, so that answers may lack it.
  [[nodiscard]] static std::optional<std::string> missing(const json::object& schema) {
    const json::object* const properties = object_at(schema, "properties");
    const json::array* const names = array_at(schema, "required");
    if (names == nullptr) return std::nullopt;
    for (const json::value& each : *names) {
      if (!each.is_string()) continue;
      const std::string_view name = each.get_string();
      if (properties == nullptr || !properties->contains(name)) {
        return quoted("required") + " names " + quoted(name.substr(0, 100)) +
               ", which is not one of the properties";
      }
    }
    return std::nullopt;
  }

  /// Says which property has a name that llama.cpp misinterprets.
  [[nodiscard]] static std::optional<std::string> confused(const json::object& schema) {
    static constexpr std::string_view kFree = "*";  // llama.cpp's name for free properties
    const json::object* const properties = object_at(schema, "properties");
    if (properties == nullptr) return std::nullopt;
    const bool is_open = schema.contains("additionalProperties") && !is_closed(schema);
    const json::array* const names = array_at(schema, "required");
    const bool is_required =
        names != nullptr && std::ranges::any_of(*names, [](const json::value& each) {
          return each.is_string() && each.get_string() == kFree;
        });
    if (properties->contains(kFree) && (is_open || !is_required)) {
      return "a property \"*\" is supported only if it is required and no other properties are "
             "allowed";
    }
    if (!is_open) return std::nullopt;
    if (properties->size() == 1 && properties->contains("")) {
      // Free properties would have that name, and no other.
      return "a single property \"\" is not supported beside " + quoted("additionalProperties");
    }
    for (const auto& [name, property] : *properties) {
      // llama.cpp copies the names into sets of characters without escaping them.
      const bool is_plain = std::ranges::none_of(std::string_view(name), [](char c) {
        return static_cast<unsigned char>(c) < 0x20 || c == 0x7F ||
               std::string_view(R"("\]^)").contains(c);
      });
      if (!is_plain) {
        return "a property whose name has a quote, a backslash, \"]\", \"^\" or a control is not "
               "supported beside " +
               quoted("additionalProperties");
      }
    }
    return std::nullopt;
  }

  /// Says why llama.cpp cannot merge the parts of `allOf`. It merges objects with different
  /// properties into one object that has all of them, and nothing else.
  [[nodiscard]] std::optional<std::string> unmergeable(const json::object& schema) const {
    static constexpr std::string_view kWhy =
        "\"allOf\" is supported only for objects that each list different properties; write them "
        "out as one";
    const json::array* const parts = array_at(schema, "allOf");
    if (parts == nullptr) return std::nullopt;  // llama.cpp reports this error
    std::set<std::string_view> names;
    for (const json::value& each : *parts) {
      const json::object* const part = target_of(each);
      const json::object* const properties =
          part == nullptr || decisive(*part) || part->contains("const") || part->contains("enum")
              ? nullptr
              : object_at(*part, "properties");
      const bool may_be_object = part != nullptr && (declared(*part) & kObjectType) != 0 &&
                                 array_at(*part, "type") == nullptr;
      if (properties == nullptr || !may_be_object ||
          (part->contains("additionalProperties") && !is_true(*part, "additionalProperties"))) {
        return std::string(kWhy);
      }
      for (const auto& [name, property] : *properties) {
        if (!names.insert(name).second) return std::string(kWhy);
      }
    }
    return std::nullopt;
  }

  /// Says which alternatives of `oneOf` an answer may satisfy at the same time. An answer must
  /// satisfy only one, but the grammar does not check that.
  [[nodiscard]] std::optional<std::string> ambiguous(const json::object& schema) const {
    const json::array* const all = array_at(schema, "oneOf");
    if (all == nullptr || all->size() < 2) return std::nullopt;
    if (all->size() > kMaxAlternatives) {
      return "\"oneOf\" has more than " + std::to_string(kMaxAlternatives) +
             " alternatives; use \"anyOf\"";
    }
    for (std::size_t i = 0; i < all->size(); ++i) {
      for (std::size_t j = 0; j < i; ++j) {
        if (excludes((*all)[i], (*all)[j], 0) && excludes((*all)[j], (*all)[i], 0)) continue;
        return "two alternatives of \"oneOf\", " + std::to_string(j) + " and " + std::to_string(i) +
               " (counted from 0), may both be satisfied by one answer; use \"anyOf\", or give "
               "them different types, or "
               "a required property with different constants";
      }
    }
    return std::nullopt;
  }

  /// Whether certainly no answer to the grammar of `one` satisfies `other`.
  [[nodiscard]] bool excludes(const json::value& one, const json::value& other,
                              std::size_t depth) const {
    const unsigned left_types = types_of(one);
    if ((left_types & types_of(other, Reading::as_json_schema)) == 0) return true;
    const json::object* const left = target_of(one);
    const json::object* const right = target_of(other);
    if (left == nullptr || right == nullptr || depth > 2) return false;
    const auto left_values = values_of(*left);
    const auto right_values = values_of(*right);
    if (!spend(1 + left_values.size() * right_values.size())) return false;
    if (!left_values.empty() && !right_values.empty()) {
      return std::ranges::none_of(left_values, [&](const json::value* value) {
        return std::ranges::any_of(right_values,
                                   [&](const json::value* each) { return is_same(*each, *value); });
      });
    }
    // Of objects, `other` demands its required properties, whatever else it allows.
    if (left_types != kObjectType || !left_values.empty() || decisive(*left) || decisive(*right)) {
      return false;
    }
    const json::object* const properties = object_at(*left, "properties");
    const json::object* const others = object_at(*right, "properties");
    const json::array* const required = array_at(*right, "required");
    if (required == nullptr) return false;
    return std::ranges::any_of(*required, [&](const json::value& each) {
      if (!each.is_string()) return false;
      const std::string_view name = each.get_string();
      const json::value* const mine =
          properties == nullptr ? nullptr : properties->if_contains(name);
      if (mine == nullptr) return is_closed(*left);
      const json::value* const theirs = others == nullptr ? nullptr : others->if_contains(name);
      return theirs != nullptr && excludes(*mine, *theirs, depth + 1);
    });
  }

  /// Whether the values are equal as defined by JSON Schema, where 1 equals 1.0. Also true if that
  /// takes too long to find out.
  static bool is_same(const json::value& one, const json::value& other) {
    WorkBudget work{.steps = kMaxComparison, .depth = kMaxComparison};
    return equal_values(one, other, work) || work.exhausted;
  }

  static std::vector<const json::value*> values_of(const json::object& schema) {
    std::vector<const json::value*> values;
    if (decisive(schema)) return values;
    if (const json::value* const value = schema.if_contains("const")) return {value};
    if (const json::array* const all = array_at(schema, "enum")) {
      for (const json::value& each : *all) values.push_back(&each);
    }
    return values;
  }

  /// The schema that `value` is or refers to; null if there is none.
  [[nodiscard]] const json::object* target_of(const json::value& value) const {
    const json::value* target = &value;
    for (std::size_t hops = 0; target != nullptr && hops < kMaxReferences; ++hops) {
      const json::object* const schema = target->if_object();
      if (schema == nullptr || !schema->contains("$ref")) return schema;
      target = resolve_reference(root_, text_at(*schema, "$ref"));
    }
    return nullptr;
  }

  /// A schema that names no type allows all types, but its grammar may accept only one, such as
  /// objects if it has `properties`.
  enum class Reading : std::uint8_t { as_grammar, as_json_schema };

  /// The types of the values that the schema's grammar accepts, or that the schema allows at most.
  [[nodiscard]] unsigned types_of(const json::value& value, Reading reading = Reading::as_grammar,
                                  std::size_t depth = 0) const {
    const json::object* const schema = target_of(value);
    return schema == nullptr ? unsigned{kAny} : types_of(*schema, reading, depth);
  }
  [[nodiscard]] unsigned types_of(const json::object& schema, Reading reading = Reading::as_grammar,
                                  std::size_t depth = 0) const {
    if (depth > 4 || !spend(1)) return kAny;
    if (const auto keyword = decisive(schema)) {
      if (*keyword == "$ref") {
        const json::value* const at = resolve_reference(root_, text_at(schema, "$ref"));
        const json::object* const target = at == nullptr ? nullptr : target_of(*at);
        return target == nullptr ? unsigned{kAny} : types_of(*target, reading, depth + 1);
      }
      unsigned types = 0;
      if (const json::array* const all = array_at(schema, *keyword)) {
        for (const json::value& each : *all) types |= types_of(each, reading, depth + 1);
      }
      return types == 0 ? unsigned{kAny} : types;
    }
    if (const auto values = values_of(schema); !values.empty()) {
      unsigned types = 0;
      if (!spend(values.size())) return kAny;
      for (const json::value* const each : values) types |= type_of(*each);
      return types;
    }
    if (schema.contains("type")) return declared(schema);
    return reading == Reading::as_grammar ? untyped_node(schema).types : unsigned{kAny};
  }

  /// Spends `steps` of the effort. Returns whether any is left.
  [[nodiscard]] bool spend(std::size_t steps) const {
    effort_ -= std::min(effort_, steps);
    return effort_ > 0;
  }

  const json::value& root_;
  std::size_t& effort_;
};

}  // namespace

bool is_demand(std::string_view keyword) {
  return std::ranges::find(kDemands, keyword, &Demand::keyword) != kDemands.end();
}

std::optional<std::string> unfollowed_demand(const json::object& schema, const json::value& root,
                                             std::size_t& effort) {
  return SchemaReader(root, effort).unfollowed(schema);
}

}  // namespace sluice
