#include "json_schema/compiler.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/string.hpp>

#include "json_schema/documents.hpp"
#include "json_schema/keywords.hpp"
#include "json_schema/value.hpp"

namespace sluice {
namespace {

constexpr auto kTypes = std::to_array<std::pair<std::string_view, std::uint8_t>>({
    {"null", kTypeNull},
    {"boolean", kTypeBoolean},
    {"integer", kTypeInteger},
    {"number", kTypeNumber},
    {"string", kTypeString},
    {"array", kTypeArray},
    {"object", kTypeObject},
});

/// Reads a count of characters, items or properties. A count that does not fit into 64 bits is
/// never reached, so it becomes the largest.
std::optional<std::uint64_t> read_count(const json::value& value) {
  if (!value.is_number() || !is_integer(value)) return std::nullopt;
  if (compare_numbers(value, json::value(0)) < 0) return std::nullopt;
  if (!value.is_double()) return value.to_number<std::uint64_t>();
  constexpr double kPastCounts = 0x1p64;
  const double count = value.get_double();
  return count < kPastCounts ? static_cast<std::uint64_t>(count) : kNoLimit;
}

/// The rules of a node for one kind of instance. They are created when they are first needed.
template <class Rules>
Rules& rules_in(std::vector<Rules>& all, SchemaIndex& index) {
  if (index == kNoSchema) {
    index = static_cast<SchemaIndex>(all.size());
    all.emplace_back();
  }
  return all[index];
}

class Compiler {
 public:
  explicit Compiler(const JsonSchemaOptions& options) : options_(options), documents_(options) {
    program_.limits = options.limits;
    pattern_work_ = options.limits.max_pattern_work;
    program_.null_for_optional = options.null_for_optional;
  }

  Result<JsonSchemaProgram> compile(const json::value& schema) {
    if (auto added = documents_.add_root(schema); !added) return std::unexpected(added.error());
    // The number of schemas grows during the loop, because references add documents.
    for (SchemaIndex at = 0; at < documents_.size(); ++at) {
      if (auto done = compile_schema(at); !done) return std::unexpected(done.error());
    }
    find_candidates();
    program_.find_distinguishing();
    program_.measure(size_of(schema).memory());
    return std::move(program_);
  }

 private:
  void find_candidates() {
    std::map<std::string_view, std::shared_ptr<const std::vector<DynamicAnchor>>> known;
    for (DynamicReference& reference : program_.dynamic_references) {
      auto& candidates = known[reference.anchor];
      if (candidates == nullptr) {
        candidates = std::make_shared<const std::vector<DynamicAnchor>>(
            documents_.dynamic_anchors(reference.anchor));
      }
      reference.candidates = candidates;
    }
  }

  Result<void> compile_schema(SchemaIndex at) {
    at_ = at;
    node_ = {};
    node_.resource = documents_.place(at).resource;
    members_.clear();
    const json::value& schema = *documents_.place(at).schema;
    if (schema.is_bool()) {
      if (!schema.get_bool()) node_.types = 0;
    } else if (auto done = compile_keywords(schema.get_object()); !done) {
      return done;
    }
    program_.nodes.push_back(node_);
    return {};
  }

  Result<void> compile_keywords(const json::object& schema) {
    // Copied, because resolving a reference may read more documents.
    const SchemaDraft draft = documents_.resource_of(at_).draft;
    const std::uint8_t vocabularies = documents_.resource_of(at_).vocabularies;
    const bool only_reference = draft == SchemaDraft::draft_07 && schema.contains("$ref");
    for (const auto& [name, value] : schema) {
      const KeywordRule* const rule = find_keyword(name, draft);
      if (rule == nullptr || (vocabularies & rule->vocabulary) == 0) continue;
      if (only_reference && rule->keyword != Keyword::ref) continue;
      keyword_ = name;
      if (auto done = compile_keyword(rule->keyword, value, schema); !done) return done;
    }
    finish_members();
    if (node_.any != kNoSchema) {
      AnyRules& any = program_.any[node_.any];
      if (any.condition == kNoSchema) any.consequence = any.alternative = kNoSchema;
    }
    return {};
  }

