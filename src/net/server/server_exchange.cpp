#include "net/server/server_exchange.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "core/log/log.hpp"
#include "core/log/log_limit.hpp"
#include "core/text/json_escape.hpp"
#include "core/text/text.hpp"
#include "net/http/compression.hpp"
#include "net/http/status_codes.hpp"
#include "net/server/server_websocket.hpp"
#include "net/websocket/websocket.hpp"

namespace sluice {
namespace {

/// Bodies of at least this size are handed over instead of copied.
constexpr std::size_t kTakenBody = 4096;

void append_hex(std::string& out, std::size_t value) {
  std::array<char, 16> digits{};
  const auto [end, error] = std::to_chars(digits.data(), digits.data() + digits.size(), value, 16);
  out.append(digits.data(), end);
}

void append_chunk_head(std::string& out, std::size_t size) {
  append_hex(out, size);
  out.append("\r\n");
}

/// Images and archives are compressed already.
bool is_coded_well(std::string_view content_type) {
  const std::string_view type = content_type.substr(0, content_type.find(';'));
  return type.starts_with("text/") || type.ends_with("json") || type.ends_with("xml") ||
         type.ends_with("javascript");
}

/// Whether the content may be coded: it has no coding yet, and is not a part of something.
bool may_be_coded(int status, std::string_view content_type, HeaderFields extra) {
  return status != kPartialContent && is_coded_well(content_type) &&
         std::ranges::none_of(extra, [](const HeaderField& field) {
           return equals_ignoring_case(field.name, "content-encoding");
         });
}

}  // namespace

ChunkBlock::ChunkBlock(std::string_view body) {
  std::string framed;
  framed.reserve(body.size() + 16);
  append_chunk_head(framed, body.size());
  body_at_ = framed.size();
  framed.append(body).append("\r\n");
  framed_ = Bytes(std::move(framed));
}

void frame_chunk(std::string& body) {
  std::string head;
  append_chunk_head(head, body.size());
  body.insert(0, head);
  body.append("\r\n");
}

void append_reply_head(std::string& out, const ReplyHead& head) {
  if (head.status == 200) {
    out.append("HTTP/1.1 200 OK\r\n");
  } else {
    out.append("HTTP/1.1 ");
    append_number(out, head.status);
    out.append(" ").append(reason_phrase(head.status)).append("\r\n");
  }
  if (!head.content_type.empty()) {
    out.append("Content-Type: ").append(head.content_type).append("\r\n");
  }
  if (head.content_length == ReplyHead::kChunked) {
    out.append("Transfer-Encoding: chunked\r\n");
  } else if (head.content_length != ReplyHead::kUntilClose && head.status != kNoContent &&
             head.status != kNotModified) {
    out.append("Content-Length: ");
    append_number(out, head.content_length);
    out.append("\r\n");
  }
  if (head.gzip) out.append("Content-Encoding: gzip\r\nVary: Accept-Encoding\r\n");
  if (!head.keep_alive) {
    out.append("Connection: close\r\n");
  } else if (head.minor_version == 0) {
    out.append("Connection: keep-alive\r\n");
  }
  out.append(head.date);
  for (const HeaderField& field : head.extra) {
    out.append(field.name).append(": ").append(field.value).append("\r\n");
  }
  out.append(head.lines).append("\r\n");
}

void ServerExchange::open(Connection& connection, ServerHttp& http, const HttpRequest& request,
                          bool keep_alive) {
  connection_ = RefPtr<Connection>(&connection);
  http_ = &http;
  executor_ = &connection.worker().loop;
  state_ = State::unanswered;
  breaks_silence_ = false;
  keep_alive_ = keep_alive;
  is_head_ = request.method == Method::head;
  minor_version_ = static_cast<std::uint8_t>(request.minor_version);
  std::string all;
  const std::string_view coding = request.list(KnownHeader::accept_encoding, all);
  accepts_gzip_ =
      coding.data() != nullptr && http.worker().options.gzip_threshold > 0 && accepts_gzip(coding);
}

void ServerExchange::read_body(std::shared_ptr<BodyHandler> handler) {
  if (state_ != State::closed) {
    http_->read_body(std::move(handler), state_ == State::unanswered);
  }
}

void ServerExchange::resume_body() {
  if (state_ != State::closed) http_->resume_body();
}

void ServerExchange::reply(int status, std::string_view content_type, std::string_view body,
                           std::string* owned, HeaderFields extra) {
  if (state_ != State::unanswered) return;
  Connection& connection = *connection_;
  if (!connection.may_send()) return done();
  ServerCounters& counters = connection.worker().counters;
  ServerCounters::add(counters.responses[status / 100 - 1]);
  if (!may_have_content(status)) {
    content_type = {};
    body = {};
    owned = nullptr;
  }
  std::string compressed;
  const bool is_long = body.size() > kCompressedAtOnce;
  bool gzipped = accepts_gzip_ && body.size() >= http_->worker().options.gzip_threshold &&
                 may_be_coded(status, content_type, extra);
  if (gzipped && is_long) {
    gzipped = minor_version_ > 0 && !is_head_ && http_->compress_later(body);
  } else if (gzipped) {
    gzip(body, compressed);
    connection.worked(body.size() * kCompressionCost);
    body = compressed;
    owned = &compressed;
  }
  const bool is_later = gzipped && is_long;
  keep_alive_ = keep_alive_ && http_->worker().keeps_connections;
  std::string& out = connection.output();
  try {
    append_reply_head(out, {.status = status,
                            .content_type = content_type,
                            .content_length = is_later ? ReplyHead::kChunked : body.size(),
                            .keep_alive = keep_alive_,
                            .minor_version = minor_version_,
                            .gzip = gzipped,
                            .date = http_->worker().date(),
                            .extra = extra,
                            .lines = head_lines()});
    if (is_head_ || is_later) {
      // Only the head is sent here.
    } else if (owned != nullptr) {
      connection.take(std::move(*owned));
    } else {
      out.append(body);
    }
  } catch (...) {
    // The caller may send another reply.
    http_->forget_reply();
    throw;
  }
  connection.added();
  done();
}

void ServerExchange::start(int status, std::string_view content_type, HeaderFields extra) {
  if (state_ != State::unanswered || !connection_->may_send()) return;
  Connection& connection = *connection_;
  if (minor_version_ == 0 || !http_->worker().keeps_connections) keep_alive_ = false;
  append_reply_head(
      connection.output(),
      {.status = status,
       .content_type = content_type,
       .content_length = minor_version_ == 0 ? ReplyHead::kUntilClose : ReplyHead::kChunked,
       .keep_alive = keep_alive_,
       .minor_version = minor_version_,
       .gzip = false,
       .date = http_->worker().date(),
       .extra = extra,
       .lines = head_lines()});
  connection.added();
  ServerCounters& counters = connection.worker().counters;
  ServerCounters::add(counters.responses[status / 100 - 1]);
  ServerCounters::add(counters.streaming_replies);
  state_ = State::streaming;
  is_event_stream_ = content_type == "text/event-stream";
}

bool ServerExchange::write(std::string_view body) {
  if (state_ != State::streaming || body.empty() || is_head_) return true;
  if (!connection_->may_send()) return !connection_->is_over();
  std::string& out = connection_->output();
  if (minor_version_ == 0) {
    out.append(body);
  } else {
    append_chunk_head(out, body.size());
    out.append(body).append("\r\n");
  }
  return connection_->added();
}

bool ServerExchange::write(const ChunkBlock& block) {
  if (state_ != State::streaming || is_head_) return true;
  if (!connection_->may_send()) return !connection_->is_over();
  if (minor_version_ == 0) {
    connection_->queue(block.framed(), block.body_offset(), block.body().size());
  } else {
    connection_->queue(block.framed(), 0, block.framed().size());
  }
  return connection_->added();
}

bool ServerExchange::take(std::string& body) {
  if (body.size() < kTakenBody) return write(std::string_view(body));
  if (state_ != State::streaming || is_head_) return true;
  if (!connection_->may_send()) return !connection_->is_over();
  if (minor_version_ != 0) frame_chunk(body);
  connection_->output();
  connection_->take(std::move(body));
  return connection_->added();
}

void ServerExchange::flush() {
  if (state_ != State::closed) connection_->flush();
}

void ServerExchange::finish() {
  if (state_ != State::streaming) return;
  // Sent even if the queue is full, because it belongs to what was written last.
  if (minor_version_ != 0 && !is_head_ && !connection_->is_over()) {
    connection_->output().append("0\r\n\r\n");
    connection_->added();
  }
  done();
}

void ServerExchange::abort() {
  if (state_ == State::closed) return;
  connection_->give_up();
  done();
}

void ServerExchange::on_drain(Executor::Task callback) {
  set(drain_callback_, state_ != State::closed ? std::move(callback) : Executor::Task());
}

void ServerExchange::on_close(Executor::Task callback) {
  if (state_ != State::closed) {
    set(close_callback_, std::move(callback));
  } else if (callback) {
    callback();
  }
}

/// The caller may be held by the old callback, so that is destroyed only at the end of the turn.
void ServerExchange::set(Executor::Task& callback, Executor::Task next) {
  if (callback) connection_->worker().release_later(std::move(callback));
  callback = std::move(next);
}

void ServerExchange::continue_on(const Executor& loop) {
  if (state_ != State::closed) next_worker_ = connection_->worker().number_of(loop);
}

/// The exchange is finished: the connection continues with its next request.
void ServerExchange::done() {
  if (state_ == State::streaming) {
    ServerCounters::subtract(connection_->worker().counters.streaming_replies);
  }
  set(close_callback_, {});
  set(drain_callback_, {});
  state_ = State::closed;
  const RefPtr<Connection> connection = std::exchange(connection_, nullptr);
  http_->request_finished(keep_alive_);
  if (next_worker_ != ConnectionWorker::kNone) connection->move_to(next_worker_);
}

/// Holds a reference to an exchange that still has handles, even if a callback throws.
class ServerExchange::Keep {
 public:
  explicit Keep(ServerExchange& exchange)
      : exchange_(exchange.try_add_reference() ? &exchange : nullptr) {}
  ~Keep() {
    if (exchange_ != nullptr) exchange_->release_reference();
  }
  Keep(const Keep&) = delete;
  Keep& operator=(const Keep&) = delete;
  explicit operator bool() const { return exchange_ != nullptr; }

