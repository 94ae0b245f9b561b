#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "client/session/contract/stream_position.hpp"
#include "core/error.hpp"
#include "protocol/revision.hpp"
#include "rpc/message.hpp"

namespace sluice {

/// The code of the error for a connection that cannot be made, or is over.
inline constexpr int kLostConnection = 502;

/// A message for a server, and what its transport needs to know about it.
struct OutgoingMessage {
  std::string text;
  RequestId id = {};                   // of a request whose answer is expected; else empty
  std::string method = {};             // empty: a response
  std::string name = {};               // of the tool, prompt or resource that is asked for
  const Revision* revision = nullptr;  // that the message is written in
  /// Header fields that mirror parameters of a tool; for links that carry header fields.
  std::vector<std::pair<std::string, std::string>> headers = {};
  /// Whatever the message takes in somebody's memory; kept until the link has done with it.
  std::shared_ptr<void> memory = {};
};

/// The client's way to one server and back: a transport, without the meaning of messages. Belongs
/// to a loop. Never calls its owner from within its functions.
class ServerLink {
 public:
  class Owner {
   public:
    virtual ~Owner() = default;
    /// The connection over which the request is sent stands: from now on it is the server that is
    /// waited for. Told of probes (is_probe()) if tells_connected(), each time that one is sent.
    virtual void on_connected(const RequestId& /*id*/) {}
    /// A message of the server. The text is valid during the call.
    virtual void on_message(std::string_view text) = 0;
    /// The same, for transports whose requests have replies of their own: a message in the reply to
    /// `id`, or in none if that is empty. It can answer no other request. Returns false if it does,
    /// and is ignored.
    virtual bool on_reply(const RequestId& id, std::string_view text) = 0;
    /// A message of the server, of which `text` is at least the beginning, cannot be taken.
    virtual void on_unreadable(std::string_view text, const Error& why) = 0;
    /// The request will not be answered any more, although the link still works.
    virtual void on_unanswered(const RequestId& id, const Error& why) = 0;
    /// The same, because the connection broke off before the answer came. It is not known whether
    /// the server has carried the request out.
    virtual void on_broken_off(const RequestId& id, const Error& why) { on_unanswered(id, why); }
    /// The server does not know the session any more, so the request was not carried out
    /// (2025-11-25, Session Management: 404). Without an id: of what has no answer, which was not
    /// taken.
    virtual void on_session_over(const RequestId& id) = 0;
    /// The same of a session that another has replaced since the request was sent.
    virtual void on_old_session_over(const RequestId& id) { on_session_over(id); }
    /// The server may not know the session any more: it refuses the stream of messages that belong
    /// to no request, which it had opened.
    virtual void on_session_doubted() {}
    /// From now on messages can come that belong to no request; those before may be lost. Only
    /// transports that open a stream of its own for them say so (2025-11-25, Listening for Messages
    /// from the Server).
    virtual void on_listening() {}
    /// The answer to a request can be taken up, in this session, behind the event `last_event` of
    /// its stream, all of which was passed on; see ServerLink::take_up().
    virtual void on_position(const RequestId& /*id*/, std::string_view /*session*/,
                             std::string_view /*last_event*/) {}
    /// Whether the request is unanswered, and somebody waits for the answer.
    [[nodiscard]] virtual bool awaits(const RequestId& id) const = 0;
    /// The link is over. Nothing follows.
    virtual void on_lost(const Error& why) = 0;
  };

  virtual ~ServerLink() = default;
  /// Begins. Call once; the owner outlives the link.
  virtual void open(Owner& owner) = 0;
  /// Sends after what was sent before. Error: kBusy, if too much waits to be sent.
  virtual Result<void> send(OutgoingMessage message) = 0;
  /// Nobody waits for this request's answer any more. Returns whether the server hears of that by
  /// the transport, so that it need not be told (2026-07-28, Cancellation).
  virtual bool drop(const RequestId& id) = 0;
  /// Somebody else takes up the answer to this request, at a position that was told. It is not
  /// cancelled, and its session is not ended.
  virtual void leave_answer(const RequestId& id) { drop(id); }
  /// What tells the server from others, for a StreamPosition; empty if it takes up nothing.
  [[nodiscard]] virtual std::string server() const { return {}; }
  /// A link to the same server that reads the rest of an answer once it is opened, in the session
  /// of that and without ending it. Null: the transport cannot, or the position is none of it.
  [[nodiscard]] virtual std::unique_ptr<ServerLink> take_up(const StreamPosition& /*from*/) {
    return nullptr;
  }
  /// Stops reading what the server sends about this request, so that the server waits; false: reads
  /// again. If shares_connection(), nothing is read while a request is paused. What has been read
  /// already is still passed on, at most 64 KiB and a message. A request that is over must not be
  /// left paused.
  virtual void pause(const RequestId& /*id*/, bool /*is_paused*/) {}
  /// Whether all requests share one connection.
  [[nodiscard]] virtual bool shares_connection() const { return false; }
  /// Begins anew after a server that did not understand the probe, with its process or connection
  /// if those are over. Returns false if that is not possible.
  virtual bool reopen() = 0;
  /// Whether it connects while requests wait, and tells their owner when that is done.
  [[nodiscard]] virtual bool tells_connected() const { return false; }
  /// Whether messages have header fields.
  [[nodiscard]] virtual bool carries_headers() const { return false; }
  /// Ends in the orderly way of the transport, where that takes time: a child process, a session
  /// over HTTP. From now on the owner is not told, and need not exist. Calls `done` once, at once
  /// or later, within seconds. Call last; the link may be destroyed then.
  virtual void close(std::function<void()> done) { done(); }
};

}  // namespace sluice