  Result<void> compile_keyword(Keyword keyword, const json::value& value,
                               const json::object& schema) {
    switch (keyword) {
      case Keyword::definitions:
      case Keyword::content_schema:
        return {};
      case Keyword::type:
        return compile_type(value);
      case Keyword::ref:
        return compile_reference(value);
      case Keyword::dynamic_ref:
        return compile_dynamic_reference(value);
      case Keyword::recursive_ref:
        return compile_recursive_reference(value);
      case Keyword::enumeration:
        if (!value.is_array()) return invalid("expected an array");
        any().has_enumeration = true;
        any().enumeration.assign(value.get_array().begin(), value.get_array().end());
        return {};
      case Keyword::constant:
        any().has_constant = true;
        any().constant = value;
        return {};
      case Keyword::all_of:
        return compile_list(value, any().all_of);
      case Keyword::any_of:
        return compile_list(value, any().any_of);
      case Keyword::one_of:
        return compile_list(value, any().one_of);
      case Keyword::negated:
        return compile_child(value, any().negated);
      case Keyword::condition:
        return compile_child(value, any().condition);
      case Keyword::consequence:
        return compile_child(value, any().consequence);
      case Keyword::alternative:
        return compile_child(value, any().alternative);
      default:
        return compile_for_kind(keyword, value, schema);
    }
  }

  /// Compiles the keywords that apply to one kind of instance only.
  Result<void> compile_for_kind(Keyword keyword, const json::value& value,
                                const json::object& schema) {
    switch (keyword) {
      case Keyword::minimum:
        return compile_number(value, numbers().minimum);
      case Keyword::maximum:
        return compile_number(value, numbers().maximum);
      case Keyword::exclusive_minimum:
        return compile_number(value, numbers().exclusive_minimum);
      case Keyword::exclusive_maximum:
        return compile_number(value, numbers().exclusive_maximum);
      case Keyword::multiple_of:
        if (!value.is_number() || !(compare_numbers(value, json::value(0)) > 0) ||
            (value.is_double() && std::isinf(value.get_double()))) {
          return invalid("expected a number above 0");
        }
        numbers().multiple_of = value;
        return {};
      case Keyword::min_length:
        return compile_count(value, strings().min_length);
      case Keyword::max_length:
        return compile_count(value, strings().max_length);
      case Keyword::pattern:
        if (!value.is_string()) return invalid("expected a string");
        return compile_pattern(value.get_string(), strings().pattern);
      case Keyword::format:
        return compile_format(value);
      default:
        break;
    }
    if (Result<bool> done = compile_for_array(keyword, value, schema); !done) {
      return std::unexpected(done.error());
    } else if (*done) {
      return {};
    }
    return compile_for_object(keyword, value);
  }

  /// Returns false if the keyword does not apply to arrays.
  Result<bool> compile_for_array(Keyword keyword, const json::value& value,
                                 const json::object& schema) {
    Result<void> done;
    switch (keyword) {
      case Keyword::min_items:
        done = compile_count(value, arrays().min_items);
        break;
      case Keyword::max_items:
        done = compile_count(value, arrays().max_items);
        break;
      case Keyword::min_contains:
        done = compile_count(value, arrays().min_contains);
        break;
      case Keyword::max_contains:
        done = compile_count(value, arrays().max_contains);
        break;
      case Keyword::unique_items:
        if (!value.is_bool()) return invalid("expected a boolean");
        arrays().unique = value.get_bool();
        break;
      case Keyword::contains:
        arrays().contains_evaluates =
            documents_.resource_of(at_).draft >= SchemaDraft::draft_2020_12;
        done = compile_child(value, arrays().contains);
        break;
      case Keyword::prefix_items:
        done = compile_list(value, arrays().prefix);
        break;
      case Keyword::items:
        // Before 2020-12, `items` with a list had the meaning of prefixItems.
        done = value.is_array() && documents_.resource_of(at_).draft < SchemaDraft::draft_2020_12
                   ? compile_list(value, arrays().prefix)
                   : compile_child(value, arrays().items);
        break;
      case Keyword::additional_items:
        if (const json::value* const items = schema.if_contains("items");
            items != nullptr && items->is_array()) {
          done = compile_child(value, arrays().items);
        }
        break;
      case Keyword::unevaluated_items:
        node_.unevaluated = true;
        done = compile_child(value, arrays().unevaluated);
        break;
      default:
        return false;
    }
    if (!done) return std::unexpected(done.error());
    return true;
  }

