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

/// The lists of a server, in pages, in the form of every revision. Their entries are written once,
/// because a definition that is being served does not change. A cursor says which entry was the
/// last of the page before. So it is good for every server that has the same entries, and after
/// changes. Immutable, shared by all loops.
class FeatureLists {
 public:
  /// `definition` outlives this.
  explicit FeatureLists(const ServerDefinition& definition);

  /// Whether some tools are not for all callers.
  [[nodiscard]] bool hides_tools() const { return hides_tools_; }
  /// The members of the result (`"tools":[...]`, `nextCursor` and cache hints) for the page at
  /// `cursor`, or for the first page if it is null. `caller` is null unless the list is that of
  /// tools and hides_tools(): then only tools that exist for the caller are listed. Error: -32602
  /// for a cursor that does not say an entry which is listed for the caller.
  [[nodiscard]] Result<std::string> page(FeatureList list, const Principal* caller,
                                         const Revision& revision, const std::string* cursor) const;

  /// The server's capabilities, as a JSON object without its braces. `lists_tasks`: the caller may
  /// list its tasks.
  [[nodiscard]] const std::string& capabilities(const Revision& revision, bool lists_tasks) const;

 private:
  static constexpr std::size_t kLists = 5;

  const ServerDefinition* definition_;
  bool hides_tools_;
  std::array<std::vector<std::string_view>, kLists> names_;  // of the entries
  // These are indexed by revision_index().
  std::vector<std::array<std::vector<std::string>, kLists>> entries_;  // JSON text
  std::vector<std::array<std::string, 2>> capabilities_;               // then by `lists_tasks`
};

}  // namespace sluice
