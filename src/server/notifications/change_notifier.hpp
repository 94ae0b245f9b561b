#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/executor.hpp"
#include "core/sharing/client_memory.hpp"
#include "server/sessions/change.hpp"
#include "server/sessions/session.hpp"
#include "server/streams/stream_service.hpp"

namespace sluice {

/// The notification of `change`: its method, and the members of its parameters.
std::string_view method_of(const Change& change);
std::string params_of(const Change& change);

/// The whole notification, for a session's client.
std::string message_of(const Change& change);

/// What could not be sent to a session's client when it happened, and must be sent later: the
/// changes that the session keeps (Session::miss()), and the last message about each state (see
/// Session::Outlet).
class MissedMessages {
 public:
  /// `memory` is charged for the messages.
  explicit MissedMessages(MemoryHold memory) : memory_(std::move(memory)) {}

  /// Keeps `message` in place of the one before about the same state, which is no longer true. If
  /// there is no memory for it, nothing is kept about the state.
  void add(const std::string& state_of, const std::string& message);
  /// Passes what `session` and this keep to `send`, until that returns false for something that it
  /// has no room for. Returns whether all has been sent.
  bool send(Session& session, const std::function<bool(const std::string& message)>& send);

 private:
  std::map<std::string, std::string> states_;
  MemoryHold memory_;
};

/// Is told of changes as long as it lives.
class ChangeListener {
 public:
  virtual ~ChangeListener() = default;
  /// Called on any thread.
  [[nodiscard]] virtual bool wants(const Change& change) const = 0;
  /// Called on the listener's loop, as close() is.
  virtual void tell(const Change& change) = 0;
  /// The last call, when the server is shutting down.
  virtual void close() = 0;
};

/// Tells clients of changes: sessions over HTTP through their standalone streams, others through
/// listeners. Thread-safe; shared by all loops.
class ChangeNotifier {
 public:
  /// This must outlive everything that the loops of `shards` run.
  explicit ChangeNotifier(const std::vector<StreamShard>& shards);
  ~ChangeNotifier();

  /// Adds a listener of `loop`, which must be the loop of a shard.
  void add(Executor& loop, std::weak_ptr<ChangeListener> listener);
  /// Makes `stream` the standalone stream of `session`, unless the session has one already. Returns
  /// the id of the session's standalone stream. To be called on the stream's loop.
  StreamId add(const std::shared_ptr<Session>& session, const std::shared_ptr<ChunkStream>& stream);

  /// If something changes several times before a loop sends the change, that loop sends it once. A
  /// session misses changes while it has not opened its standalone stream. While it does not read
  /// it, each change waits once.
  void publish(const Change& change);
  /// Sends `message` to the client of `session` only. It is a complete notification that belongs to
  /// no request. `state_of` is as for Session::Outlet.
  void send(const std::shared_ptr<Session>& session, const std::string& state_of,
            const std::shared_ptr<const std::string>& message);
  /// Ends everything that waits for changes, because the server is shutting down.
  void close();

 private:
  /// The listeners of a loop, and the changes that it has not sent yet.
  class Loop;

  std::vector<std::unique_ptr<Loop>> loops_;  // of the shards, in their order
};

}  // namespace sluice
