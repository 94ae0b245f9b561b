#include "server/api/server_state.hpp"

#include <algorithm>
#include <optional>
#include <set>
#include <stdexcept>
#include <utility>

namespace sluice::detail {

void ServerState::forget(DefinitionHost& host) {
  const std::lock_guard lock(mutex_);
  const std::lock_guard hosts_lock(hosts_mutex_);
  std::erase(hosts_, &host);
}

bool ServerState::is_served() const {
  const std::lock_guard lock(hosts_mutex_);
  return !hosts_.empty();
}

ServerDefinition ServerState::definition() const {
  const std::lock_guard lock(mutex_);
  return definition_;
}

bool ServerState::change(const std::vector<Change::Kind>& kinds,
                         const std::function<bool(ServerDefinition& definition)>& change) {
  // The definition that is not kept is destroyed after the lock is released, because a destructor
  // of user code may use the Server.
  std::optional<ServerDefinition> other;
  const std::lock_guard lock(mutex_);
  // start() and forget() change hosts_ only under this lock.
  if (hosts_.empty()) return change(definition_);
  other = definition_;
  if (!change(*other)) return false;
  for (DefinitionHost* const host : hosts_) {
    if (Result<void> replaced = host->replace(*other, kinds); !replaced) {
      throw std::invalid_argument(replaced.error().message);
    }
  }
  std::swap(definition_, *other);
  return true;
}

void ServerState::publish(const Change& change) {
  std::set<const ServerState*> told;
  publish(change, told);
}

void ServerState::publish(const Change& change, std::set<const ServerState*>& told) {
  // Servers may have mounted each other.
  if (!told.insert(this).second) return;
  std::vector<std::weak_ptr<ServerState>> mounting;
  {
    const std::lock_guard lock(hosts_mutex_);
    for (DefinitionHost* const host : hosts_) host->publish(change);
    mounting = mounting_;
  }
  // Lists of a server that has mounted this one do not change with the lists here.
  if (change.kind != Change::Kind::resource && change.kind != Change::Kind::elicitation) return;
  for (const auto& weak : mounting) {
    if (const auto state = weak.lock()) state->publish(change, told);
  }
}

void ServerState::announce_to(std::weak_ptr<ServerState> mounting) {
  const std::lock_guard lock(hosts_mutex_);
  std::erase_if(mounting_, [](const auto& each) { return each.expired(); });
  mounting_.push_back(std::move(mounting));
}

}  // namespace sluice::detail
