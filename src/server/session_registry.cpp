#include "server/session_registry.hpp"

#include <utility>

#include "core/random.hpp"
#include "stream/stream_error.hpp"

namespace sluice {

SessionRegistry::Shard& SessionRegistry::shard_of(const std::string& id) {
  return shards_[std::hash<std::string>{}(id) % kShards];
}

Result<void> SessionRegistry::reserve(const std::string& principal) {
  const std::lock_guard lock(clients_mutex_);
  if (size() >= limits_.max_sessions) {
    return over_limit("The server has " + std::to_string(limits_.max_sessions) +
                      " sessions, the most it may (max-sessions); try again later");
  }
  std::size_t& own = clients_[principal];
  if (own >= limits_.per_client) {
    return over_limit("You have " + std::to_string(limits_.per_client) +
                      " sessions, the most a client may (sessions-per-client); end some with "
                      "DELETE");
  }
  ++own;
  size_.fetch_add(1, std::memory_order_relaxed);
  return {};
}

Result<std::unique_ptr<SessionRegistry::Place>> SessionRegistry::take_place(
    const std::string& principal) {
  if (Result<void> reserved = reserve(principal); !reserved) {
    return std::unexpected(std::move(reserved.error()));
  }
  return std::make_unique<Place>(*this, principal);
}

Result<std::shared_ptr<Session>> SessionRegistry::create(const std::string& principal,
                                                         const Revision& revision,
                                                         const ClientCapabilities& capabilities) {
  if (Result<void> reserved = reserve(principal); !reserved) {
    return std::unexpected(std::move(reserved.error()));
  }
  auto session = std::make_shared<Session>(random_id(kIdLength), principal, revision, capabilities,
                                           limits_.resume_window);
  session->touch(clock_->now());
  Shard& shard = shard_of(session->id());
  const std::lock_guard lock(shard.mutex);
  shard.sessions.emplace(session->id(), session);
  return session;
}

std::shared_ptr<Session> SessionRegistry::find(std::string_view id, std::string_view principal) {
  const std::string key(id);
  Shard& shard = shard_of(key);
  std::shared_ptr<Session> session;
  {
    const std::lock_guard lock(shard.mutex);
    const auto found = shard.sessions.find(key);
    if (found == shard.sessions.end()) return nullptr;
    session = found->second;
  }
  if (!constant_time_equal(session->principal(), principal)) return nullptr;
  session->touch(clock_->now());
  return session;
}

void SessionRegistry::remove(const Session& session) {
  std::shared_ptr<Session> removed;
  {
    Shard& shard = shard_of(session.id());
    const std::lock_guard lock(shard.mutex);
    const auto found = shard.sessions.find(session.id());
    if (found == shard.sessions.end()) return;
    removed = std::move(found->second);
    shard.sessions.erase(found);
  }
  release(removed->principal());
  removed->end();
}

void SessionRegistry::release(const std::string& principal) {
  size_.fetch_sub(1, std::memory_order_relaxed);
  const std::lock_guard lock(clients_mutex_);
  const auto own = clients_.find(principal);
  if (--own->second == 0) clients_.erase(own);
}

void SessionRegistry::sweep() {
  const TimePoint now = clock_->now();
  for (const std::shared_ptr<Session>& session : sessions()) {
    if (session->expired(now, limits_.expiry)) remove(*session);
  }
}

std::vector<std::shared_ptr<Session>> SessionRegistry::sessions() const {
  std::vector<std::shared_ptr<Session>> all;
  all.reserve(size());
  for (const Shard& shard : shards_) {
    const std::lock_guard lock(shard.mutex);
    for (const auto& [id, session] : shard.sessions) all.push_back(session);
  }
  return all;
}

}  // namespace sluice
