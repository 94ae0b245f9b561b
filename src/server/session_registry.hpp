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
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/clock.hpp"
#include "core/error.hpp"
#include "server/session.hpp"

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
class SessionRegistry {
 public:
  SessionRegistry(SessionLimits limits, const Clock& clock) : limits_(limits), clock_(&clock) {}

  [[nodiscard]] bool enabled() const { return limits_.max_sessions > 0; }

  /// A place within the limits, for a session that is kept elsewhere. Leaving the scope gives it
  /// back.
  class Place {
   public:
    Place(SessionRegistry& registry, std::string principal)
        : registry_(&registry), principal_(std::move(principal)) {}
    ~Place() { registry_->release(principal_); }
    Place(const Place&) = delete;
    Place& operator=(const Place&) = delete;

   private:
    SessionRegistry* registry_;
    std::string principal_;
  };
  /// kLimitReached at a limit.
  Result<std::unique_ptr<Place>> take_place(const std::string& principal);

  /// A new session with an id from the CSPRNG. kLimitReached at a limit.
  Result<std::shared_ptr<Session>> create(const std::string& principal, const Revision& revision,
                                          const ClientCapabilities& capabilities);
  /// The session of this id, which counts as used now. Null if there is none, or it is another
  /// principal's.
  std::shared_ptr<Session> find(std::string_view id, std::string_view principal);
  /// Ends it.
  void remove(const Session& session);
  /// Ends those that nobody has used for the time of their expiry. To be called now and then.
  void sweep();

  /// All of them, at some time during the call.
  [[nodiscard]] std::vector<std::shared_ptr<Session>> sessions() const;
  /// Those kept elsewhere included.
  [[nodiscard]] std::size_t size() const { return size_.load(std::memory_order_relaxed); }
  [[nodiscard]] const SessionLimits& limits() const { return limits_; }

  static constexpr std::size_t kIdLength = 32;

 private:
  static constexpr std::size_t kShards = 16;
  struct Shard {
    mutable std::mutex mutex;
    std::unordered_map<std::string, std::shared_ptr<Session>> sessions;
  };

  Shard& shard_of(const std::string& id);
  Result<void> reserve(const std::string& principal);
  void release(const std::string& principal);

  const SessionLimits limits_;
  const Clock* clock_;
  std::array<Shard, kShards> shards_;
  std::atomic<std::size_t> size_ = 0;
  std::mutex clients_mutex_;
  std::map<std::string, std::size_t, std::less<>> clients_;  // sessions of each principal
};

}  // namespace sluice
