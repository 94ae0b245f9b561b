#include "engine/llama/grammar/followable_schema.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "engine/llama/grammar/schema_pattern.hpp"
#include "engine/llama/grammar/schema_reading.hpp"
#include "engine/llama/grammar/schema_reference.hpp"
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

/// Whether `schema` allows the type `name`. If it does not name a type, the result is `unsaid`.
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

class SchemaFollower {
 public:
  SchemaFollower(const json::value& root, Inexpressible what) : root_(root), what_(what) {
    find_schemas(root);
  }

  Result<json::value> run() {
    json::value out = copy(root_);
    if (!error_.empty()) return fail(kInvalidParams, error_);
    return out;
  }

 private:
  /// Collects the schemas that llama.cpp reads.
  void find_schemas(const json::value& value) {
    const json::object* const schema = value.if_object();
    if (schema == nullptr || !schemas_.insert(schema).second) return;
    if (const json::value* const reference = schema->if_contains("$ref")) {
      if (!reference->is_string()) return;
      const json::value* const target = resolve_reference(root_, reference->get_string());
      if (target != nullptr) find_schemas(*target);
      return;
    }
    for (const std::string_view keyword :
         {"oneOf", "anyOf", "allOf", "items", "prefixItems", "additionalProperties"}) {
      const json::value* const below = schema->if_contains(keyword);
      if (below == nullptr) continue;
      find_schemas(*below);
      if (const json::array* const list = below->if_array()) {
        for (const json::value& each : *list) find_schemas(each);
      }
    }
    const json::value* const properties = schema->if_contains("properties");
    if (properties == nullptr || !properties->is_object()) return;
    for (const auto& [name, property] : properties->get_object()) find_schemas(property);
  }

  json::value copy(const json::value& value) {
    if (const json::array* const array = value.if_array()) {
      json::array out;
      for (const json::value& each : *array) out.push_back(copy(each, std::to_string(out.size())));
      return out;
    }
    const json::object* const object = value.if_object();
    if (object == nullptr) return value;
    json::object out;
    for (const auto& [name, member] : *object) out.emplace(name, copy(member, name));
    if (schemas_.contains(object)) follow(out, *object);
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
    const bool is_merged = merge_single(schema);
    // llama.cpp generates exactly the items of a tuple, so nothing can follow them.
    if (const json::value* const items = schema.if_contains("items");
        items != nullptr && items->is_bool() && schema.contains("prefixItems")) {
      schema.erase("items");
    }
    if (!is_decided(schema)) {
      // A merged schema has already been rewritten, and rewriting a pattern twice would change it.
      if (!is_merged && has_type(schema, "string", true)) follow_pattern(schema);
      if (has_type(schema, "integer", false)) follow_bounds(schema);
    }
    if (what_ == Inexpressible::passed_over) return;
    if (const auto why = unfollowed_demand(schema, root_, effort_)) return pass_over(*why);
    if (is_merged) return;
    for (const char* const keyword : {"const", "enum"}) {
      if (schema.contains(keyword)) return follow_values(schema, original, keyword);
    }
  }

  /// Replaces an `allOf` of a single schema, without other demands beside it, by that schema,
  /// because llama.cpp would interpret it differently. Returns whether it did.
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

  /// Keeps only the values that follow the keywords beside them, which the grammar does not
  /// consider.
  void follow_values(json::object& schema, const json::object& original, std::string_view keyword) {
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
  std::unordered_set<const json::object*> schemas_;
  std::string place_ = "#";       // the place of what is being copied
  std::size_t effort_ = 200'000;  // for unfollowed_demand()
  std::string error_;
};

}  // namespace

Result<json::value> followable_schema(const json::value& schema, Inexpressible what) {
  return SchemaFollower(schema, what).run();
}

}  // namespace sluice
