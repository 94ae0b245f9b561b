#pragma once

#include <vector>

#include "core/error.hpp"
#include "server/catalog/definition.hpp"
#include "server/notifications/change_notifier.hpp"

namespace sluice {

/// Serves a definition that may change meanwhile. Thread-safe.
class DefinitionHost {
 public:
  virtual ~DefinitionHost() = default;
  /// Offers the tools, resources, prompts, skills and middleware of `definition` from now on.
  /// Announces `told` when all loops do so. Requests under way keep the old definition. Nothing
  /// else of the definition may differ. Calls on several threads take effect in any order. Error:
  /// the definition cannot be served; then nothing changes.
  virtual Result<void> replace(ServerDefinition definition, std::vector<Change::Kind> told) = 0;
  /// Announces a change to the clients that subscribed to it.
  virtual void publish(const Change& change) = 0;
};

}  // namespace sluice
