#include "json_schema/validator.hpp"

#include <algorithm>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/string.hpp>

#include "core/text/utf8.hpp"
#include "json/path.hpp"
#include "json_schema/evaluated.hpp"
#include "json_schema/explanation.hpp"
#include "json_schema/value.hpp"

namespace sluice {
namespace {

constexpr std::uint64_t kStepsPerMessage = 8;
/// How many members one step pays for, when a set of evaluated members is created and merged.
constexpr std::size_t kMembersPerStep = 2048;

std::uint8_t type_of(const json::value& value) {
  switch (value.kind()) {
    case json::kind::null:
      return kTypeNull;
    case json::kind::bool_:
      return kTypeBoolean;
    case json::kind::int64:
    case json::kind::uint64:
      return kTypeInteger;
    case json::kind::double_:
      return is_integer(value) ? kTypeInteger : kTypeFraction;
    case json::kind::string:
      return kTypeString;
    case json::kind::array:
      return kTypeArray;
    case json::kind::object:
      return kTypeObject;
  }
  return 0;
}

std::size_t member_count(const json::value& value) {
  if (value.is_array()) return value.get_array().size();
  return value.is_object() ? value.get_object().size() : 0;
}

const PropertyRule* find_property(const ObjectRules& rules, std::string_view name) {
  const auto found =
      std::ranges::lower_bound(rules.properties, name, precedes_in_rules, &PropertyRule::name);
  return found != rules.properties.end() && found->name == name ? &*found : nullptr;
}

/// One validation. Functions return whether the value follows the schema, and describe the
/// violation if `violation_` is set. Once the budget is exhausted everything fails, including
/// `not`.
///
/// If `seen` is not null, the members that the schema evaluates are added to it, even if the schema
/// fails in the end.
class Validator {
 public:
  Validator(const JsonSchemaProgram& program, std::uint64_t max_steps, ViolationDraft* violation)
      : program_(program),
        max_steps_(std::min(program.limits.max_steps, max_steps)),
        work_{.steps = max_steps_, .depth = program.limits.max_depth},
        violation_(violation) {}

  bool run(const json::value& instance) { return check(0, instance, nullptr); }

  bool is_exhausted() const { return work_.exhausted; }

  std::string describe_exhaustion() const {
    return work_.too_deep ? "more than " + counted(program_.limits.max_depth, "level", "levels") +
                                " of schemas"
                          : "more than " + counted(max_steps_, "step", "steps");
  }

 private:
  /// The resources on the path to the current schema, for $dynamicRef.
  struct Scope {
    const Scope* outer = nullptr;
    std::uint32_t resource = 0;
  };

  bool check(SchemaIndex at, const json::value& value, EvaluatedMembers* seen) {
    const SchemaNode& node = program_.nodes[at];
    if (!work_.spend()) return false;
    if ((node.types & type_of(value)) == 0) return fail_type(node, value);
    if (!work_.enter()) return false;
    const bool good = enter_resource(node, value, seen);
    work_.leave();
    return good;
  }

  bool enter_resource(const SchemaNode& node, const json::value& value, EvaluatedMembers* seen) {
    if (scope_ != nullptr && scope_->resource == node.resource) {
      return check_unevaluated(node, value, seen);
    }
    const Scope scope{scope_, node.resource};
    scope_ = &scope;
    const bool good = check_unevaluated(node, value, seen);
    scope_ = scope.outer;
    return good;
  }

  /// Pays for a new EvaluatedMembers.
  bool spend_on_members(const json::value& value) {
    return work_.spend(member_count(value) / kMembersPerStep);
  }

  bool check_unevaluated(const SchemaNode& node, const json::value& value, EvaluatedMembers* seen) {
    if (!node.unevaluated || !value.is_structured()) return check_rules(node, value, seen);
    if (!spend_on_members(value)) return false;
    EvaluatedMembers own(member_count(value));
    if (!check_rules(node, value, &own)) return false;
    if (value.is_array()) {
      if (!check_unevaluated_items(node, value.get_array(), own)) return false;
    } else if (!check_unevaluated_properties(node, value.get_object(), own)) {
      return false;
    }
    if (seen != nullptr) seen->merge(own);
    return true;
  }

