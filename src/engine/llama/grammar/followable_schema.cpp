#include "engine/llama/grammar/followable_schema.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "engine/llama/grammar/schema_pattern.hpp"
#include "engine/llama/grammar/schema_reading.hpp"
#include "engine/llama/grammar/schema_reference.hpp"
#include "json/path.hpp"
#include "json_schema/json_schema.hpp"
#include "rpc/error_codes.hpp"

namespace sluice {
namespace {

// The values with which llama.cpp represents a missing bound.
constexpr std::int64_t kUnboundedBelow = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t kUnboundedAbove = std::numeric_limits<std::int64_t>::max();
/// llama.cpp negates a negative bound; the result must not be kUnboundedAbove.
constexpr std::int64_t kLeast = -kUnboundedAbove + 1;
constexpr std::int64_t kUsual =
    9'999'999'999'999'999;  // the largest integer that llama.cpp generates without bounds

constexpr int kMostLength = std::numeric_limits<int>::max();
constexpr std::array kLengths =
    std::to_array<std::pair<std::string_view, std::string_view>>({{"minLength", "string"},
                                                                  {"maxLength", "string"},
                                                                  {"minItems", "array"},
                                                                  {"maxItems", "array"},
                                                                  {"minProperties", "object"},
                                                                  {"maxProperties", "object"}});

/// Whether `schema` may be of that type: it says so, or, `unsaid`, says nothing.
bool has_type(const json::object& schema, std::string_view name, bool unsaid) {
  const json::value* const type = schema.if_contains("type");
  if (type == nullptr) return unsaid;
  const auto is_named = [&](const json::value& each) {
    const json::string* const text = each.if_string();
    return text != nullptr && *text == name;
  };
  const json::array* const types = type->if_array();
  return types == nullptr ? is_named(*type) : std::ranges::any_of(*types, is_named);
}

/// Whether llama.cpp handles the schema by one of these keywords and does not look at its type.
bool is_decided(const json::object& schema) {
  return std::ranges::any_of(
      std::initializer_list<std::string_view>{"$ref", "oneOf", "anyOf", "const", "enum"},
      [&](std::string_view keyword) { return schema.contains(keyword); });
}

/// The bound at `keyword` as an integer: rounded up if `is_least`, otherwise rounded down. A bound
/// that does not fit becomes kUnboundedBelow or kUnboundedAbove.
std::optional<std::int64_t> integer_bound(const json::object& schema, std::string_view keyword,
                                          bool is_least) {
  const json::value* const bound = schema.if_contains(keyword);
  if (bound == nullptr || !bound->is_number()) return std::nullopt;
  if (const std::int64_t* const integer = bound->if_int64()) return *integer;
  const double number = bound->to_number<double>();
  static constexpr double kBeyond = 9223372036854775808.0;  // 2^63
  if (number >= kBeyond) return kUnboundedAbove;
  if (number < -kBeyond) return kUnboundedBelow;
  return static_cast<std::int64_t>(is_least ? std::ceil(number) : std::floor(number));
}

using SchemaSet = std::unordered_set<const json::object*>;

const json::string* string_member(const json::object& schema, std::string_view keyword) {
  const json::value* const value = schema.if_contains(keyword);
  return value == nullptr ? nullptr : value->if_string();
}

/// Notes the schemas in `root` that llama.cpp reads, from `value` on.
void find_schemas(const json::value& root, const json::value& value, SchemaSet& found) {
  const json::object* const schema = value.if_object();
  if (schema == nullptr || !found.insert(schema).second) return;
  if (schema->contains("$ref")) {
    const json::string* const reference = string_member(*schema, "$ref");
    const json::value* const target =
        reference == nullptr ? nullptr : resolve_reference(root, *reference);
    if (target != nullptr) find_schemas(root, *target, found);
    return;
  }
  for (const std::string_view keyword :
       {"oneOf", "anyOf", "allOf", "items", "prefixItems", "additionalProperties"}) {
    const json::value* const below = schema->if_contains(keyword);
    if (below == nullptr) continue;
    find_schemas(root, *below, found);
    if (const json::array* const list = below->if_array()) {
      for (const json::value& each : *list) find_schemas(root, each, found);
    }
  }
  const json::value* const properties = schema->if_contains("properties");
  if (properties == nullptr || !properties->is_object()) return;
  for (const auto& [name, property] : properties->get_object()) {
    find_schemas(root, property, found);
  }
}

/// llama.cpp knows no escapes in references, and no "#": where there are any, all that is referred
/// to moves to a place that needs none. The root stays where it is, and a copy of it moves.
void spell_out_references(json::value& root) {
  SchemaSet schemas;
  find_schemas(root, root, schemas);
  const bool is_needed = std::ranges::any_of(schemas, [](const json::object* schema) {
    const json::string* const reference = string_member(*schema, "$ref");
    return reference != nullptr &&
           (*reference == "#" ||
            std::string_view(*reference).find_first_of("~%") != std::string_view::npos);
  });
  if (!is_needed) return;
  std::string place = "$targets";
  while (root.get_object().contains(place)) place += '_';
  std::unordered_map<const json::value*, std::size_t> targets;
  const auto reference_to = [&](std::size_t target) {
    return "#/" + place + "/" + std::to_string(target);
  };
  // All of it is within `root`, which may be changed.
  for (const json::object* const schema : schemas) {
    const json::string* const reference = string_member(*schema, "$ref");
    const json::value* const target =
        reference == nullptr ? nullptr : resolve_reference(root, *reference);
    if (target == nullptr) continue;
    const auto [known, added] = targets.try_emplace(target, targets.size());
    const_cast<json::object&>(*schema)["$ref"] = reference_to(known->second);
  }
  json::array moved(targets.size());
  for (const auto& [target, number] : targets) {
    if (target == &root) continue;
    moved[number] = std::exchange(const_cast<json::value&>(*target),
                                  json::object{{"$ref", reference_to(number)}});
  }
  if (const auto whole = targets.find(&root); whole != targets.end()) moved[whole->second] = root;
  root.get_object()[place] = std::move(moved);
}

/// Whether some number in it may not be the one that was written.
bool has_rounded_number(const json::value& value) {
  if (const double* const number = value.if_double()) return !(std::abs(*number) < 0x1p53);
  if (const json::array* const array = value.if_array()) {
    return std::ranges::any_of(*array, has_rounded_number);
  }
  const json::object* const object = value.if_object();
  return object != nullptr && std::ranges::any_of(*object, [](const auto& member) {
           return has_rounded_number(member.value());
         });
}

class SchemaFollower {
 public:
  SchemaFollower(const json::value& root, Inexpressible what) : root_(root), what_(what) {
    find_schemas(root, root, schemas_);
  }

