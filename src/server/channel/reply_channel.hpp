#pragma once

#include <cstdint>
#include <functional>
#include <memory>
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

/// How a caller left before its answer was complete: lost, perhaps to come back, or it has said
/// that it wants no answer.
enum class DisconnectReason : std::uint8_t { gone, cancelled };

/// The way back to the caller of one request that is answered later: either reply() once, or
/// write() any number of times and then finish(). After the caller has gone everything does
/// nothing. Belongs to the caller's loop.
class ReplyChannel : public BlockSink {
 public:
  /// The whole answer: one JSON-RPC response. `http_status` matters on HTTP only. Where the caller
  /// has no room for it, it waits for that.
  virtual void reply(int http_status, std::string message) = 0;
  /// How messages passed to write() must be framed.
  [[nodiscard]] virtual const Framing& framing() const = 0;
  /// Whether messages may precede the response.
  [[nodiscard]] virtual bool can_stream() const = 0;
  /// Whether other requests are answered through the same connection's reply. Then the response
  /// goes to reply() also behind what was written, and nothing can be resumed.
  [[nodiscard]] virtual bool is_shared() const { return false; }
  /// The answer may take its time: what keeps the caller waiting, and whoever stands in between,
  /// may go before it.
  virtual void may_take_long() {}
  /// Runs `answer`, which is to make a long answer and to reply(), when the caller has room for
  /// that and no other such answer is on its way there: at once or later, or never if the caller
  /// leaves before.
  virtual void when_writable(Executor::Task answer) { answer(); }
  /// What when_writable() has run has nothing to answer yet: others need not wait for it.
  virtual void give_way() {}
  /// Called once if the caller goes away or cancels before the answer is complete. An empty task
  /// withdraws it.
  using CloseTask = UniqueFunction<void(DisconnectReason)>;
  virtual void on_close(CloseTask task) = 0;
  /// Called each time the channel takes blocks again after write() returned false.
  virtual void on_drain(Executor::Task task) = 0;
};

class Caller;

/// A caller for longer than its request is handled, and the header fields of the request as for
/// negotiate().
struct RetainedCaller {
  std::shared_ptr<Caller> caller;
  const MirroredHeaders* headers = nullptr;  // as long as the caller lives
};

/// Who sent a request. Lives during the handling of it only.
class Caller {
 public:
  virtual ~Caller() = default;
  /// Who may see what this request makes.
  [[nodiscard]] virtual const Principal& principal() const = 0;
  /// Takes over the duty to answer request `id`, or, without an id, several of them. kBusy when
  /// the caller has too many unanswered requests.
  virtual Result<std::shared_ptr<ReplyChannel>> open_channel(const RequestId& id) = 0;
  /// The session that the message belongs to, or null. An Error: it names one that is not there.
  virtual Result<std::shared_ptr<Session>> session() = 0;
  /// Whether a long answer may be given at once, without ReplyChannel::when_writable().
  [[nodiscard]] virtual bool has_capacity() const { return true; }
  /// The caller has initialized with `revision`. kLimitReached when there are too many sessions.
  virtual Result<void> begin_session(const Revision& revision,
                                     const ClientCapabilities& capabilities) = 0;
  /// Answers a request that means something of its own to this caller, through `out` or otherwise.
  /// False: it means what it means to all. `asker` is this, or who stands before it, and opens the
  /// channels.
  virtual bool serve(const Message& /*message*/, Caller& /*asker*/, std::string& /*out*/) {
    return false;
  }
  /// It listens to changes until it goes. A caller who can say that it asks nothing more closes
  /// `listener` then.
  virtual void add_listener(std::weak_ptr<ChangeListener> /*listener*/) {}
  /// Who is told of the end of what is answered later, or null.
  virtual std::unique_ptr<RequestWatch> watch() { return nullptr; }
  /// The same caller for later. What it is asked then opens no channels.
  virtual RetainedCaller keep() = 0;
};

}  // namespace sluice
