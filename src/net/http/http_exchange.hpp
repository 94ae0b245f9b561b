#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "core/bytes.hpp"
#include "core/executor.hpp"
#include "core/ref_ptr.hpp"
#include "core/sharing/client_memory.hpp"
#include "net/http/http_types.hpp"

namespace sluice {

/// Body bytes that are framed once as an HTTP chunk and shared by any number of streaming replies
/// (a reply that is not chunked sends only the bytes inside). Cheap to copy. As thread-safe as
/// Bytes.
class ChunkBlock {
 public:
  ChunkBlock() = default;
  /// Copies `body`, which must not be empty (an empty chunk would end a reply).
  explicit ChunkBlock(std::string_view body);
  /// Adopts bytes that already are one framed chunk, as frame_chunk() makes them.
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

/// Header fields of a reply that caches must not store and proxies must not buffer.
inline constexpr std::array<HeaderField, 2> kUnbufferedFields = {
    {{"Cache-Control", "no-store"}, {"X-Accel-Buffering", "no"}}};

/// Turns `body`, which must not be empty, into one framed HTTP chunk (RFC 9112, section 7.1).
void frame_chunk(std::string& body);

/// Receives what happens on a WebSocket. Called on the connection's loop. Owned by the connection,
/// destroyed after on_close().
class WebSocketHandler {
 public:
  virtual ~WebSocketHandler() = default;
  /// One whole text message (valid UTF-8), valid during the call. Return false to receive no more
  /// before WebSocketSession::resume_input(); this message has been received.
  virtual bool on_message(std::string_view text) = 0;
  /// The same, for a message that the handler may keep.
  virtual bool on_kept_message(std::string text) { return on_message(text); }
  /// A binary message. Return false to close the connection with 1003, as this does unless
  /// overridden.
  virtual bool on_binary(std::string_view /*data*/) { return false; }
  /// The output queue has fallen to its low-water mark after a send_*() returned false.
  virtual void on_drain() {}
  /// The connection is over. Called once. `code` is the peer's close code, or the one that we sent
  /// if the peer sent none, or 1006 if the connection was lost.
  virtual void on_close(int /*code*/) {}
};

/// The sending side of a server's WebSocket. Use only on its loop's thread. After the connection
/// has closed, every call does nothing. No call destroys the handler before the end of the turn.
/// Messages of one turn are sent together at its end.
class WebSocketSession : public RefCounted {
 public:
  /// Queues one text message. Returns false if the output queue is above its high-water mark: the
  /// message is queued, but the caller should wait for on_drain().
  virtual bool send_text(std::string_view text) = 0;
  /// Queues bytes that already are whole frames (append_websocket_frame()). They are shared, not
  /// copied. Also returns false if the connection is over and on_close() has not been called yet.
  virtual bool send_frames(const Bytes& frames) = 0;
  /// The same, copied.
  virtual bool send_frames(std::string_view frames) = 0;
  /// The same, but sends them now, after what is queued. Copies only bytes that the socket does not
  /// accept.
  virtual bool push_frames(std::string_view frames) = 0;
  virtual void ping(std::string_view payload = {}) = 0;
  /// The handler can take more messages.
  virtual void resume_input() = 0;
  /// Starts the closing handshake. `code` must be one that may be sent (RFC 6455, section 7.4).
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

/// Receives a request's body while it arrives. Called on the connection's loop.
class BodyHandler {
 public:
  virtual ~BodyHandler() = default;
  /// The next bytes, valid during the call. Return false to receive no more before
  /// HttpExchange::resume_body(); these bytes have been received.
  virtual bool on_body(std::string_view bytes) = 0;
  /// The body is complete.
  virtual void on_body_end() = 0;
  /// The server shuts down: nothing more of the body comes, and the reply should end with what
  /// there is.
  virtual void on_shutdown() {}
  /// Identifies the message of which the body so far has only a part; 0 if there is none. If the
  /// rest of it does not arrive within the request timeout, the connection ends.
  [[nodiscard]] virtual std::uint64_t unfinished() const { return 0; }
};

/// The reply side of one request. Use only on its loop's thread, but the last handle may be dropped
/// on any thread. After the peer has gone, every call does nothing. No call ends the connection or
/// destroys a callback before the end of the turn, so the caller may itself be held by a callback.
/// If the last handle is dropped before the reply is finished, the request is answered with 500, or
/// the connection is ended if the reply had started.
class HttpExchange : public RefCounted {
 public:
  /// From now on, passes the body of a request with `body_follows` to `handler`. The connection
  /// keeps `handler` until the body, the reply or the connection has ended.
  virtual void read_body(std::shared_ptr<BodyHandler> handler) = 0;
  /// The handler can take more.
  virtual void resume_body() = 0;

  /// Sets header lines, each with its CRLF, for the head of the reply. Replaces those set before.
  virtual void set_head_lines(std::string lines) = 0;

  /// Sends a whole reply, with Content-Length unless a long body is gzipped. Gzips the body if that
  /// is configured, worth the cost and accepted, and `extra` names no coding. `content_type` may be
  /// empty if there is no body. Sends no body with a status that has none, such as 204. Copies what
  /// it must keep.
  virtual void reply(int status, std::string_view content_type, std::string_view body,
                     HeaderFields extra = {}) = 0;
  /// The same; a long body is not copied.
  virtual void reply_with(int status, std::string_view content_type, std::string body,
                          HeaderFields extra = {}) = 0;

