#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/client_memory.hpp"
#include "core/executor.hpp"
#include "server/sessions/session.hpp"
#include "server/streams/stream_service.hpp"

namespace sluice {

/// Something that clients may want to be told of: a list or a resource has changed, or the user is
/// done with what an elicitation in URL mode asked for.
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

/// Changes that could not be sent when they happened, each of them once.
class MissedChanges {
 public:
  void add(const Change& change) { changes_.emplace(change.kind, change.subject); }
  [[nodiscard]] bool empty() const { return changes_.empty(); }
  [[nodiscard]] std::size_t size() const { return changes_.size(); }
  /// Removes one of them and returns it; there must be one. They take turns, so none is held up by
  /// others that are added again and again.
  Change take();

 private:
  using Key = std::pair<Change::Kind, std::string>;
  std::set<Key> changes_;
  Key last_{Change::Kind::elicitation, {}};  // taken last; at first, lists come before resources
};

/// What the client of a session must hear of, but could not be sent when it happened: changes, and
/// of the messages about each state the last one (see Session::Outlet).
class MissedMessages {
 public:
  /// `memory` is charged for messages. If it has no more, a message about another state is left
  /// out.
  explicit MissedMessages(MemoryHold memory = MemoryHold()) : memory_(std::move(memory)) {}

  void add(const Change& change) { changes_.add(change); }
  void add(const std::string& state_of, const std::string& message);
  /// Passes them to `send`, until that returns false for one that it has no room for. Returns
  /// whether all have been sent.
  bool send(const std::function<bool(const std::string& message)>& send);

 private:
  MissedChanges changes_;
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
  /// Makes `stream` the standalone stream of `session`, unless that has one. Returns the id of the
  /// one it has. To be called on the stream's loop.
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

/// Whether the client of `session` wants to hear of `change`.
bool wants(const Session& session, const Change& change);

}  // namespace sluice
