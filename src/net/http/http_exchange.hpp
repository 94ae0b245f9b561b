#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "core/bytes.hpp"
#include "core/client_memory.hpp"
#include "core/executor.hpp"
#include "core/ref_ptr.hpp"
#include "net/http/http_types.hpp"

namespace sluice {

/// Body bytes framed once as an HTTP chunk and shared by any number of streaming replies (a reply
/// that is not chunked sends the inside only). Cheap to copy, thread-safe as Bytes.
class ChunkBlock {
 public:
  ChunkBlock() = default;
  /// Copies `body`, which must not be empty (an empty chunk would end a reply).
  explicit ChunkBlock(std::string_view body);
  /// Adopts bytes that are one framed chunk already, as frame_chunk() makes them.
  static ChunkBlock from_framed(Bytes framed) {
    ChunkBlock block;
    block.body_at_ = framed.view().find('\n') + 1;
    block.framed_ = std::move(framed);
    return block;
  }

  [[nodiscard]] const Bytes& framed() const { return framed_; }
  [[nodiscard]] std::string_view body() const {
    return framed_.view().substr(body_at_, framed_.size() - body_at_ - 2);
  }
  [[nodiscard]] std::size_t body_offset() const { return body_at_; }

 private:
  Bytes framed_;
  std::size_t body_at_ = 0;
};

/// Header fields of a reply that no cache keeps and no proxy holds back.
inline constexpr std::array<HeaderField, 2> kUnbufferedFields = {
    {{"Cache-Control", "no-store"}, {"X-Accel-Buffering", "no"}}};

/// Turns `body`, which must not be empty, into one framed HTTP chunk (RFC 9112, section 7.1).
void frame_chunk(std::string& body);

/// What happens on a WebSocket. Called on the connection's loop; owned by the connection, destroyed
/// after on_close.
class WebSocketHandler {
 public:
  virtual ~WebSocketHandler() = default;
  /// One whole text message (valid UTF-8), valid during the call. False: taken, but no more before
  /// WebSocketSession::resume_input().
  virtual bool on_message(std::string_view text) = 0;
  /// The same, of one that may be kept.
  virtual bool on_kept_message(std::string text) { return on_message(text); }
  /// A binary message; unless overridden it closes the connection with 1003.
  virtual bool on_binary(std::string_view /*data*/) { return false; }
  /// The output queue has fallen below its low-water mark after send_* had returned false.
  virtual void on_drain() {}
  /// The connection is over, once: the peer's close code, the one that we sent after its error, or
  /// 1006 if it was lost.
  virtual void on_close(int /*code*/) {}
};

/// The sending side of a server's WebSocket. Only on its loop's thread; after the connection has
/// closed every call does nothing. No call destroys the handler before the end of the turn.
/// Messages of one turn leave in one send() at its end.
class WebSocketSession : public RefCounted {
 public:
  /// Queues one text message. False when the output queue is above its high-water mark: the message
  /// is queued, but the caller should wait for on_drain.
  virtual bool send_text(std::string_view text) = 0;
  /// Queues bytes that are whole frames already (websocket_text_frame()), shared, not copied.
  virtual bool send_frames(const Bytes& frames) = 0;
  /// The same, copied.
  virtual bool send_frames(std::string_view frames) = 0;
  /// The same, sent now with all that is queued: copied only where the socket does not take them.
  virtual bool push_frames(std::string_view frames) = 0;
  virtual void ping(std::string_view payload = {}) = 0;
  /// The handler takes more messages.
  virtual void resume_input() = 0;
  /// Starts the closing handshake. `code` is a code that may be sent (RFC 6455, section 7.4).
  virtual void close(int code, std::string_view reason = {}) = 0;
  /// Sends what is queued now instead of at the turn's end.
  virtual void flush() = 0;
  [[nodiscard]] virtual bool is_open() const = 0;
  [[nodiscard]] virtual std::size_t queued_bytes() const = 0;
  /// How long the peer has taken nothing although there was something to send; 0 if it keeps up.
  [[nodiscard]] virtual Duration stalled_for() const = 0;
  [[nodiscard]] virtual Executor& executor() = 0;
};
using WebSocketSessionPtr = RefPtr<WebSocketSession>;

struct WebSocketOptions {
  std::size_t max_message = 4U << 20U;   // bytes, after decompression; beyond: close 1009
  bool deflate = true;                   // offer permessage-deflate
  std::size_t deflate_threshold = 1024;  // smaller messages are sent as they are
  std::string_view subprotocol = {};     // to be named in the reply, or empty
};

/// Takes a request's body while it arrives. Called on the connection's loop.
class BodyHandler {
 public:
  virtual ~BodyHandler() = default;
  /// The next bytes, valid during the call. False: taken, but no more before
  /// HttpExchange::resume_body().
  virtual bool on_body(std::string_view bytes) = 0;
  /// The body is whole.
  virtual void on_body_end() = 0;
  /// The server ends: nothing more comes of the body, and the reply should end with what there is.
  virtual void on_shutdown() {}
  /// A name for the message of which the body so far has a part, or 0 if it ends with a message.
  /// The connection ends when the rest of one does not come within the time that a request has.
  [[nodiscard]] virtual std::uint64_t unfinished() const { return 0; }
};

/// The reply side of one request. Only on its loop's thread (the last handle may be dropped on any
/// thread). When the peer has gone every call does nothing. No call ends the connection or destroys
/// a callback before the end of the turn, so whoever sends may be what a callback holds. Dropping
/// the last handle before the reply is finished answers 500, or breaks the connection off if the
/// reply had started.
class HttpExchange : public RefCounted {
 public:
  /// Takes the body of a request whose `body_follows` is set, from now on. The connection keeps
  /// `handler` until the body or the reply has ended, or it is lost itself.
  virtual void read_body(std::shared_ptr<BodyHandler> handler) = 0;
  /// The handler takes more.
  virtual void resume_body() = 0;

