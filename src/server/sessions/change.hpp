#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <utility>

namespace sluice {

/// Something that clients may want to be told of: a list or a resource has changed, or the user is
/// done with what an elicitation in URL mode asked for.
struct Change {
  enum class Kind : std::uint8_t { tools, prompts, resources, resource, elicitation };
  Kind kind = Kind::tools;
  std::string subject = {};  // the resource's URI, or the elicitation's id
};

/// Changes that could not be sent when they happened, each of them once.
class MissedChanges {
 public:
  void add(const Change& change) { changes_.emplace(change.kind, change.subject); }
  void remove(const Change& change) { changes_.erase({change.kind, change.subject}); }
  [[nodiscard]] bool empty() const { return changes_.empty(); }
  [[nodiscard]] std::size_t size() const { return changes_.size(); }
  /// Removes one of them and returns it; there must be one. They take turns, so none is held up by
  /// others that are added again and again.
  Change take();

 private:
  using Key = std::pair<Change::Kind, std::string>;
  std::set<Key> changes_;
  Key last_{Change::Kind::elicitation, {}};  // taken last; at first, lists come before resources
};

}  // namespace sluice