  Result<json::value> run() {
    json::value out = copy(root_);
    if (!error_.empty()) return fail(kInvalidParams, error_);
    if (out.is_object()) spell_out_references(out);
    return out;
  }

 private:
  json::value copy(const json::value& value) {
    if (const json::array* const array = value.if_array()) {
      json::array out;
      for (const json::value& each : *array) out.push_back(copy(each, std::to_string(out.size())));
      return out;
    }
    const json::object* const object = value.if_object();
    if (object == nullptr) return value;
    json::object out;
    // Of old, what begins with a '#' was a name within the same one.
    const json::string* const id = string_member(*object, "$id");
    const bool is_resource = id != nullptr && !id->starts_with('#') && object != root_.if_object();
    if (is_resource) ++resources_;
    for (const auto& [name, member] : *object) out.emplace(name, copy(member, name));
    if (schemas_.contains(object)) follow(out, *object);
    if (is_resource) --resources_;
    return out;
  }
  json::value copy(const json::value& value, std::string_view step) {
    const std::size_t before = place_.size();
    place_.append("/").append(step);
    json::value out = copy(value);
    place_.resize(before);
    return out;
  }

  /// Rewrites `schema`. `original` is the schema before the schemas inside it were rewritten.
  void follow(json::object& schema, const json::object& original) {
    follow_reference(schema, original);
    follow_booleans(schema);
    const bool is_merged = merge_single(schema);
    // llama.cpp generates exactly the items of a tuple, so nothing can follow them.
    if (const json::value* const items = schema.if_contains("items");
        items != nullptr &&
        (items->is_bool() || (items->is_object() && items->get_object().empty())) &&
        schema.contains("prefixItems")) {
      schema.erase("items");
    }
    if (!is_decided(schema)) {
      // A merged schema has already been rewritten, and rewriting a pattern twice would change it.
      if (!is_merged && has_type(schema, "string", true)) follow_pattern(schema);
      if (has_type(schema, "integer", false)) follow_bounds(schema);
      for (const auto& [keyword, type] : kLengths) {
        if (has_type(schema, type, true)) follow_length(schema, keyword);
      }
    }
    if (what_ == Inexpressible::passed_over) return;
    if (const auto why = unfollowed_demand(schema, root_, effort_)) return pass_over(*why);
    if (is_merged) return;
    for (const char* const keyword : {"const", "enum"}) {
      if (schema.contains(keyword)) return follow_values(schema, original, keyword);
    }
  }