  bool check_unevaluated_items(const SchemaNode& node, const json::array& array,
                               EvaluatedMembers& seen) {
    const SchemaIndex rule =
        node.array == kNoSchema ? kNoSchema : program_.arrays[node.array].unevaluated;
    if (rule == kNoSchema) return true;
    for (std::size_t i = 0; i < array.size(); ++i) {
      if (!seen.contains(i) && !check_item(rule, array, i)) return false;
    }
    seen.mark_all();
    return true;
  }

  bool check_unevaluated_properties(const SchemaNode& node, const json::object& object,
                                    EvaluatedMembers& seen) {
    const SchemaIndex rule =
        node.object == kNoSchema ? kNoSchema : program_.objects[node.object].unevaluated;
    if (rule == kNoSchema) return true;
    std::size_t index = 0;
    for (const auto& member : object) {
      if (!seen.contains(index++) && !check_member(rule, member)) return false;
    }
    seen.mark_all();
    return true;
  }

  bool check_rules(const SchemaNode& node, const json::value& value, EvaluatedMembers* seen) {
    switch (value.kind()) {
      case json::kind::int64:
      case json::kind::uint64:
      case json::kind::double_:
        if (node.number != kNoSchema && !check_number(program_.numbers[node.number], value)) {
          return false;
        }
        break;
      case json::kind::string:
        if (node.string != kNoSchema &&
            !check_string(program_.strings[node.string], value.get_string())) {
          return false;
        }
        break;
      case json::kind::array:
        if (node.array != kNoSchema &&
            !check_array(program_.arrays[node.array], value.get_array(), seen)) {
          return false;
        }
        break;
      case json::kind::object:
        if (node.object != kNoSchema && !check_object(program_.objects[node.object], value, seen)) {
          return false;
        }
        break;
      default:
        break;
    }
    return node.any == kNoSchema || check_any(program_.any[node.any], value, seen);
  }

  bool check_number(const NumberRules& rules, const json::value& value) {
    if (!rules.minimum.is_null() && !(compare_numbers(value, rules.minimum) >= 0)) {
      return fail_number("at least ", rules.minimum, value);
    }
    if (!rules.maximum.is_null() && !(compare_numbers(value, rules.maximum) <= 0)) {
      return fail_number("at most ", rules.maximum, value);
    }
    if (!rules.exclusive_minimum.is_null() &&
        !(compare_numbers(value, rules.exclusive_minimum) > 0)) {
      return fail_number("more than ", rules.exclusive_minimum, value);
    }
    if (!rules.exclusive_maximum.is_null() &&
        !(compare_numbers(value, rules.exclusive_maximum) < 0)) {
      return fail_number("less than ", rules.exclusive_maximum, value);
    }
    if (!rules.multiple_of.is_null() && !is_multiple_of(value, rules.multiple_of)) {
      return fail_number("a multiple of ", rules.multiple_of, value);
    }
    return true;
  }

  bool check_string(const StringRules& rules, std::string_view text) {
    if (rules.min_length != 0 || rules.max_length != kNoLimit) {
      if (!work_.spend(text.size() / kBytesPerStep)) return false;
      const std::uint64_t length = count_characters(text);
      if (!check_count(length, rules.min_length, rules.max_length, "character", "characters")) {
        return false;
      }
    }
    if (rules.pattern != kNoSchema) {
      const JsonPattern& pattern = program_.patterns[rules.pattern];
      if (!work_.spend(pattern.cost(text.size()))) return false;
      if (!pattern.matches(text)) {
        return fail([&] {
          return "expected a match of " + describe_text(pattern.source()) + ", got " +
                 describe_text(text);
        });
      }
    }
    if (rules.format != JsonFormat::none) {
      if (!work_.spend(text.size() / kBytesPerStep)) return false;
      if (!has_json_format(text, rules.format)) {
        return fail([&] {
          return "expected the format " + std::string(json_format_name(rules.format)) + ", got " +
                 describe_text(text);
        });
      }
    }
    return true;
  }