  Result<void> compile_for_object(Keyword keyword, const json::value& value) {
    switch (keyword) {
      case Keyword::min_properties:
        return compile_count(value, objects().min_properties);
      case Keyword::max_properties:
        return compile_count(value, objects().max_properties);
      case Keyword::required:
        return for_each_name(
            value, [this](std::string_view name) { members_[std::string(name)].required = true; });
      case Keyword::properties:
        return for_each_child(value, [this](std::string_view name, SchemaIndex node) {
          members_[std::string(name)].node = node;
          return Result<void>{};
        });
      case Keyword::pattern_properties:
        return for_each_child(value, [this](std::string_view pattern, SchemaIndex node) {
          PatternRule rule{.node = node};
          Result<void> done = compile_pattern(pattern, rule.pattern);
          if (done) objects().patterns.push_back(rule);
          return done;
        });
      case Keyword::additional_properties:
        return compile_child(value, objects().additional);
      case Keyword::property_names:
        return compile_child(value, objects().names);
      case Keyword::unevaluated_properties:
        node_.unevaluated = true;
        return compile_child(value, objects().unevaluated);
      case Keyword::dependencies:
      case Keyword::dependent_required:
      case Keyword::dependent_schemas:
        return compile_dependencies(value, keyword);
      default:
        return {};
    }
  }

  Result<void> compile_type(const json::value& value) {
    std::uint8_t types = 0;
    const auto add = [&](const json::value& name) -> Result<void> {
      if (!name.is_string()) return invalid("expected a type's name or an array of them");
      const std::string_view text = name.get_string();
      const auto* const known =
          std::ranges::find(kTypes, text, &std::pair<std::string_view, std::uint8_t>::first);
      if (known == kTypes.end())
        return invalid("there is no type " + to_json_string(text.substr(0, 40)));
      types |= known->second;
      return {};
    };
    if (!value.is_array()) {
      if (auto added = add(value); !added) return added;
    } else {
      for (const json::value& name : value.get_array()) {
        if (auto added = add(name); !added) return added;
      }
    }
    node_.types = types;
    return {};
  }

  Result<void> compile_reference(const json::value& value) {
    if (!value.is_string()) return invalid("expected a string");
    const Result<SchemaIndex> target = documents_.resolve(at_, keyword_, value.get_string());
    if (!target) return std::unexpected(target.error());
    any().reference = *target;
    return {};
  }

  /// JSON Schema Core section 8.2.3.2: the reference is dynamic only if the schema that it
  /// initially resolves to has a $dynamicAnchor of that name.
  Result<void> compile_dynamic_reference(const json::value& value) {
    if (!value.is_string()) return invalid("expected a string");
    const std::string_view text = value.get_string();
    const Result<SchemaIndex> target = documents_.resolve(at_, keyword_, text);
    if (!target) return std::unexpected(target.error());
    const std::size_t hash = text.find('#');
    const std::string_view name = hash == std::string_view::npos ? "" : text.substr(hash + 1);
    if (!documents_.has_dynamic_anchor(*target, name)) {
      any().all_of.push_back(*target);
      return {};
    }
    any().dynamic_reference = static_cast<SchemaIndex>(program_.dynamic_references.size());
    program_.dynamic_references.push_back(
        {.anchor = std::string(name), .initial = *target, .candidates = {}});
    return {};
  }

  /// If the schema that it refers to has no $recursiveAnchor, it is the same as $ref.
  Result<void> compile_recursive_reference(const json::value& value) {
    if (!value.is_string() || value.get_string() != "#") return invalid("expected \"#\"");
    const Result<SchemaIndex> target = documents_.resolve(at_, keyword_, "#");
    if (!target) return std::unexpected(target.error());
    const json::value& schema = *documents_.place(*target).schema;
    if (schema.is_object() && schema.get_object().contains("$recursiveAnchor")) {
      return unsupported("$recursiveAnchor is not supported; $dynamicRef of 2020-12 replaced it");
    }
    any().all_of.push_back(*target);
    return {};
  }

  Result<void> compile_number(const json::value& value, json::value& rule) const {
    if (!value.is_number()) return invalid("expected a number");
    rule = value;
    return {};
  }

  Result<void> compile_count(const json::value& value, std::uint64_t& rule) const {
    const std::optional<std::uint64_t> count = read_count(value);
    if (!count) return invalid("expected an integer, 0 or more");
    rule = *count;
    return {};
  }

  Result<void> compile_pattern(std::string_view source, SchemaIndex& rule) {
    if (const auto known = patterns_.find(source); known != patterns_.end()) {
      rule = known->second;
      return {};
    }
    const JsonSchemaLimits& limits = options_.limits;
    if (source.size() > limits.max_pattern_bytes) {
      return unsupported("the regular expression has more than " +
                         std::to_string(limits.max_pattern_bytes) + " bytes");
    }
    if (program_.patterns.size() >= limits.max_patterns) {
      return unsupported("the schema has more than " + std::to_string(limits.max_patterns) +
                         " regular expressions");
    }
    std::expected<JsonPattern, RegexError> pattern =
        JsonPattern::compile(source, limits.max_pattern_memory, pattern_work_);
    if (!pattern) {
      const std::string why = "the regular expression is refused: " + pattern.error().message;
      return pattern.error().may_be_valid ? unsupported(why) : invalid(why);
    }
    rule = static_cast<SchemaIndex>(program_.patterns.size());
    program_.patterns.push_back(*std::move(pattern));
    patterns_.emplace(source, rule);
    return {};
  }

