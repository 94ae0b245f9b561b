#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "core/executor.hpp"
#include "server/session_registry.hpp"

namespace sluice {

class SseConnection;

/// The sessions of the transport HTTP with SSE, by their ids: each is one event stream, and ends
/// with it. Thread-safe; shared by all loops.
class SseSessions {
 public:
  /// The limits of `registry`, which outlives this, hold for these sessions too.
  explicit SseSessions(SessionRegistry& registry) : registry_(&registry) {}

  [[nodiscard]] bool enabled() const { return registry_->enabled(); }

  /// A session's entry; leaving the scope removes it.
  class Entry {
   public:
    Entry(SseSessions& sessions, std::string id, std::unique_ptr<SessionRegistry::Place> place)
        : sessions_(&sessions), id_(std::move(id)), place_(std::move(place)) {}
    ~Entry() { sessions_->remove(id_); }
    Entry(const Entry&) = delete;
    Entry& operator=(const Entry&) = delete;
    [[nodiscard]] const std::string& id() const { return id_; }

   private:
    SseSessions* sessions_;
    std::string id_;
    std::unique_ptr<SessionRegistry::Place> place_;
  };

  /// Where the messages for a session go: to that connection, on that loop.
  struct Route {
    Executor* loop = nullptr;
    std::weak_ptr<SseConnection> connection;
  };

  /// A new session of `principal`, with an id from the CSPRNG. kLimitReached at a limit.
  Result<std::unique_ptr<Entry>> add(const std::string& principal, Route route);
  /// Nothing if there is none of this id, or it is another principal's.
  [[nodiscard]] std::optional<Route> find(std::string_view id, std::string_view principal) const;

 private:
  struct Session {
    std::string principal;
    Route route;
  };

  void remove(const std::string& id);

  SessionRegistry* registry_;
  mutable std::mutex mutex_;
  std::unordered_map<std::string, Session> sessions_;
};

}  // namespace sluice
