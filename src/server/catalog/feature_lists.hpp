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

/// The pages of a server's lists, in the form of every revision. They are written once, because a
/// definition that is being served does not change. Only if some tools are not for all callers, the
/// list of tools is put together for each. Immutable, shared by all loops.
class FeatureLists {
 public:
  /// `definition` outlives this.
  explicit FeatureLists(const ServerDefinition& definition);

  /// The members of the result (`"tools":[...]` and `nextCursor`) for the page at `cursor`, or for
  /// the first page if it is null. Error: -32602 for a cursor that this server did not give for
  /// this list and revision. A cursor is the MAC of the page that it stands for.
  [[nodiscard]] Result<std::string_view> page(FeatureList list, const Revision& revision,
                                              const std::string* cursor) const;

  /// Whether some tools are not for all callers.
  [[nodiscard]] bool hides_tools() const { return !own_tools_.empty(); }
  /// As page(), for the tools that exist for `caller`. Call it only if hides_tools().
  [[nodiscard]] Result<std::string> tools_of(const Principal& caller, const Revision& revision,
                                             const std::string* cursor) const;

  /// The server's capabilities, as a JSON object without its braces. `lists_tasks`: the caller may
  /// list its tasks.
  [[nodiscard]] const std::string& capabilities(const Revision& revision, bool lists_tasks) const;

 private:
  static constexpr std::size_t kLists = 5;
  struct Page {
    std::string cursor;  // identifies the page; empty for the first
    std::string members;
  };
  using Pages = std::vector<Page>;
  /// A tool, and the cursor of the page that begins with it.
  struct ListedTool {
    std::string entry;
    std::string cursor;
  };

  const ServerDefinition* definition_;
  // These are indexed by revision_index().
  std::vector<std::vector<ListedTool>> own_tools_;  // empty unless some tools are not for all
  std::vector<std::array<Pages, kLists>> pages_;
  std::vector<std::array<std::string, 2>> capabilities_;  // then by `lists_tasks`
};

}  // namespace sluice