  Result<void> compile_format(const json::value& value) {
    if (!value.is_string()) return invalid("expected a string");
    const std::uint8_t vocabularies = documents_.resource_of(at_).vocabularies;
    if (options_.assert_formats || (vocabularies & kVocabularyFormatAssertion) != 0) {
      const JsonFormat format = json_format(value.get_string());
      if (format != JsonFormat::none) strings().format = format;
    }
    return {};
  }

  Result<void> compile_child(const json::value& value, SchemaIndex& rule) const {
    const SchemaIndex child = documents_.find(value);
    if (child == kNoSchema) return invalid("expected a schema: an object or a boolean");
    rule = child;
    return {};
  }

  Result<void> compile_list(const json::value& value, std::vector<SchemaIndex>& rule) const {
    if (!value.is_array()) return invalid("expected an array of schemas");
    for (const json::value& schema : value.get_array()) {
      const SchemaIndex child = documents_.find(schema);
      if (child == kNoSchema) return invalid("expected an array of schemas");
      rule.push_back(child);
    }
    return {};
  }

  template <class Visit>
  Result<void> for_each_child(const json::value& value, const Visit& visit) {
    if (!value.is_object()) return invalid("expected an object of schemas");
    for (const auto& [name, schema] : value.get_object()) {
      const SchemaIndex child = documents_.find(schema);
      if (child == kNoSchema) return invalid("expected an object of schemas");
      if (auto done = visit(name, child); !done) return done;
    }
    return {};
  }

  template <class Visit>
  Result<void> for_each_name(const json::value& value, const Visit& visit) const {
    const auto* const names = value.if_array();
    if (names == nullptr) return invalid("expected an array of names");
    for (const json::value& name : *names) {
      if (!name.is_string()) return invalid("expected an array of names");
      visit(std::string_view(name.get_string()));
    }
    return {};
  }

  Result<void> compile_dependencies(const json::value& value, Keyword keyword) {
    if (!value.is_object()) return invalid("expected an object");
    for (const auto& [name, needs] : value.get_object()) {
      DependencyRule rule;
      rule.name = name;
      const bool schema = keyword == Keyword::dependent_schemas ||
                          (keyword == Keyword::dependencies && !needs.is_array());
      const Result<void> done = schema ? compile_child(needs, rule.node)
                                       : for_each_name(needs, [&rule](std::string_view required) {
                                           rule.required.emplace_back(required);
                                         });
      if (!done) return done;
      objects().dependencies.push_back(std::move(rule));
    }
    return {};
  }

  void finish_members() {
    if (members_.empty()) return;
    ObjectRules& rules = objects();
    for (auto& [name, rule] : members_) {
      rules.required += rule.required ? 1 : 0;
      rules.properties.push_back(rule);
      rules.properties.back().name = name;
    }
    std::ranges::sort(rules.properties, precedes_in_rules, &PropertyRule::name);
  }

  NumberRules& numbers() { return rules_in(program_.numbers, node_.number); }
  StringRules& strings() { return rules_in(program_.strings, node_.string); }
  ArrayRules& arrays() { return rules_in(program_.arrays, node_.array); }
  ObjectRules& objects() { return rules_in(program_.objects, node_.object); }
  AnyRules& any() { return rules_in(program_.any, node_.any); }

  std::unexpected<Error> invalid(const std::string& message) const {
    return documents_.error(at_, keyword_, message);
  }
  std::unexpected<Error> unsupported(const std::string& message) const {
    return documents_.unsupported(at_, keyword_, message);
  }

  JsonSchemaOptions options_;
  SchemaDocuments documents_;
  JsonSchemaProgram program_;
  std::map<std::string, SchemaIndex, std::less<>> patterns_;
  std::uint64_t pattern_work_ = 0;  // what is left
  // Of the schema that is being compiled:
  SchemaIndex at_ = 0;
  std::string_view keyword_;
  SchemaNode node_;
  std::map<std::string, PropertyRule, std::less<>> members_;
};

}  // namespace

Result<JsonSchemaProgram> compile_json_schema(const json::value& schema,
                                              const JsonSchemaOptions& options) {
  return Compiler(options).compile(schema);
}

}  // namespace sluice
