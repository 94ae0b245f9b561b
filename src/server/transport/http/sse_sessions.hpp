#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "core/executor.hpp"
#include "server/sessions/session_registry.hpp"

namespace sluice {

class SseConnection;

/// The sessions of the transport HTTP with SSE, by their ids: each is one event stream, and ends
/// with it. Thread-safe; shared by all loops.
class SseSessions {
 public:
  /// The limits of `registry`, which outlives this, apply to these sessions too.
  explicit SseSessions(SessionRegistry& registry) : registry_(&registry) {}

  [[nodiscard]] bool enabled() const { return registry_->enabled(); }

  /// Where the messages for a session go: to this connection, on this loop.
  struct Route {
    Executor* loop = nullptr;
    std::weak_ptr<SseConnection> connection;
  };

  /// A session's entry. Its destructor removes it.
  class Entry final : private SessionRegistry::Reservation {
   public:
    Entry(SseSessions& sessions, std::string id, std::string principal, Route route)
        : sessions_(&sessions),
          id_(std::move(id)),
          principal_(std::move(principal)),
          route_(std::move(route)) {}
    ~Entry() { sessions_->remove(*this); }
    Entry(const Entry&) = delete;
    Entry& operator=(const Entry&) = delete;
    [[nodiscard]] const std::string& id() const { return id_; }

   private:
    friend class SseSessions;
    [[nodiscard]] const std::string& principal() const override { return principal_; }
    void end_later() override;

    SseSessions* sessions_;
    const std::string id_;
    const std::string principal_;
    const Route route_;
  };

  /// A new session of `principal`, with an id from the CSPRNG. kLimitReached at a limit.
  Result<std::unique_ptr<Entry>> add(const std::string& principal, Route route);
  /// Nothing if there is none of this id, or it is another principal's.
  [[nodiscard]] std::optional<Route> find(std::string_view id, std::string_view principal) const;

 private:
  void remove(Entry& entry);

  SessionRegistry* registry_;
  mutable std::mutex mutex_;
  std::unordered_map<std::string_view, Entry*> entries_;  // by their ids
};

}  // namespace sluice