  /// What leads elsewhere, or nowhere, demands nothing.
  void follow_reference(json::object& schema, const json::object& original) {
    const json::string* const reference = string_member(original, "$ref");
    if (reference == nullptr) return;
    const json::value* const target = resolve_reference(root_, *reference);
    if (resources_ > 0) {
      pass_over("\"$ref\" is not supported in a schema that has an \"$id\" of its own");
    } else if (*reference != "#" && !reference->starts_with("#/")) {
      pass_over("the \"$ref\" " + describe_text(*reference) +
                " is not supported; use a JSON pointer, such as \"#/$defs/a\"");
    } else if (target == nullptr || !(target->is_object() || target->is_bool())) {
      pass_over("the \"$ref\" " + describe_text(*reference) + " leads nowhere");
    } else if (target->is_object()) {
      return;
    } else if (!target->get_bool()) {
      pass_over("the \"$ref\" " + describe_text(*reference) + " allows no value");
    }
    schema.clear();  // what stands beside it was not read, and so has not been followed
  }

  /// llama.cpp reads only objects as schemas.
  void follow_booleans(json::object& schema) {
    for (auto& [keyword, value] : schema) {
      if (keyword == "oneOf" || keyword == "anyOf" || keyword == "allOf" ||
          keyword == "prefixItems" || keyword == "items") {
        if (json::array* const list = value.if_array()) {
          for (json::value& each : *list) follow_boolean(each);
        } else if (keyword == "items") {
          follow_boolean(value);
        }
      } else if (keyword == "properties" && value.is_object()) {
        for (auto& [name, property] : value.get_object()) follow_boolean(property);
      }
    }
  }
  /// A schema that allows no value stays, if it may not be passed over, and llama.cpp refuses it.
  void follow_boolean(json::value& schema) const {
    const bool* const allows = schema.if_bool();
    if (allows != nullptr && (*allows || what_ == Inexpressible::passed_over)) {
      schema = json::object();
    }
  }

  /// An `allOf` of one that stands alone is that one. llama.cpp makes another of it. True if it was
  /// one.
  static bool merge_single(json::object& schema) {
    json::value* const all = schema.if_contains("allOf");
    if (all == nullptr || !all->is_array() || all->get_array().size() != 1 ||
        !all->get_array()[0].is_object() ||
        std::ranges::count_if(schema, [](const auto& each) { return is_demand(each.key()); }) > 1) {
      return false;
    }
    json::object one = std::move(all->get_array()[0].get_object());
    schema.erase("allOf");
    schema.insert(one.begin(), one.end());
    return true;
  }

  /// llama.cpp keeps lengths as `int`, and reads none that are written as 2.0.
  void follow_length(json::object& schema, std::string_view keyword) {
    json::value* const length = schema.if_contains(keyword);
    if (length == nullptr || !length->is_number()) return;
    const double number = length->to_number<double>();
    if (number > kMostLength) {
      pass_over("\"" + std::string(keyword) + "\" is not supported above " +
                std::to_string(kMostLength));
      schema.erase(keyword);
    } else if (const auto integer = exact_integer(number)) {
      *length = *integer;
    }
  }