 private:
  ServerExchange* exchange_;
};

void ServerExchange::on_connection_lost() {
  if (state_ == State::closed) return;
  if (state_ == State::streaming) {
    ServerCounters::subtract(connection_->worker().counters.streaming_replies);
  }
  state_ = State::closed;
  // The callbacks may hold the last handles of this exchange and of the connection. If there is no
  // handle left, another thread has just dropped the last one, and forgotten() will run on this
  // loop.
  const Keep keep(*this);
  const RefPtr<Connection> connection = std::exchange(connection_, nullptr);
  const Executor::Task drain = std::exchange(drain_callback_, {});
  if (Executor::Task close = std::exchange(close_callback_, {})) close();
}

void ServerExchange::drained() {
  const Keep keep(*this);
  if (!keep || !drain_callback_ || state_ != State::streaming) return;
  Executor::Task callback = std::exchange(drain_callback_, {});
  callback();
  if (!drain_callback_ && state_ == State::streaming) drain_callback_ = std::move(callback);
}

bool ServerExchange::probe() {
  if (state_ == State::unanswered && minor_version_ > 0 && connection_->may_send()) {
    // A client accepts any number of these before the reply (RFC 9110, section 15.2).
    connection_->output().append("HTTP/1.1 100 Continue\r\n\r\n");
    connection_->send_added();
    return true;
  }
  keep_alive();
  return state_ == State::streaming && is_event_stream_;
}

void ServerExchange::keep_alive() {
  if (state_ != State::streaming || !is_event_stream_) return;
  // Events are written whole, so a comment (WHATWG HTML, 9.2.6) cannot split one. It is sent now,
  // so that the next silent connection can use the same buffer.
  write(std::string_view(": keep-alive\n\n"));
  flush();
}

void ServerExchange::break_silence() {
  if (!breaks_silence_ || state_ != State::unanswered) return;
  start(200, "text/event-stream", std::span<const HeaderField>(kUnbufferedFields));
  keep_alive();
}

void ServerExchange::on_unreferenced() {
  if (executor_->on_loop_thread()) {
    forgotten();
  } else {
    // Continues on its loop, where it can be answered.
    executor_->post([self = std::unique_ptr<ServerExchange, Forgotten>(this)] {});
  }
}

/// No handle is left.
void ServerExchange::forgotten() noexcept {
  const std::unique_ptr<ServerExchange> self(this);
  if (state_ == State::closed) return;
  add_reference();
  const RefPtr<Connection> connection = connection_;
  try {
    if (state_ == State::unanswered) {
      // The handler has dropped it without a reply.
      reply(500, "text/plain; charset=utf-8", "The server gave no answer\n", {});
    } else {
      abort();
    }
  } catch (...) {
    static LogLimit limit;
    log_exception(limit, "A request could not be answered");
    connection->give_up();
    http_->forget_exchange();
    on_connection_lost();
  }
}

std::size_t ServerExchange::queued_bytes() const {
  return state_ == State::closed ? 0 : connection_->queued_bytes();
}

Duration ServerExchange::stalled_for() const {
  return state_ == State::closed ? Duration{} : connection_->stalled_for();
}

void ServerExchange::reject_upgrade(int status, std::string_view why, HeaderFields extra) {
  reply(status, "text/plain; charset=utf-8", why, extra);
}

WebSocketSessionPtr ServerExchange::upgrade_websocket(const HttpRequest& request,
                                                      const WebSocketOptions& options,
                                                      std::unique_ptr<WebSocketHandler> handler) {
  if (state_ != State::unanswered || !connection_->may_send()) return nullptr;
  if (!request.lists(KnownHeader::upgrade, "websocket") ||
      !request.lists(KnownHeader::connection, "upgrade")) {
    reject_upgrade(426, "Connect with WebSocket here\n",
                   {{"Upgrade", "websocket"}, {"Connection", "Upgrade"}});
    return nullptr;
  }
  const std::string_view key = request.header(KnownHeader::sec_websocket_key);
  if (request.method != Method::get || request.minor_version < 1 || !is_websocket_key(key) ||
      request.repeated(KnownHeader::sec_websocket_key)) {
    reject_upgrade(400,
                   "Not a WebSocket handshake (RFC 6455, section 4.2.1): it is a GET over HTTP/1.1 "
                   "whose one Sec-WebSocket-Key is 16 bytes in Base64\n",
                   {});
    return nullptr;
  }
  if (request.header(KnownHeader::sec_websocket_version) != "13" ||
      request.repeated(KnownHeader::sec_websocket_version)) {
    reject_upgrade(
        426, "Only WebSocket version 13 is spoken here\n",
        {{"Upgrade", "websocket"}, {"Connection", "Upgrade"}, {"Sec-WebSocket-Version", "13"}});
    return nullptr;
  }
  std::optional<std::string> deflate;
  if (options.deflate) {
    std::string all;
    deflate = negotiate_deflate(request.list(KnownHeader::sec_websocket_extensions, all));
  }
  const RefPtr<ServerWebSocket> session(new ServerWebSocket(
      *connection_, http_->worker().options, options, deflate.has_value(), std::move(handler)));
  std::string& out = connection_->output();
  out.append("HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n");
  out.append("Sec-WebSocket-Accept: ").append(websocket_accept_key(key)).append("\r\n");
  if (deflate) out.append("Sec-WebSocket-Extensions: ").append(*deflate).append("\r\n");
  if (!options.subprotocol.empty()) {
    out.append("Sec-WebSocket-Protocol: ").append(options.subprotocol).append("\r\n");
  }
  out.append("\r\n");
  connection_->added();
  ServerCounters::add(connection_->worker().counters.responses[0]);
  http_->become_websocket(session);
  connection_ = nullptr;
  state_ = State::closed;
  return session;
}

}  // namespace sluice
