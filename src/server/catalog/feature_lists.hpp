#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.hpp"
#include "protocol/revision.hpp"
#include "server/catalog/definition.hpp"

namespace sluice {

/// The lists a client may ask for.
enum class FeatureList : std::uint8_t { tools, resources, resource_templates, prompts, skills };

/// What a server offers, as the pages of its lists in the form of every revision: written once, for
/// a definition that is served does not change. Immutable, shared by all loops.
class FeatureLists {
 public:
  explicit FeatureLists(const ServerDefinition& definition);

  /// The members of the result (`"tools":[...]` and `nextCursor`) of the page at `cursor`, or of
  /// the first one. -32602 for a cursor that this server has not given for this list and revision:
  /// cursors are MACs of what they stand for.
  [[nodiscard]] Result<std::string_view> page(FeatureList list, const Revision& revision,
                                              const std::string* cursor) const;

  /// The server's capabilities as a JSON object without its braces; empty if it has none.
  /// `lists_tasks`: the caller may list its tasks.
  [[nodiscard]] const std::string& capabilities(const Revision& revision, bool lists_tasks) const;

 private:
  static constexpr std::size_t kLists = 5;
  struct Page {
    std::string cursor;  // what asks for it; empty for the first
    std::string members;
  };
  using Pages = std::vector<Page>;

  /// By revision_index().
  std::vector<std::array<Pages, kLists>> pages_;
  std::vector<std::array<std::string, 2>> capabilities_;  // then by `lists_tasks`
};

}  // namespace sluice
