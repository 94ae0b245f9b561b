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

ServerDefinition ServerState::definition() const {
  const std::lock_guard lock(mutex_);
  return definition_;
}

bool ServerState::change(std::optional<Change::Kind> kind,
                         const std::function<bool(ServerDefinition& definition)>& change) {
  // What is replaced is destroyed after the lock: a destructor of user code may use the Server.
  std::optional<ServerDefinition> replaced_definition;
  const std::lock_guard lock(mutex_);
  if (hosts_.empty()) return change(definition_);
  ServerDefinition next = definition_;
  if (!change(next)) return false;
  for (DefinitionHost* const host : hosts_) {
    if (Result<void> replaced = host->replace(next, kind); !replaced) {
      throw std::invalid_argument(replaced.error().message);
    }
  }
  replaced_definition = std::exchange(definition_, std::move(next));
  return true;
}

void ServerState::publish(const Change& change) {
  const std::lock_guard lock(mutex_);
  for (DefinitionHost* const host : hosts_) host->publish(change);
}

}  // namespace sluice::detail
