#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "core/executor.hpp"
#include "protocol/mirrored_headers.hpp"
#include "rpc/message.hpp"
#include "server/channel/framing.hpp"
#include "server/channel/request_watch.hpp"
#include "server/sessions/session.hpp"
#include "sluice/principal.hpp"
#include "stream/push_cursor.hpp"

namespace sluice {

class ChangeListener;
struct Principal;

/// Why a caller left before its answer was complete: its connection has gone, though it may come
/// back, or it has cancelled the request.
enum class DisconnectReason : std::uint8_t { gone, cancelled };

/// Sends the answer to a request that is answered later. Call either reply() once, or write() any
/// number of times and then finish(). Once the caller has gone, all functions do nothing. Belongs
/// to the caller's loop.
class ReplyChannel : public BlockSink {
 public:
  /// Sends the whole answer, one JSON-RPC response. `http_status` is used on HTTP only. The
  /// response is queued while the caller does not read fast enough.
  virtual void reply(int http_status, std::string message) = 0;
  /// How messages passed to write() must be framed.
  [[nodiscard]] virtual const Framing& framing() const = 0;
  /// Whether messages may precede the response.
  [[nodiscard]] virtual bool can_stream() const = 0;
  /// Whether the reply also answers other requests, as that of a batch does. Then the response goes
  /// to reply() even after write() was called, and nothing can be resumed.
  [[nodiscard]] virtual bool is_shared() const { return false; }
  /// Says that the answer may take long. The channel may then send something before it, so that
  /// neither the caller nor an intermediary gives up waiting.
  virtual void may_take_long() {}
  /// Runs `answer`, which makes a long answer and calls reply(), once the caller accepts output and
  /// no other long answer is being made for it. Runs it at once or later, or never if the caller
  /// leaves first.
  virtual void when_writable(Executor::Task answer) { answer(); }
  /// Says that the task that when_writable() ran has no answer yet, so that other long answers need
  /// not wait for it.
  virtual void give_way() {}
  /// Sets the task that runs, once, if the caller goes away or cancels before the answer is
  /// complete. An empty task removes it.
  using CloseTask = UniqueFunction<void(DisconnectReason)>;
  virtual void on_close(CloseTask task) = 0;
  /// Sets the task that runs each time the channel accepts blocks again after write() returned
  /// false.
  virtual void on_drain(Executor::Task task) = 0;
  /// Gives up the entry that the request has in its session, so that the client can still cancel
  /// the request when this channel has gone. Null if there is none.
  virtual std::unique_ptr<Session::Call> give_entry() { return nullptr; }
};

class Caller;

/// A caller that outlives the handling of its request, and the header fields of the request as
/// negotiate() takes them.
struct RetainedCaller {
  std::shared_ptr<Caller> caller;
  const MirroredHeaders* headers = nullptr;  // or null; valid as long as `caller` exists
};

/// Who sent a request. Exists only while the request is being handled; see keep().
class Caller {
 public:
  virtual ~Caller() = default;
  /// The owner of what this request creates: nobody else may see it.
  [[nodiscard]] virtual const Principal& principal() const = 0;
  /// Opens the channel through which request `id` must be answered later. With an empty id, the
  /// channel answers several requests. Errors: kBusy or kLimitReached if the caller has too many
  /// unanswered requests, -32600 if one of them has this id.
  virtual Result<std::shared_ptr<ReplyChannel>> open_channel(const RequestId& id) = 0;
  /// The session that the message belongs to, or null. Error: the message names a session that does
  /// not exist.
  virtual Result<std::shared_ptr<Session>> session() = 0;
  /// Whether a long answer may be given at once, without ReplyChannel::when_writable().
  [[nodiscard]] virtual bool has_capacity() const { return true; }
  /// Begins a session for a caller that sent `initialize` with `revision`; null if there are no
  /// sessions here. Errors: kLimitReached if there are too many sessions, -32600 if this caller
  /// cannot begin one.
  virtual Result<std::shared_ptr<Session>> begin_session(const Revision& revision,
                                                         const ClientDescription& client) = 0;
  /// What handlers keep for the connection, if it is one for many messages; null otherwise.
  virtual std::shared_ptr<SessionStorage> storage() { return nullptr; }
  /// The value of a header field of the request, or of the one that has opened its connection.
  /// Nothing if it is absent or repeated, and on transports without header fields. A connection for
  /// many messages has only the fields that ServerDefinition::request_headers names.
  [[nodiscard]] virtual std::optional<std::string> field(std::string_view /*name*/) const {
    return {};
  }
  /// Handles a message that has a special meaning for this kind of caller, such as `subscribe` on a
  /// WebSocket. Answers through `out` or a channel. Returns false if the message has no special
  /// meaning here. `asker`, which opens the channels, is this caller or a wrapper of it.
  virtual bool serve(const Message& /*message*/, Caller& /*asker*/, std::string& /*out*/) {
    return false;
  }
  /// Registers a listener for changes that listens until it is destroyed. A caller that knows when
  /// it will send no more requests closes `listener` then.
  virtual void add_listener(std::weak_ptr<ChangeListener> /*listener*/) {}
  /// Makes the object that is told how a request that is answered later ends. Null if there is
  /// none.
  virtual std::unique_ptr<RequestWatch> watch() { return nullptr; }
  /// The same caller, for use after the request has been handled. Open the channel of the request
  /// before you call this; the kept caller must not open another one.
  virtual RetainedCaller keep() = 0;
};

}  // namespace sluice
