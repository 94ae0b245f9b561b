#include "engine/llama/grammar/schema_bounds.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <unordered_set>

#include "engine/llama/grammar/schema_reference.hpp"
#include "rpc/error_codes.hpp"

namespace sluice {
namespace {

constexpr std::size_t kMaxName = 256;           // bytes in a property's name or a reference
constexpr std::size_t kMaxHops = 32;            // references in a chain
constexpr std::size_t kMaxRecursion = 4096;     // number of references times depth of nesting
constexpr std::size_t kMaxUnionSteps = 50'000;  // steps through unions and the references in them
constexpr double kNodeCost = 16;
constexpr double kOptionalCost =
    0.04;  // multiplied by the third power of the number of optional properties

class SchemaBounds {
 public:
  SchemaBounds(const json::value& root, std::string_view what) : root_(root), what_(what) {}

  Result<void> check(double& budget) {
    budget_ = budget;
    count(root_);
    const double cost = cost_of(root_, 0, 0);
    if (error_.empty() && deepest_ * references_.size() > kMaxRecursion) {
      error_ =
          "it has too many references for its depth of nesting; replace references that are used "
          "once by their schema";
    }
    if (error_.empty() && cost > budget) {
      error_ = "it is too large; use fewer optional properties, lists of types and references";
    }
    for (const json::value* const start : unions_) {
      std::unordered_set<const json::value*> open;
      std::size_t steps = 0;
      walk_unions(*start, open, steps);
      if (!error_.empty()) break;
    }
    budget -= cost;
    if (error_.empty()) return {};
    return fail(kInvalidParams, std::string(what_) + " cannot be followed: " + error_);
  }

 private:
  void count(const json::value& value) {
    ++nodes_;
    if (const json::object* const object = value.if_object()) {
      for (const auto& [name, member] : *object) count(member);
    } else if (const json::array* const array = value.if_array()) {
      for (const json::value& element : *array) count(element);
    }
  }

  /// The cost of converting `value`. `path` is the length of the name of its rule.
  double cost_of(const json::value& value, std::size_t path, std::size_t depth) {
    deepest_ = std::max(deepest_, depth);
    double cost = kNodeCost + static_cast<double>(path);
    if (const json::array* const array = value.if_array()) {
      for (const json::value& element : *array) cost += cost_of(element, path + 4, depth + 1);
      return cost;
    }
    const json::object* const object = value.if_object();
    if (object == nullptr) return cost;
    for (const auto& [name, member] : *object) {
      cost += look_at(*object, name, member);
      cost += cost_of(member, path + name.size() + 1, depth + 1);
      if (!error_.empty() || cost > budget_) return cost;
    }
    const json::value* const type = object->if_contains("type");
    const bool several = type != nullptr && type->is_array();
    return several ? cost * static_cast<double>(std::max<std::size_t>(1, type->get_array().size()))
                   : cost;
  }

  /// The cost of `member` of `object`, without that of its parts.
  double look_at(const json::object& object, std::string_view name, const json::value& member) {
    if (name.size() > kMaxName) {
      refuse("the name of a property is longer than 256 bytes");
    }
    // llama.cpp gives rules with equal names different numbers, which it finds by trying one after
    // the other.
    const bool odd = std::ranges::any_of(name, [](char c) {
      return !((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
               c == '-');
    });
    double cost = odd ? static_cast<double>(++odd_names_) : 0;
    if (name == "$ref" && member.is_string()) {
      look_at_reference(member.get_string());
    } else if (name == "pattern" && member.is_string()) {
      cost += static_cast<double>(nodes_);  // the whole schema is copied
    } else if (name == "properties" && member.is_object()) {
      const json::value* const required = object.if_contains("required");
      const std::size_t all = member.get_object().size() + 1;
      const std::size_t fixed =
          required == nullptr || !required->is_array() ? 0 : required->get_array().size();
      const auto optional = static_cast<double>(all - std::min(all - 1, fixed));
      cost += kOptionalCost * optional * optional * optional;
    } else if (name == "allOf" && member.is_array()) {
      cost += static_cast<double>(member.get_array().size()) * static_cast<double>(nodes_);
    }
    if ((name == "allOf" || name == "anyOf" || name == "oneOf") && member.is_array()) {
      unions_.insert(&member);
    }
    return cost;
  }

  void look_at_reference(std::string_view reference) {
    if (reference.size() > kMaxName) {
      refuse("a $ref is longer than 256 bytes");
      return;
    }
    references_.insert(std::string(reference));
    const json::value* target = resolve_reference(root_, reference);
    for (std::size_t hops = 0; target != nullptr; ++hops) {
      if (hops == kMaxHops) {
        refuse("the $ref \"" + std::string(reference) +
               "\" leads to more than 32 other references; let it lead to a schema");
        return;
      }
      target = next_of(*target);
    }
  }

  /// The target of `value` if it is a reference, otherwise null.
  [[nodiscard]] const json::value* next_of(const json::value& value) const {
    const json::object* const object = value.if_object();
    const json::value* const reference = object == nullptr ? nullptr : object->if_contains("$ref");
    return reference == nullptr || !reference->is_string()
               ? nullptr
               : resolve_reference(root_, reference->get_string());
  }

  /// Follows every path through a union and the references in it, as llama.cpp does to find the
  /// types.
  void walk_unions(const json::value& value, std::unordered_set<const json::value*>& open,
                   std::size_t& steps) {
    if (++steps > kMaxUnionSteps || open.size() > kMaxRecursion / 16) {
      refuse("its unions refer to each other in too many ways; list each alternative once");
    }
    if (!error_.empty()) return;
    if (const json::array* const array = value.if_array()) {
      for (const json::value& element : *array) walk_unions(element, open, steps);
      return;
    }
    const json::object* const object = value.if_object();
    if (object == nullptr) return;
    if (const json::value* const target = next_of(value)) {
      if (!open.insert(target).second) return;
      walk_unions(*target, open, steps);
      open.erase(target);
      return;
    }
    for (const std::string_view key : {"allOf", "anyOf", "oneOf"}) {
      if (const json::value* const member = object->if_contains(key)) {
        walk_unions(*member, open, steps);
      }
    }
  }

  void refuse(std::string why) {
    if (error_.empty()) error_ = std::move(why);
  }

  const json::value& root_;
  const std::string_view what_;
  double budget_ = 0;
  std::size_t nodes_ = 0;
  std::size_t deepest_ = 0;
  std::size_t odd_names_ = 0;
  std::set<std::string> references_;
  std::unordered_set<const json::value*> unions_;
  std::string error_;
};

}  // namespace

Result<void> check_schema_bounds(const json::value& schema, std::string_view what, double& budget) {
  return SchemaBounds(schema, what).check(budget);
}

}  // namespace sluice