  /// Begins a streaming reply: chunked on HTTP/1.1, ended by closing the connection on 1.0. The
  /// head is sent with the first bytes of the body, at the latest at the end of this turn.
  virtual void start(int status, std::string_view content_type, HeaderFields extra = {}) = 0;
  /// Appends to the streaming body. Writes of one turn are sent together at its end. Returns false
  /// if the output queue is above its high-water mark: the bytes are queued, but the caller should
  /// wait for on_drain(). Also returns false if the connection is over and on_close() has not been
  /// called yet.
  virtual bool write(std::string_view body) = 0;
  /// The same with bytes that are shared, not copied.
  virtual bool write(const ChunkBlock& block) = 0;
  /// The same as the first write(). May leave other memory and content in `body`, so that a long
  /// one need not be copied.
  virtual bool take(std::string& body) = 0;
  /// Sends what is queued now instead of at the turn's end.
  virtual void flush() = 0;
  /// If the reply has not begun when the connection has been silent for
  /// HttpServerOptions::event_start, begins it as an event stream with status 200, and keeps it
  /// open with comments. Clients and proxies wait longer for a stream that has begun than for a
  /// first byte.
  virtual void stream_if_silent() = 0;
  /// Whether the reply streams: by start(), or by stream_if_silent() after silence.
  [[nodiscard]] virtual bool is_streaming() const = 0;
  /// Ends a streaming reply.
  virtual void finish() = 0;
  /// Ends the connection, so that the peer sees that the reply is not complete.
  virtual void abort() = 0;

  /// Sets a callback for each time the output queue falls to its low-water mark after write()
  /// returned false.
  virtual void on_drain(Executor::Task callback) = 0;
  /// Sets a callback that is called once if the connection is lost before the reply is finished,
  /// but not after finish(), reply() or abort(). Called at once if the exchange is already closed.
  /// Replaces the callback set before; an empty one removes it.
  virtual void on_close(Executor::Task callback) = 0;

  /// When the reply is finished, moves the connection to `loop`, one of the server's loops, for its
  /// next requests. If what they refer to belongs to that loop, they need not be passed to another.
  /// A connection that still has something to do when the reply has been sent is not moved.
  virtual void continue_on(const Executor& loop) = 0;

  /// Answers the request by switching to WebSocket (RFC 6455, section 4.2) and finishes the
  /// exchange. Call only during on_request(), with its request. Returns null if the request is not
  /// a valid WebSocket handshake; it has then been answered with 400 or 426.
  virtual WebSocketSessionPtr upgrade_websocket(const HttpRequest& request,
                                                const WebSocketOptions& options,
                                                std::unique_ptr<WebSocketHandler> handler) = 0;

  /// Whether the peer is connected and the reply is not finished.
  [[nodiscard]] virtual bool is_open() const = 0;
  [[nodiscard]] virtual std::size_t queued_bytes() const = 0;
  /// How long the peer has taken nothing although there was something to send; 0 if it keeps up.
  [[nodiscard]] virtual Duration stalled_for() const = 0;
  [[nodiscard]] virtual Executor& executor() = 0;
  /// Charges the memory of the connection to that client from now on. Does nothing unless the
  /// exchange is open.
  virtual void charge_to(std::shared_ptr<MemoryShare> client) = 0;
  /// Whether the connection is charged to a client, by this request or an earlier one.
  [[nodiscard]] virtual bool is_charged() const = 0;
  /// The share that the connection's memory is counted in, for handlers that keep what they
  /// receive; null: there is no limit. Call only while the exchange is open.
  [[nodiscard]] virtual std::shared_ptr<MemoryShare> memory() const = 0;
};
using HttpExchangePtr = RefPtr<HttpExchange>;

/// A body that is processed before its request is handled. Destroyed with the connection, or after
/// on_request().
class PreparedBody {
 public:
  virtual ~PreparedBody() = default;
  [[nodiscard]] virtual bool is_ready() const = 0;
  [[nodiscard]] virtual std::string_view text() const = 0;
};

/// What a handler has decided from a request's head, kept until the body is complete.
class HeadVerdict {
 public:
  /// The memory of the body, and from then on of its connection, is charged to `client`. Null: the
  /// charge does not change.
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

/// Answers requests. Requests of one connection come one at a time, in order. The next comes when
/// the exchange of the previous one is finished.
class HttpHandler {
 public:
  virtual ~HttpHandler() = default;
  virtual void on_request(const HttpRequest& request, HttpExchangePtr exchange) = 0;
  /// Decides from the head whether the body of this request is worth its cost. Called once, before
  /// the server waits for the rest of a body, decodes one, or has one prepared. If it is not,
  /// on_request() gets the request with `body_follows` set and must refuse it; the connection ends
  /// with the reply, and the body is discarded. Null: it is, and there is nothing to remember. Also
  /// called before a request of a connection that several clients share waits for the turn of its
  /// client.
  virtual std::unique_ptr<HeadVerdict> judge(const HttpRequest& /*head*/) { return nullptr; }
  /// Header lines, each with its CRLF, for a refusal of this request by the server itself. The head
  /// is complete, but may be invalid.
  [[nodiscard]] virtual std::string head_lines(const HttpRequest& /*head*/) const { return {}; }
  /// Whether a body of `size` bytes needs processing that takes long, such as parsing, before
  /// on_request().
  [[nodiscard]] virtual bool prepares_body(const HttpRequest& /*head*/,
                                           std::size_t /*size*/) const {
    return false;
  }
  /// Begins that processing. The request has its `verdict`. When it is done, calls `ready` in a
  /// later turn; on_request() then finds the result in its request. Never returns null.
  virtual std::unique_ptr<PreparedBody> prepare(const HttpRequest& /*head*/, std::string /*body*/,
                                                Executor::Task /*ready*/) {
    return nullptr;
  }
  /// Whether on_request() is to get this request as soon as its head has arrived, before the body.
  /// The connection then ends with the reply. Not called for bodies with a content coding.
  [[nodiscard]] virtual bool streams_body(const HttpRequest& /*head*/) const { return false; }
};

}  // namespace sluice
