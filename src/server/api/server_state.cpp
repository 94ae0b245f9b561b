#include "server/api/server_state.hpp"

#include <algorithm>
#include <optional>
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
  publish_here(change);
  // Lists of a server that has mounted this one do not change with the lists here.
  if (change.kind != Change::Kind::resource && change.kind != Change::Kind::elicitation) return;
  for (const auto& weak : copy_of(&ServerState::mounting_)) {
    if (const auto state = weak.lock()) state->publish_here(change);
  }
}

void ServerState::publish_here(const Change& change) {
  const std::lock_guard lock(hosts_mutex_);
  for (DefinitionHost* const host : hosts_) host->publish(change);
}

void ServerState::connect(const std::shared_ptr<ServerState>& mounted,
                          const std::shared_ptr<ServerState>& mounting) {
  States sources = mounted->copy_of(&ServerState::mounted_);
  sources.emplace_back(mounted);
  for (const auto& weak : sources) {
    const std::shared_ptr<ServerState> source = weak.lock();
    // Servers may have mounted each other.
    if (source == nullptr || source == mounting) continue;
    mounting->add(&ServerState::mounted_, source);
    source->add(&ServerState::mounting_, mounting);
  }
}

void ServerState::add(States ServerState::* list, const std::shared_ptr<ServerState>& state) {
  const std::lock_guard lock(hosts_mutex_);
  States& known = this->*list;
  std::erase_if(known, [](const auto& each) { return each.expired(); });
  const auto is_it = [&](const auto& each) {
    return !each.owner_before(state) && !state.owner_before(each);
  };
  if (std::ranges::none_of(known, is_it)) known.emplace_back(state);
}

ServerState::States ServerState::copy_of(States ServerState::* list) const {
  const std::lock_guard lock(hosts_mutex_);
  return this->*list;
}

}  // namespace sluice::detail
