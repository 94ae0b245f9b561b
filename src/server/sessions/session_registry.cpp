#include "server/sessions/session_registry.hpp"

#include <utility>

#include "core/crypto/random.hpp"
#include "core/log/log.hpp"
#include "core/log/log_limit.hpp"
#include "core/log/over_limit.hpp"
#include "core/sharing/client.hpp"

namespace sluice {

SessionRegistry::Shard& SessionRegistry::shard_of(std::string_view id) {
  return shards_[id.empty() ? 0 : static_cast<unsigned char>(id.back()) % kShards];
}

Result<void> SessionRegistry::add(const std::string& name, std::uint64_t number,
                                  std::shared_ptr<Session> session, Reservation* reservation) {
  std::optional<Displaced> displaced;
  {
    const std::lock_guard lock(clients_mutex_);
    Client& client = clients_[name];
    const bool is_full = client.held.size() >= limits_.per_client;
    if (is_full || size() >= limits_.max_sessions) {
      displaced = make_room(client);
      if (!displaced) forget_unused(name);
      if (!displaced && is_full) {
        return over_limit("You have " + std::to_string(limits_.per_client) +
                          " sessions in use, the most a client may (sessions-per-client); end some "
                          "with DELETE");
      }
      if (!displaced) {
        return over_limit("The server has " + std::to_string(limits_.max_sessions) +
                          " sessions in use, the most it may (max-sessions); try again later");
      }
    }
    client.held.emplace(number, std::move(session));
    if (reservation != nullptr) reservations_.emplace(number, reservation);
    set_held(client);
    size_.fetch_add(1, std::memory_order_relaxed);
    if (displaced && *displaced != nullptr) {
      forget_unused(client_of((*displaced)->principal()));
    }
  }
  if (!displaced) return {};
  displaced_.fetch_add(1, std::memory_order_relaxed);
  static LogLimit limit;
  if (const auto left_out = limit.take()) {
    log_warning("a session has ended to make room for another one", {{"left_out", *left_out}});
  }
  if (*displaced != nullptr) {
    std::uint64_t unused = 0;
    erase(**displaced, unused);
    (*displaced)->end();
  }
  return {};
}

std::optional<SessionRegistry::Displaced> SessionRegistry::make_room(Client& asking) {
  Client* const most = ranking_.most();
  if (most == nullptr) return std::nullopt;
  const std::size_t own = asking.held.size();
  const std::size_t has = most->held.size();
  const bool is_own = own >= limits_.per_client || own >= has;
  std::size_t looks = kLooks;
  Idle idle;
  if (is_own) {
    look(asking, looks, idle);
  } else {
    // Several clients may have as many sessions. set_held() puts the examined client behind them.
    Client* client = most;
    do {
      look(*client, looks, idle);
      set_held(*client);
      client = ranking_.most();
    } while (looks > 0 && client != most);
  }
  if (idle.client != nullptr) return displace(*idle.client, idle.at);
  if (is_own || has < own + 2) return std::nullopt;
  return displace(*most, next(*most));
}

/// The session that was examined longest ago.
SessionRegistry::Held::iterator SessionRegistry::next(Client& client) {
  const auto at = client.held.upper_bound(client.looked_at);
  return at == client.held.end() ? client.held.begin() : at;
}

void SessionRegistry::look(Client& client, std::size_t& looks, Idle& idle) {
  for (std::size_t left = client.held.size(); left > 0 && looks > 0; --left, --looks) {
    const auto at = next(client);
    client.looked_at = at->first;
    if (at->second == nullptr) continue;
    const std::optional<TimePoint> used = at->second->idle_since();
    if (used && (idle.client == nullptr || *used < idle.used)) idle = {&client, at, *used};
  }
}

SessionRegistry::Displaced SessionRegistry::displace(Client& client, Held::iterator at) {
  Displaced displaced = std::move(at->second);
  if (const auto reservation = reservations_.extract(at->first)) reservation.mapped()->end_later();
  client.held.erase(at);
  size_.fetch_sub(1, std::memory_order_relaxed);
  set_held(client);
  return displaced;
}

void SessionRegistry::forget_unused(const std::string& name) {
  const auto client = clients_.find(name);
  if (client != clients_.end() && client->second.held.empty()) clients_.erase(client);
}

void SessionRegistry::set_held(Client& client) {
  ranking_.set(client, client.held.size());
}

Result<void> SessionRegistry::take(Reservation& reservation) {
  reservation.number_ = ++last_number_;
  return add(client_of(reservation.principal()), reservation.number_, nullptr, &reservation);
}

void SessionRegistry::give_back(Reservation& reservation) {
  release(client_of(reservation.principal()), reservation.number_);
}

Result<std::shared_ptr<Session>> SessionRegistry::create(const std::string& principal,
                                                         const Revision& revision,
                                                         const ClientDescription& client) {
  auto session = std::make_shared<Session>(random_id(kIdLength), principal, revision, client,
                                           limits_.resume_window);
  session->touch(clock_->now());
  std::uint64_t number = ++last_number_;
  {
    Shard& shard = shard_of(session->id());
    const std::lock_guard lock(shard.mutex);
    shard.sessions.emplace(session->id(), Entry{session, number});
  }
  if (Result<void> added = add(client_of(principal), number, session, nullptr); !added) {
    erase(*session, number);
    return std::unexpected(std::move(added.error()));
  }
  return session;
}

std::shared_ptr<Session> SessionRegistry::find(std::string_view id, std::string_view principal) {
  Shard& shard = shard_of(id);
  std::shared_ptr<Session> session;
  {
    const std::lock_guard lock(shard.mutex);
    const auto found = shard.sessions.find(id);
    if (found == shard.sessions.end()) return nullptr;
    session = found->second.session;
  }
  if (!constant_time_equal(session->principal(), principal)) return nullptr;
  session->touch(clock_->now());
  return session;
}

bool SessionRegistry::erase(const Session& session, std::uint64_t& number) {
  std::shared_ptr<Session> erased;  // destroyed after the lock
  Shard& shard = shard_of(session.id());
  const std::lock_guard lock(shard.mutex);
  const auto found = shard.sessions.find(session.id());
  if (found == shard.sessions.end()) return false;
  erased = std::move(found->second.session);
  number = found->second.number;
  shard.sessions.erase(found);
  return true;
}

void SessionRegistry::remove(Session& session) {
  const std::string client = client_of(session.principal());
  std::uint64_t number = 0;
  if (!erase(session, number)) return;
  release(client, number);
  session.end();
}

void SessionRegistry::release(const std::string& name, std::uint64_t number) {
  const std::lock_guard lock(clients_mutex_);
  const auto client = clients_.find(name);
  // The session may have made room for another one.
  if (client == clients_.end() || client->second.held.erase(number) == 0) return;
  reservations_.erase(number);
  size_.fetch_sub(1, std::memory_order_relaxed);
  set_held(client->second);
  forget_unused(name);
}

void SessionRegistry::sweep() {
  const TimePoint now = clock_->now();
  // Some at a time, so that giving memory back takes none.
  std::array<std::shared_ptr<Session>, 64> some;
  for (const Shard& shard : shards_) {
    std::size_t count = 0;
    do {
      count = 0;
      {
        const std::lock_guard lock(shard.mutex);
        for (const auto& [id, entry] : shard.sessions) {
          if (count == some.size()) break;
          if (entry.session->expired(now, limits_.expiry)) some[count++] = entry.session;
        }
      }
      for (std::size_t i = 0; i < count; ++i) remove(*std::exchange(some[i], nullptr));
    } while (count == some.size());
  }
}

std::vector<std::shared_ptr<Session>> SessionRegistry::sessions() const {
  std::vector<std::shared_ptr<Session>> all;
  all.reserve(size());
  for (const Shard& shard : shards_) {
    const std::lock_guard lock(shard.mutex);
    for (const auto& [id, entry] : shard.sessions) all.push_back(entry.session);
  }
  return all;
}

}  // namespace sluice
