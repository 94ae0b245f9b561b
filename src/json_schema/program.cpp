#include "json_schema/program.hpp"

namespace sluice {
namespace {

/// Whether `node` lists its values, and says nothing else.
bool has_list(const JsonSchemaProgram& program, const SchemaNode& node) {
  if (node.any == kNoSchema) return false;
  const AnyRules& any = program.any[node.any];
  return (any.has_constant || any.has_enumeration) && any.reference == kNoSchema &&
         any.dynamic_reference == kNoSchema && any.all_of.empty() && any.any_of.empty() &&
         any.one_of.empty() && any.negated == kNoSchema && any.condition == kNoSchema;
}

/// Whether nothing can be nested in the values that `node` describes.
bool is_leaf(const SchemaNode& node) {
  return (node.types & (kTypeArray | kTypeObject)) == 0 && node.any == kNoSchema;
}

}  // namespace

void JsonSchemaProgram::find_distinguishing() {
  for (ObjectRules& rules : objects) {
    bool descends = false;
    for (std::size_t i = 0; i < rules.properties.size(); ++i) {
      if (rules.properties[i].node == kNoSchema) continue;
      const SchemaNode& node = nodes[rules.properties[i].node];
      if (has_list(*this, node)) {
        rules.distinguishing.push_back(i);
      } else {
        descends = descends || !is_leaf(node);
      }
    }
    if (!descends) rules.distinguishing.clear();
  }
}

void JsonSchemaProgram::measure(std::size_t of_schema) {
  const auto table = [](const auto& rules) { return rules.capacity() * sizeof(rules[0]); };
  // Names, lists and values in the tables take about what they take as JSON.
  memory = of_schema + table(nodes) + table(numbers) + table(strings) + table(arrays) +
           table(objects) + table(any) + table(dynamic_references) +
           patterns.size() * limits.max_pattern_memory;
}

}  // namespace sluice
