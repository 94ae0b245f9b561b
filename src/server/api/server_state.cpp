#include "server/api/server_state.hpp"

#include <algorithm>
#include <optional>
#include <stdexcept>
#include <utility>

namespace sluice::detail {

void ServerState::forget(DefinitionHost& host) {
  const std::lock_guard lock(mutex_);
  std::erase(hosts_, &host);
}

bool ServerState::is_served() const {
  const std::lock_guard lock(mutex_);
  return !hosts_.empty();
}

ServerDefinition ServerState::definition() const {
  const std::lock_guard lock(mutex_);
  return definition_;
}

bool ServerState::change(std::optional<Change::Kind> kind,
                         const std::function<bool(ServerDefinition& definition)>& change) {
  // The definition that is not kept is destroyed after the lock is released, because a destructor
  // of user code may use the Server.
  std::optional<ServerDefinition> other;
  const std::lock_guard lock(mutex_);
  if (hosts_.empty()) return change(definition_);
  other = definition_;
  if (!change(*other)) return false;
  for (DefinitionHost* const host : hosts_) {
    if (Result<void> replaced = host->replace(*other, kind); !replaced) {
      throw std::invalid_argument(replaced.error().message);
    }
  }
  std::swap(definition_, *other);
  return true;
}

void ServerState::publish(const Change& change) {
  const std::lock_guard lock(mutex_);
  for (DefinitionHost* const host : hosts_) host->publish(change);
}

}  // namespace sluice::detail