  /// Leaves the values that follow what stands beside them, of which the grammar knows nothing.
  void follow_values(json::object& schema, const json::object& original, std::string_view keyword) {
    if (has_rounded_number(schema.at(keyword))) {
      return pass_over("numbers from 2^53 on are not supported in \"" + std::string(keyword) +
                       "\" but as integers of 64 bits");
    }
    if (std::ranges::count_if(schema, [](const auto& each) { return is_demand(each.key()); }) < 2) {
      return;
    }
    const Result<JsonSchema> compiled = JsonSchema::compile(original);
    if (!compiled) return pass_over(compiled.error().message);
    const auto breaks = [&](const json::value& value) { return !compiled->validate(value); };
    json::value& values = schema.at(keyword);
    bool is_none = false;
    if (keyword == "const") {
      is_none = breaks(values);
    } else if (json::array* const list = values.if_array()) {
      json::array kept;
      for (const json::value& each : *list) {
        if (!breaks(each)) kept.push_back(each);
      }
      is_none = kept.empty();
      *list = std::move(kept);
    }
    if (is_none) {
      pass_over("no value of \"" + std::string(keyword) + "\" satisfies the keywords beside it");
    }
  }

  void follow_pattern(json::object& schema) {
    json::value* const pattern = schema.if_contains("pattern");
    if (pattern == nullptr || !pattern->is_string()) return;
    if (auto followed = followed_pattern(pattern->get_string())) {
      *pattern = *followed;
    } else {
      pass_over("a pattern is not supported: " + followed.error());
      schema.erase("pattern");
    }
  }

  /// Replaces exclusive bounds, which llama.cpp handles wrongly: it ignores one that stands beside
  /// another bound, and for a single one of several digits its grammar accepts wrong numbers, such
  /// as 15 for a minimum of 105. It handles a pair of bounds correctly.
  void follow_bounds(json::object& schema) {
    std::int64_t low = integer_bound(schema, "minimum", true).value_or(kUnboundedBelow);
    std::int64_t high = integer_bound(schema, "maximum", false).value_or(kUnboundedAbove);
    // The greatest integer that is not above the bound is the last one that the bound excludes.
    if (const auto below = integer_bound(schema, "exclusiveMinimum", false)) {
      low = std::max(low, *below == kUnboundedAbove ? kUnboundedAbove : *below + 1);
    }
    if (const auto above = integer_bound(schema, "exclusiveMaximum", true)) {
      high = std::min(high, *above == kUnboundedBelow ? kUnboundedBelow : *above - 1);
    }
    for (const char* const keyword :
         {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"}) {
      if (const json::value* const bound = schema.if_contains(keyword);
          bound == nullptr || bound->is_number()) {
        schema.erase(keyword);
      }
    }
    if (low < kLeast) low = kUnboundedBelow;
    const bool is_bounded_below = low != kUnboundedBelow;
    const bool is_bounded_above = high != kUnboundedAbove;
    if (is_bounded_below && !is_bounded_above && low > 9) {
      high = low > kUsual ? kUnboundedAbove - 1 : kUsual;
    }
    if (is_bounded_above && !is_bounded_below && high < 0) low = high < -kUsual ? kLeast : -kUsual;
    if (low > high || low == kUnboundedAbove) {
      return pass_over("the bounds of an integer leave no value that is supported");
    }
    if (low != kUnboundedBelow) schema["minimum"] = low;
    if (high != kUnboundedAbove) schema["maximum"] = high;
  }

  void pass_over(std::string_view why) {
    if (what_ != Inexpressible::refused || !error_.empty()) return;
    error_.append("at ").append(place_).append(": ").append(why);
  }

  const json::value& root_;
  const Inexpressible what_;
  SchemaSet schemas_;
  std::string place_ = "#";       // of what is copied
  std::size_t resources_ = 0;     // with an `$id` of their own that it is within
  std::size_t effort_ = 200'000;  // of unfollowed_demand()
  std::string error_;
};

}  // namespace

Result<json::value> followable_schema(const json::value& schema, Inexpressible what) {
  return SchemaFollower(schema, what).run();
}

}  // namespace sluice
