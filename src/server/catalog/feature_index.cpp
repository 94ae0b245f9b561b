#include "server/catalog/feature_index.hpp"

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace sluice {
namespace {

/// Of several entries with the same key, the first one counts.
template <class Entry>
auto indexed(const std::vector<Entry>& entries, std::string Entry::* key) {
  std::unordered_map<std::string_view, const Entry*> index;
  index.reserve(entries.size());
  for (const Entry& entry : entries) index.try_emplace(entry.*key, &entry);
  return index;
}

template <class Entries>
auto find(const Entries& entries, std::string_view key) {
  const auto found = entries.find(key);
  return found == entries.end() ? nullptr : found->second;
}

}  // namespace

FeatureIndex::FeatureIndex(const ServerDefinition& definition)
    : definition_(&definition),
      tools_(indexed(definition.tools, &Tool::name)),
      prompts_(indexed(definition.prompts, &Prompt::name)),
      resources_(indexed(definition.resources, &Resource::uri)),
      templates_(indexed(definition.resource_templates, &ResourceTemplate::uri_template)) {}

const Tool* FeatureIndex::find_tool(std::string_view name) const {
  return find(tools_, name);
}

const Prompt* FeatureIndex::find_prompt(std::string_view name) const {
  return find(prompts_, name);
}

const Resource* FeatureIndex::find_resource(std::string_view uri) const {
  return find(resources_, uri);
}

const ResourceTemplate* FeatureIndex::find_template(std::string_view text) const {
  return find(templates_, text);
}

FeatureIndex::Match FeatureIndex::match(std::string_view uri, TurnWork& work) const {
  std::size_t steps = 0;
  Match found;
  for (const ResourceTemplate& resource : definition_->resource_templates) {
    std::optional<UriTemplate::Variables> variables = resource.uri.match(uri, steps);
    if (!variables) continue;
    found = {&resource, std::move(*variables)};
    break;
  }
  work.worked(steps);
  return found;
}

}  // namespace sluice
