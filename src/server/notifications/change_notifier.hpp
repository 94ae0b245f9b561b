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
#include "server/sessions/session_registry.hpp"
#include "server/streams/stream_service.hpp"

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
  /// One of them, no longer missed. There must be one. Each has its turn, however often others
  /// are added again.
  Change take();

 private:
  using Key = std::pair<Change::Kind, std::string>;
  std::set<Key> changes_;
  Key last_{Change::Kind::elicitation, {}};  // taken; the lists are before all others at first
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
class ChangeNotifier {
 public:
  /// `sessions` outlives this, which outlives what the loops of `shards` run.
  ChangeNotifier(SessionRegistry& sessions, const std::vector<StreamShard>& shards);
  ~ChangeNotifier();

  /// `loop` is that of a shard.
  void add(Executor& loop, std::weak_ptr<ChangeListener> listener);

  /// What changes several times before a loop comes to tell it is told once there. A session that
  /// has not opened its standalone stream yet, or does not read it, misses changes.
  void publish(const Change& change);
  /// Tells the client of `session` alone, by a whole notification that belongs to no request.
  /// `state_of` as for Session::Outlet.
  void send(const std::shared_ptr<Session>& session, const std::string& state_of,
            const std::shared_ptr<const std::string>& message);
  /// The server is shutting down: ends what waits for changes.
  void close();

 private:
  /// The listeners of a loop, and what the loop is yet to tell.
  class Loop;

  /// The loop of the standalone stream of `session`; null if there is none.
  [[nodiscard]] Loop* loop_of(const Session& session) const;

  SessionRegistry* sessions_;
  std::vector<std::unique_ptr<Loop>> loops_;  // of the shards, in their order
};

/// Whether the client of `session` wants to hear of `change`.
bool wants(const Session& session, const Change& change);

}  // namespace sluice
