#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/clock.hpp"
#include "core/error.hpp"
#include "core/ranking.hpp"
#include "server/sessions/session.hpp"

namespace sluice {

struct SessionLimits {
  /// 0: no sessions; requests of the session eras are then served each by itself.
  std::size_t max_sessions = 100'000;
  std::size_t per_client = 10'000;
  /// A session that nobody uses for this long ends.
  Duration expiry = std::chrono::minutes(30);
  /// A call goes on for this long after its caller has gone, for the caller to come back.
  Duration resume_window = std::chrono::minutes(1);
};

/// The sessions of Streamable HTTP, by their ids. Thread-safe; shared by all loops.
///
/// At a limit a session ends to make room for the next: of the client that has most of all, or has
/// as many as it may, the one that was used longest ago with nothing under way. A client that has
/// two more than another ends one even if all of them are busy, so whoever has none gets one. A
/// client is client_of() a principal.
class SessionRegistry {
 public:
  SessionRegistry(SessionLimits limits, const Clock& clock) : limits_(limits), clock_(&clock) {}

  [[nodiscard]] bool enabled() const { return limits_.max_sessions > 0; }

  /// A session that is kept elsewhere and has a place within the limits. It counts as busy.
  class Reservation {
   public:
    Reservation() = default;
    Reservation(const Reservation&) = delete;
    Reservation& operator=(const Reservation&) = delete;

   protected:
    ~Reservation() = default;

   private:
    friend class SessionRegistry;
    [[nodiscard]] virtual const std::string& principal() const = 0;
    /// Ends the session later, which makes room for another. On any thread, with the registry
    /// locked.
    virtual void end_later() = 0;

    std::uint64_t number_ = 0;
  };
  /// `place` must be given back before it goes. kLimitReached at a limit.
  Result<void> take(Reservation& reservation);
  void give_back(Reservation& reservation);

  /// A new session with an id from the CSPRNG. kLimitReached at a limit.
  Result<std::shared_ptr<Session>> create(const std::string& principal, const Revision& revision,
                                          const ClientCapabilities& capabilities);
  /// The session of this id, which counts as used now. Null if there is none, or it is another
  /// principal's.
  std::shared_ptr<Session> find(std::string_view id, std::string_view principal);
  /// Ends it.
  void remove(Session& session);
  /// Ends those that nobody has used for the time of their expiry. To be called now and then.
  void sweep();

  /// All of them, at some time during the call.
  [[nodiscard]] std::vector<std::shared_ptr<Session>> sessions() const;
  /// Those kept elsewhere included.
  [[nodiscard]] std::size_t size() const { return size_.load(std::memory_order_relaxed); }
  /// How many have made room for others.
  [[nodiscard]] std::size_t displaced() const { return displaced_.load(std::memory_order_relaxed); }
  [[nodiscard]] const SessionLimits& limits() const { return limits_; }

  static constexpr std::size_t kIdLength = 32;
  /// Sessions that are looked at, in turn, for one that makes room.
  static constexpr std::size_t kLooks = 32;

 private:
  static constexpr std::size_t kShards = 16;
  struct Entry {
    std::shared_ptr<Session> session;
    std::uint64_t number;
  };
  struct Shard {
    mutable std::mutex mutex;
    std::unordered_map<std::string, Entry> sessions;
  };
  /// Of one client, by their numbers; null: it is kept elsewhere.
  using Held = std::map<std::uint64_t, std::shared_ptr<Session>>;
  struct Client {
    Held held;
    std::uint64_t looked_at = 0;  // the number of the last that was
    RankKey rank;
  };
  /// What makes room; null if it is kept elsewhere.
  using Displaced = std::shared_ptr<Session>;
  /// The best that has been found to make room.
  struct Idle {
    Client* client = nullptr;
    Held::iterator at;
    TimePoint used;
  };

  Shard& shard_of(const std::string& id);
  /// Finds a place for a session, and ends what makes room.
  Result<void> add(const std::string& name, std::uint64_t number, std::shared_ptr<Session> session,
                   Reservation* reservation);
  void release(const std::string& name, std::uint64_t number);
  bool erase(const Session& session, std::uint64_t& number);

  // With the clients locked.
  [[nodiscard]] std::optional<Displaced> make_room(Client& asking);
  [[nodiscard]] static Held::iterator next(Client& client);
  static void look(Client& client, std::size_t& looks, Idle& idle);
  Displaced displace(Client& client, Held::iterator at);
  void set_held(Client& client);
  void forget_unused(const std::string& name);

  const SessionLimits limits_;
  const Clock* clock_;
  std::array<Shard, kShards> shards_;
  std::atomic<std::size_t> size_ = 0;
  std::atomic<std::size_t> displaced_ = 0;
  std::mutex clients_mutex_;
  std::map<std::string, Client, std::less<>> clients_;  // by name
  Ranking<Client> ranking_;
  std::unordered_map<std::uint64_t, Reservation*> reservations_;  // by their numbers
  std::atomic<std::uint64_t> last_number_ = 0;
};

}  // namespace sluice