  /// Header lines, each with its CRLF, for the head of whatever reply follows. Replaces those set
  /// before.
  virtual void set_head_lines(std::string lines) = 0;

  /// The whole reply, sent at once with Content-Length, gzipped when that is configured, worth it
  /// and accepted. `content_type` may be empty when there is no body. Copies what it must.
  virtual void reply(int status, std::string_view content_type, std::string_view body,
                     HeaderFields extra = {}) = 0;
  /// The same; a long body is not copied.
  virtual void reply_with(int status, std::string_view content_type, std::string body,
                          HeaderFields extra = {}) = 0;

  /// Begins a streaming reply: chunked on HTTP/1.1, ended by close on 1.0. The header leaves with
  /// the first bytes of the body, at the latest at the end of this turn.
  virtual void start(int status, std::string_view content_type, HeaderFields extra = {}) = 0;
  /// Appends to the streaming body. Writes of one turn leave in one send() at its end. False when
  /// the output queue is above its high-water mark: the bytes are queued, but the caller should
  /// wait for on_drain.
  virtual bool write(std::string_view body) = 0;
  /// The same with bytes that are shared, not copied.
  virtual bool write(const ChunkBlock& block) = 0;
  /// Sends what is queued now instead of at the turn's end.
  virtual void flush() = 0;
  /// From now on a reply that has not begun when the connection has been silent for
  /// HttpServerOptions::event_start begins as an event stream of status 200, which comments keep
  /// open: a caller, and whoever stands in between, waits longer for those than for a first byte.
  virtual void stream_if_silent() = 0;
  /// Whether start() has been called, or the silence has broken.
  [[nodiscard]] virtual bool is_streaming() const = 0;
  /// Ends a streaming reply.
  virtual void finish() = 0;
  /// Breaks the connection off, so that the peer sees that the reply is not whole.
  virtual void abort() = 0;

  /// Called once each time the queue falls below the low-water mark after write() returned false.
  virtual void on_drain(Executor::Task callback) = 0;
  /// Called once if the connection is lost before the reply is finished. Not called after finish(),
  /// reply() or abort(). Replaces the callback set before; an empty one withdraws it.
  virtual void on_close(Executor::Task callback) = 0;

  /// Once the reply is whole, the connection's next requests come on `loop`, which is one of the
  /// server's: where what they are about belongs to it, nothing has to be handed over for them. A
  /// connection that has more to do when the reply leaves stays where it is.
  virtual void continue_on(const Executor& loop) = 0;