  bool check_array(const ArrayRules& rules, const json::array& array, EvaluatedMembers* seen) {
    if (!check_count(array.size(), rules.min_items, rules.max_items, "item", "items")) {
      return false;
    }
    const std::size_t prefix = std::min(rules.prefix.size(), array.size());
    for (std::size_t i = 0; i < prefix; ++i) {
      if (!check_item(rules.prefix[i], array, i)) return false;
      if (seen != nullptr) seen->mark(i);
    }
    if (rules.items != kNoSchema) {
      for (std::size_t i = prefix; i < array.size(); ++i) {
        if (!check_item(rules.items, array, i)) return false;
      }
      if (seen != nullptr) seen->mark_all();
    }
    if (rules.contains != kNoSchema && !check_contains(rules, array, seen)) return false;
    if (rules.unique) {
      const auto duplicate = find_duplicate(array, work_);
      if (work_.exhausted) return false;
      if (duplicate) {
        return fail([&] {
          return "items " + std::to_string(duplicate->first) + " and " +
                 std::to_string(duplicate->second) + " are equal";
        });
      }
    }
    return true;
  }

  bool check_contains(const ArrayRules& rules, const json::array& array, EvaluatedMembers* seen) {
    std::uint64_t found = 0;
    for (std::size_t i = 0; i < array.size(); ++i) {
      // Without `seen` nobody needs the remaining matches.
      if (seen == nullptr && found >= rules.min_contains && rules.max_contains == kNoLimit) break;
      if (!check_quietly(rules.contains, array[i], nullptr)) {
        if (work_.exhausted) return false;
        continue;
      }
      ++found;
      if (seen != nullptr && rules.contains_evaluates) seen->mark(i);
    }
    return check_count(found, rules.min_contains, rules.max_contains,
                       "item that `contains` describes", "items that `contains` describes");
  }

  bool check_object(const ObjectRules& rules, const json::value& value, EvaluatedMembers* seen) {
    const json::object& object = value.get_object();
    if (!check_count(object.size(), rules.min_properties, rules.max_properties, "property",
                     "properties")) {
      return false;
    }
    for (const std::size_t i : rules.distinguishing) {
      const auto* const member = object.find(rules.properties[i].name);
      if (member != object.end() && !check_named(rules.properties[i], *member)) return false;
    }
    std::size_t required = 0;
    std::size_t index = 0;
    for (const auto& member : object) {
      if (!check_property(rules, member, index++, required, seen)) return false;
    }
    if (required != rules.required) return fail_required(rules, object);
    for (const DependencyRule& rule : rules.dependencies) {
      if (!work_.spend()) return false;
      if (!object.contains(rule.name)) continue;
      if (!check_dependency(rule, object)) return false;
      if (rule.node != kNoSchema && !check(rule.node, value, seen)) return false;
    }
    return true;
  }

  bool check_named(const PropertyRule& rule, const json::key_value_pair& member) {
    const bool left_out = program_.null_for_optional && !rule.required && member.value().is_null();
    return left_out || check_member(rule.node, member);
  }

  bool check_property(const ObjectRules& rules, const json::key_value_pair& member,
                      std::size_t index, std::size_t& required, EvaluatedMembers* seen) {
    if (!work_.spend()) return false;
    const std::string_view name = member.key();
    bool known = false;
    if (const PropertyRule* const rule = find_property(rules, name)) {
      required += rule->required ? 1 : 0;
      known = rule->node != kNoSchema;
      if (known && !check_named(*rule, member)) return false;
    }
    for (const PatternRule& rule : rules.patterns) {
      const JsonPattern& pattern = program_.patterns[rule.pattern];
      if (!work_.spend(pattern.cost(name.size()))) return false;
      if (!pattern.matches(name)) continue;
      known = true;
      if (!check_member(rule.node, member)) return false;
    }
    if (!known && rules.additional != kNoSchema) {
      known = true;
      if (!check_member(rules.additional, member)) return false;
    }
    if (known && seen != nullptr) seen->mark(index);
    if (rules.names != kNoSchema && !check(rules.names, json::value(name), nullptr)) {
      if (violation_ != nullptr) {
        violation_->message.insert(0, "the name " + describe_text(name) + ": ");
      }
      return false;
    }
    return true;
  }

