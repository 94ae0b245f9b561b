#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/executor.hpp"
#include "server/session_registry.hpp"
#include "server/stream_service.hpp"

namespace sluice {

/// Something that clients may want to hear of: a list is another one now, or a resource is, or what
/// a user was sent to by an elicitation in URL mode is done.
struct Change {
  enum class Kind : std::uint8_t { tools, prompts, resources, resource, elicitation };
  Kind kind = Kind::tools;
  std::string subject = {};  // the resource's URI, or the elicitation's id
};

/// The notification of `change`: its method, and the members of its parameters.
std::string_view method_of(const Change& change);
std::string params_of(const Change& change);

/// The whole notification, for a session's client.
std::string message_of(const Change& change);

/// Changes that could not be told when they came, each of them once. There are no more than there
/// are lists and subscriptions.
class MissedChanges {
 public:
  void add(const Change& change) { changes_.emplace(change.kind, change.subject); }
  [[nodiscard]] bool empty() const { return changes_.empty(); }
  /// One of them, no longer missed. There must be one.
  Change take();

 private:
  std::set<std::pair<Change::Kind, std::string>> changes_;
};

/// Who hears of changes as long as it lives.
class ChangeListener {
 public:
  virtual ~ChangeListener() = default;
  /// On any thread.
  [[nodiscard]] virtual bool wants(const Change& change) const = 0;
  /// On the listener's loop, as the next one.
  virtual void tell(const Change& change) = 0;
  /// Nothing follows: the server is shutting down.
  virtual void close() = 0;
};

/// Tells clients of changes: sessions over HTTP on their standalone streams, others as listeners.
/// Thread-safe; shared by all loops.
class Changes {
 public:
  Changes(SessionRegistry& sessions, std::vector<StreamShard> shards)
      : sessions_(&sessions), shards_(std::move(shards)) {}

  void add(Executor& loop, std::weak_ptr<ChangeListener> listener);

  /// A session that has not opened its standalone stream yet, or does not read it, misses changes.
  void publish(const Change& change);
  /// Tells the client of `session` alone, by a whole notification that belongs to no request.
  /// `state_of` as for Session::Outlet.
  void send(const std::shared_ptr<Session>& session, const std::string& state_of,
            const std::shared_ptr<const std::string>& message);
  /// The server is shutting down: ends what waits for changes.
  void close();

 private:
  struct Entry {
    Executor* loop;
    std::weak_ptr<ChangeListener> listener;
  };

  void send_on_stream(const std::shared_ptr<Session>& session,
                      const std::shared_ptr<const std::string>& message);
  /// Does `work` with the standalone stream of `session` on its loop, if there is one.
  void on_standalone_stream(const std::shared_ptr<Session>& session,
                            std::function<void(ChunkStream&)> work);

  SessionRegistry* sessions_;
  std::vector<StreamShard> shards_;
  std::mutex mutex_;
  std::vector<Entry> listeners_;
  std::size_t sweep_at_ = 64;  // when so many are listed, those that are gone are dropped
};

/// Whether the client of `session` wants to hear of `change`.
bool wants(const Session& session, const Change& change);

}  // namespace sluice