  /// Answers the request by switching to WebSocket (RFC 6455, section 4.2) and finishes the
  /// exchange. Only during on_request, with its request. Null if the request is no valid WebSocket
  /// handshake: then the exchange has been answered with 400 or 426.
  virtual WebSocketSessionPtr upgrade_websocket(const HttpRequest& request,
                                                const WebSocketOptions& options,
                                                std::unique_ptr<WebSocketHandler> handler) = 0;

  /// Whether the peer is there and the reply is not finished.
  [[nodiscard]] virtual bool is_open() const = 0;
  [[nodiscard]] virtual std::size_t queued_bytes() const = 0;
  /// How long the peer has taken nothing although there was something to send; 0 if it keeps up.
  [[nodiscard]] virtual Duration stalled_for() const = 0;
  [[nodiscard]] virtual Executor& executor() = 0;
  /// Counts what is held for the connection as that client's, from now on. Does nothing unless it
  /// is open.
  virtual void charge_to(std::shared_ptr<MemoryShare> client) = 0;
  /// Whether the connection is somebody's: this or an earlier request has said whose.
  [[nodiscard]] virtual bool is_charged() const = 0;
  /// That client's share, for handlers that keep what they are given; null: there is no limit. Only
  /// while it is open.
  [[nodiscard]] virtual std::shared_ptr<MemoryShare> memory() const = 0;
};
using HttpExchangePtr = RefPtr<HttpExchange>;

/// A body that is made ready for its request to be handled. Destroyed with the connection, or after
/// on_request().
class PreparedBody {
 public:
  virtual ~PreparedBody() = default;
  [[nodiscard]] virtual bool is_ready() const = 0;
  [[nodiscard]] virtual std::string_view text() const = 0;
};

/// What a handler has made of a head, for when the body is there.
class HeadVerdict {
 public:
  /// What is held for the body, and from then on for its connection, is the client's. Null: it is
  /// whose it was.
  explicit HeadVerdict(bool admits_body, std::shared_ptr<MemoryShare> client = nullptr)
      : client_(std::move(client)), admits_body_(admits_body) {}
  virtual ~HeadVerdict() = default;
  HeadVerdict(const HeadVerdict&) = delete;
  HeadVerdict& operator=(const HeadVerdict&) = delete;
  [[nodiscard]] bool admits_body() const { return admits_body_; }
  [[nodiscard]] const std::shared_ptr<MemoryShare>& client() const { return client_; }

 private:
  std::shared_ptr<MemoryShare> client_;
  bool admits_body_;
};

/// What answers requests. Requests of one connection come one at a time, in order: the next when
/// the exchange of the one before is finished.
class HttpHandler {
 public:
  virtual ~HttpHandler() = default;
  virtual void on_request(const HttpRequest& request, HttpExchangePtr exchange) = 0;
  /// Whether the body of this request, of which only the head is looked at, is worth its cost.
  /// Asked once before the server waits for a body that is not there whole, decodes one, or has one
  /// prepared. If not, on_request() gets the request with `body_follows` set and refuses it; the
  /// connection ends with the reply, and the body is thrown away. Null: it is, and there is nothing
  /// to remember.
  virtual std::unique_ptr<HeadVerdict> judge(const HttpRequest& /*head*/) { return nullptr; }
  /// Header lines, each with its CRLF, for a refusal of this request that the server makes itself.
  /// The head is whole, but there may be a mistake in it.
  [[nodiscard]] virtual std::string head_lines(const HttpRequest& /*head*/) const { return {}; }
  /// Whether something that takes long, such as parsing it, is to be done with a body of that many
  /// bytes before on_request().
  [[nodiscard]] virtual bool prepares_body(const HttpRequest& /*head*/,
                                           std::size_t /*size*/) const {
    return false;
  }
  /// Begins that. The request has its `verdict`. on_request() finds the result in its request, once
  /// `ready` has been called on a later turn. Never null.
  virtual std::unique_ptr<PreparedBody> prepare(const HttpRequest& /*head*/, std::string /*body*/,
                                                Executor::Task /*ready*/) {
    return nullptr;
  }
  /// Whether on_request() wants this request, of which only the head is there, before its body.
  /// Its connection ends with the reply. Not asked for bodies with a content coding.
  [[nodiscard]] virtual bool streams_body(const HttpRequest& /*head*/) const { return false; }
};

}  // namespace sluice