  bool check_dependency(const DependencyRule& rule, const json::object& object) {
    for (const std::string& name : rule.required) {
      if (!work_.spend()) return false;
      if (!object.contains(name)) {
        return fail([&] {
          return "missing required property " + describe_text(name) + ", which " +
                 describe_text(rule.name) + " needs";
        });
      }
    }
    return true;
  }

  /// Checks the rules that apply to a value of any kind.
  bool check_any(const AnyRules& rules, const json::value& value, EvaluatedMembers* seen) {
    if (rules.has_constant && !equal_values(value, rules.constant, work_)) {
      return fail_value({&rules.constant, 1}, value);
    }
    if (rules.has_enumeration &&
        std::ranges::none_of(rules.enumeration, [&](const json::value& allowed) {
          return equal_values(value, allowed, work_);
        })) {
      return fail_value(rules.enumeration, value);
    }
    if (rules.reference != kNoSchema && !check(rules.reference, value, seen)) return false;
    if (rules.dynamic_reference != kNoSchema &&
        !check(dynamic_target(rules.dynamic_reference), value, seen)) {
      return false;
    }
    for (const SchemaIndex schema : rules.all_of) {
      if (!check(schema, value, seen)) return false;
    }
    if (!rules.any_of.empty() && !check_any_of(rules.any_of, value, seen)) return false;
    if (!rules.one_of.empty() && !check_one_of(rules.one_of, value, seen)) return false;
    if (rules.negated != kNoSchema) {
      if (check_quietly(rules.negated, value, nullptr)) {
        return fail([] { return std::string("matches what `not` excludes"); });
      }
      if (work_.exhausted) return false;
    }
    return rules.condition == kNoSchema || check_condition(rules, value, seen);
  }

  bool check_condition(const AnyRules& rules, const json::value& value, EvaluatedMembers* seen) {
    const bool holds = check_branch(rules.condition, value, seen, nullptr);
    if (work_.exhausted) return false;
    const SchemaIndex next = holds ? rules.consequence : rules.alternative;
    return next == kNoSchema || check(next, value, seen);
  }

  bool check_any_of(const std::vector<SchemaIndex>& schemas, const json::value& value,
                    EvaluatedMembers* seen) {
    bool found = false;
    ClosestAlternative closest;
    for (const SchemaIndex schema : schemas) {
      found |= check_branch(schema, value, seen, &closest);
      if (work_.exhausted) return false;
      if (found && seen == nullptr) return true;
    }
    return found || fail_alternatives(closest, schemas.size(), value);
  }

  bool check_one_of(const std::vector<SchemaIndex>& schemas, const json::value& value,
                    EvaluatedMembers* seen) {
    std::size_t found = 0;
    ClosestAlternative closest;
    for (const SchemaIndex schema : schemas) {
      found += check_branch(schema, value, seen, &closest) ? 1 : 0;
      if (work_.exhausted) return false;
      if (found > 1) {
        return fail([] {
          return std::string("matches more than one alternative of `oneOf`, expected exactly one");
        });
      }
    }
    return found == 1 || fail_alternatives(closest, schemas.size(), value);
  }

  /// Checks a subschema whose failure does not fail the value. If it fails, the members it
  /// evaluated do not count.
  bool check_branch(SchemaIndex schema, const json::value& value, EvaluatedMembers* seen,
                    ClosestAlternative* closest) {
    if (seen == nullptr) return check_alternative(schema, value, nullptr, closest);
    if (!spend_on_members(value)) return false;
    EvaluatedMembers own(member_count(value));
    if (!check_alternative(schema, value, &own, closest)) return false;
    seen->merge(own);
    return true;
  }

  bool check_alternative(SchemaIndex schema, const json::value& value, EvaluatedMembers* seen,
                         ClosestAlternative* closest) {
    if (violation_ == nullptr || closest == nullptr) return check_quietly(schema, value, seen);
    ViolationDraft own;
    ViolationDraft* const outer = std::exchange(violation_, &own);
    const bool good = check(schema, value, seen);
    violation_ = outer;
    if (good) return true;
    closest->add(std::move(own));
    return false;
  }

