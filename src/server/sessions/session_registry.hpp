#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
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
#include "core/sharing/ranking.hpp"
#include "server/sessions/session.hpp"

namespace sluice {

struct SessionLimits {
  /// 0: there are no sessions, and each request of the session eras is served by itself.
  std::size_t max_sessions = 100'000;
  std::size_t per_client = 10'000;
  /// A session that nobody uses for this long ends.
  Duration expiry = std::chrono::minutes(30);
  /// How long a call continues after its caller has gone, so that the caller can come back.
  Duration resume_window = std::chrono::minutes(1);
};

/// At a limit, a session ends to make room for a new one. If the new session's client is at its own
/// limit or no client has more sessions, it is one of that client's; else it is one of the client
/// that has most. Of the sessions with nothing under way, the one that was used longest ago ends.
/// If all are busy, one of them ends only if their client has at least two more than the new
/// session's client. So a client without a session gets one as long as another client has two. A
/// client is client_of() a principal.
class SessionRegistry {
 public:
  SessionRegistry(SessionLimits limits, const Clock& clock) : limits_(limits), clock_(&clock) {}

  [[nodiscard]] bool enabled() const { return limits_.max_sessions > 0; }

  /// A session that is stored elsewhere but counts towards the limits. It counts as busy.
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
    /// Ends the session later, to make room for another one. Called on any thread, with the
    /// registry locked.
    virtual void end_later() = 0;

    std::uint64_t number_ = 0;
  };
  /// Counts the session of `reservation`, which must be given back before it is destroyed.
  /// kLimitReached at a limit.
  Result<void> take(Reservation& reservation);
  void give_back(Reservation& reservation);

  /// A new session with an id from the CSPRNG. kLimitReached at a limit.
  Result<std::shared_ptr<Session>> create(const std::string& principal, const Revision& revision,
                                          const ClientDescription& client);
  /// The session of this id, which counts as used now. Null if there is none, or it is another
  /// principal's.
  std::shared_ptr<Session> find(std::string_view id, std::string_view principal);
  /// Removes the session and ends it.
  void remove(Session& session);
  /// Ends the sessions that have not been used for the time of their expiry. To be called now and
  /// then.
  void sweep();

  /// The sessions that are stored here. Those that come or go during the call may be missing.
  [[nodiscard]] std::vector<std::shared_ptr<Session>> sessions() const;
  /// The number of sessions, including those that are stored elsewhere.
  [[nodiscard]] std::size_t size() const { return size_.load(std::memory_order_relaxed); }
  /// The number of sessions that have ended to make room for others.
  [[nodiscard]] std::size_t displaced() const { return displaced_.load(std::memory_order_relaxed); }
  [[nodiscard]] const SessionLimits& limits() const { return limits_; }

  static constexpr std::size_t kIdLength = 32;
  /// The most sessions that are examined, in turn, to find one that makes room.
  static constexpr std::size_t kLooks = 32;

 private:
  static constexpr std::size_t kShards = 16;
  struct Entry {
    std::shared_ptr<Session> session;
    std::uint64_t number;
  };
  /// Lets ids be looked up without copying them.
  struct IdHash : std::hash<std::string_view> {
    using is_transparent = void;
  };
  struct Shard {
    mutable std::mutex mutex;
    std::unordered_map<std::string, Entry, IdHash, std::equal_to<>> sessions;
  };
  /// A client's sessions by their numbers; null: stored elsewhere.
  using Held = std::map<std::uint64_t, std::shared_ptr<Session>>;
  struct Client {
    Held held;
    std::uint64_t looked_at = 0;  // the number of the session that was examined last
    RankKey rank;
  };
  /// The session that makes room; null if it is stored elsewhere.
  using Displaced = std::shared_ptr<Session>;
  /// Of the idle sessions examined, the one that was used longest ago.
  struct Idle {
    Client* client = nullptr;
    Held::iterator at;
    TimePoint used;
  };

  /// The shard of an id, whose characters are random.
  Shard& shard_of(std::string_view id);
  /// Counts a session, and ends another one if it takes that to make room.
  Result<void> add(const std::string& name, std::uint64_t number, std::shared_ptr<Session> session,
                   Reservation* reservation);
  void release(const std::string& name, std::uint64_t number);
  bool erase(const Session& session, std::uint64_t& number);

  // Called with the clients locked.
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
