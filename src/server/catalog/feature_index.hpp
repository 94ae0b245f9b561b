#pragma once

#include <string_view>
#include <unordered_map>

#include "core/turns/turn_work.hpp"
#include "server/catalog/definition.hpp"

namespace sluice {

/// Finds tools, prompts and resources by their names and URIs, however many there are. Immutable.
class FeatureIndex {
 public:
  /// `definition` must outlive the index, and must not change.
  explicit FeatureIndex(const ServerDefinition& definition);

  // Null if there is none.
  [[nodiscard]] const Tool* find_tool(std::string_view name) const;
  [[nodiscard]] const Prompt* find_prompt(std::string_view name) const;
  [[nodiscard]] const Resource* find_resource(std::string_view uri) const;
  /// `text` is that of the template.
  [[nodiscard]] const ResourceTemplate* find_template(std::string_view text) const;

  /// The first template that matches a URI, and the values of its variables.
  struct Match {
    const ResourceTemplate* resource = nullptr;  // null: none matches
    UriTemplate::Variables variables = {};
  };
  /// Counts what the comparisons cost as `work`.
  [[nodiscard]] Match match(std::string_view uri, TurnWork& work) const;

 private:
  template <class Entry>
  using Entries = std::unordered_map<std::string_view, const Entry*>;

  const ServerDefinition* definition_;
  Entries<Tool> tools_;
  Entries<Prompt> prompts_;
  Entries<Resource> resources_;
  Entries<ResourceTemplate> templates_;
};

}  // namespace sluice