  bool check_quietly(SchemaIndex schema, const json::value& value, EvaluatedMembers* seen) {
    ViolationDraft* const outer = std::exchange(violation_, nullptr);
    const bool good = check(schema, value, seen);
    violation_ = outer;
    return good;
  }

  bool check_item(SchemaIndex schema, const json::array& array, std::size_t index) {
    if (check(schema, array[index], nullptr)) return true;
    if (violation_ != nullptr) {
      if (program_.nodes[schema].types == 0) violation_->message = "there is no such item";
      violation_->path.emplace_back(index);
    }
    return false;
  }

  bool check_member(SchemaIndex schema, const json::key_value_pair& member) {
    if (check(schema, member.value(), nullptr)) return true;
    if (violation_ != nullptr) {
      if (program_.nodes[schema].types == 0) violation_->message = "there is no such property";
      violation_->path.emplace_back(std::string_view(member.key()));
    }
    return false;
  }

  SchemaIndex dynamic_target(SchemaIndex index) {
    const DynamicReference& reference = program_.dynamic_references[index];
    SchemaIndex target = reference.initial;
    for (const Scope* scope = scope_; scope != nullptr; scope = scope->outer) {
      if (!work_.spend()) break;
      const auto found = std::ranges::lower_bound(*reference.candidates, scope->resource, {},
                                                  &DynamicAnchor::resource);
      if (found != reference.candidates->end() && found->resource == scope->resource) {
        target = found->node;
      }
    }
    return target;
  }

  /// Always returns false. Calls `describe` only if the reason is wanted.
  template <class Describe>
  bool fail(const Describe& describe) {
    if (violation_ != nullptr && work_.spend(kStepsPerMessage)) violation_->message = describe();
    return false;
  }

  bool fail_type(const SchemaNode& node, const json::value& value) {
    if (violation_ == nullptr || !work_.spend(kStepsPerMessage)) return false;
    if (node.types == 0) {
      violation_->message = "no value is allowed here";
      return false;
    }
    violation_->expected_types = node.types;
    violation_->message = explain_types(node.types, value);
    return false;
  }

  bool fail_number(std::string_view relation, const json::value& bound, const json::value& value) {
    return fail([&] { return explain_number(relation, bound, value); });
  }

  bool check_count(std::uint64_t count, std::uint64_t low, std::uint64_t high, std::string_view one,
                   std::string_view many) {
    if (count >= low && count <= high) return true;
    return fail([&] { return explain_count(count, low, high, one, many); });
  }

  bool fail_required(const ObjectRules& rules, const json::object& object) {
    return fail([&] { return explain_missing(rules, object); });
  }

  bool fail_value(std::span<const json::value> allowed, const json::value& value) {
    if (violation_ == nullptr || work_.exhausted || !work_.spend(kStepsPerMessage)) return false;
    violation_->names_value = true;
    violation_->message = explain_allowed(allowed, value);
    return false;
  }

  bool fail_alternatives(ClosestAlternative& closest, std::size_t count, const json::value& value) {
    if (violation_ == nullptr) return false;
    closest.explain(*violation_, count, value);
    return false;
  }

  const JsonSchemaProgram& program_;
  std::uint64_t max_steps_;
  WorkBudget work_;
  ViolationDraft* violation_;
  const Scope* scope_ = nullptr;
};

}  // namespace

std::expected<void, ViolationDraft> check_json_schema(const JsonSchemaProgram& program,
                                                      const json::value& instance,
                                                      std::uint64_t max_steps) {
  Validator silent(program, max_steps, nullptr);
  if (silent.run(instance)) return {};
  ViolationDraft violation;
  if (silent.is_exhausted()) {
    violation.is_unfinished = true;
    violation.message = "cannot be checked: it takes " + silent.describe_exhaustion();
    return std::unexpected(std::move(violation));
  }
  // Validated again to find out why. A valid instance does not pay for this.
  Validator explaining(program, max_steps, &violation);
  explaining.run(instance);
  if (explaining.is_exhausted()) {
    violation = {};
    violation.is_unfinished = true;
    violation.message =
        "does not follow the schema; finding the reason takes " + explaining.describe_exhaustion();
  }
  return std::unexpected(std::move(violation));
}

}  // namespace sluice
