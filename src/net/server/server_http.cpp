#include "net/server/server_http.hpp"

#include <algorithm>
#include <utility>

#include "core/log/log.hpp"
#include "core/log/log_limit.hpp"
#include "net/server/server_exchange.hpp"
#include "net/server/server_websocket.hpp"

namespace sluice {
namespace {

/// Bytes of later requests taken in while one is unanswered; reading then waits.
constexpr std::size_t kPipelineBytes = std::size_t{64} << 10U;
/// A longer body is collected in a buffer of its own, and passed on without a copy.
constexpr std::size_t kCollectedInInput = BufferPool::kScratchSize;
/// The limit of a chunk in a body that is not kept: any size that can be counted.
constexpr std::size_t kAnyChunk = std::size_t{1} << 48U;
/// What judging a request before its turn costs, in units of work.
constexpr std::size_t kJudgingCost = kMessageCost / 2;
constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";

}  // namespace

ServerHttp::ServerHttp(Connection& connection, HttpWorker& worker)
    : connection_(connection),
      worker_(&worker),
      since_(worker.coarse_now()),
      is_shared_(worker.options.stands_for_many &&
                 worker.options.stands_for_many(connection.peer())) {
  if (is_shared_) connection_.await_client();
}

void ServerHttp::begin(Connection& connection, HttpWorker& worker) {
  connection.start(ConnectionProtocolPtr(new ServerHttp(connection, worker)));
}

void ServerHttp::reject(Connection& connection, HttpWorker& worker, std::string_view reply) {
  begin(connection, worker);
  if (connection.is_over()) return;
  if (connection.is_tls()) {
    connection.give_up();
    return;
  }
  connection.output().append(reply);
  connection.added();
  connection.close_after_flush();
}

// --- requests ----------------------------------------------------------------------------------

bool ServerHttp::wants_input(const InputBuffer& input) const {
  // While a peer leaves answers unread, its next requests wait.
  bool must_wait = connection_.is_output_full();
  if (body_stream_ != nullptr) {
    if (body_stream_->paused) return false;
  } else {
    must_wait = must_wait || exchange_ != nullptr || preparation() != nullptr || long_reply_;
  }
  return !must_wait || input.size() < kPipelineBytes;
}

bool ServerHttp::on_input(InputBuffer& input) {
  if (long_reply_ != nullptr) return send_some();
  if (body_stream_ != nullptr) return take_body_piece(input);
  return exchange_ == nullptr && take_request(input);
}

/// Whether to parse: the input holds the end of a head, or is longer than a target may be. A head
/// that arrived whole is not searched for its end.
bool ServerHttp::is_head_there(const InputBuffer& input) {
  static constexpr std::string_view kEnd = "\r\n\r\n";
  if (head_scanned_ == 0 || input_needed_ != 0 || collected()) return true;
  const std::size_t from = head_scanned_ < kEnd.size() ? 0 : head_scanned_ - kEnd.size() + 1;
  if (input.view().find(kEnd, from) != std::string_view::npos) return true;
  head_scanned_ = static_cast<std::uint32_t>(input.size());
  return head_scanned_ > worker_->options.max_uri;
}

/// Handles the request at the front of the input if it is complete. Returns true if there may be
/// more to do at once.
bool ServerHttp::take_request(InputBuffer& input) {
  if (preparation() != nullptr && !preparation()->body->is_ready()) return false;
  if (!request_begun_) {
    // Some clients send an empty line after a body (RFC 9112, section 2.2).
    while (input.view().starts_with("\r\n")) input.consume(2);
    if (input.empty() || input.view() == "\r") return false;
    request_begun_ = true;
    since_ = worker_->coarse_now();
    continued_ = false;
    head_scanned_ = 0;
  }
  is_head_ = input.view().starts_with("HEAD ");
  if (input.size() < input_needed_ || !is_head_there(input)) return false;

  HttpRequestHead head;
  bool found = false;
  const std::string_view text = collected() ? input.view().substr(0, head_size_) : input.view();
  const Result<void> parsed = worker_->parser.parse(text, found, head);
  head.request.peer = connection_.peer();
  head.request.tls = connection_.is_tls();
  if (!parsed) {
    if (head.size > 0) unhandled().head_lines = worker_->handler.head_lines(head.request);
    refuse(parsed.error());
    return false;
  }
  if (!found) {
    head_scanned_ = static_cast<std::uint32_t>(input.size());
    return false;
  }

  std::string all;
  const std::string_view coding = head.request.list(KnownHeader::content_encoding, all);
  const bool is_new = !collected() && !preparation() && input_needed_ == 0;
  // Others wait, perhaps also for the same client, and must not be overtaken. So the request begins
  // when it is the turn of its client.
  if (is_new && connection_.awaits_client() && worker_->has_waiting()) {
    // This is still the turn of the client of the request before, if that has just been handled.
    const MemoryShare* const before =
        connection_.is_charged() ? connection_.memory().get() : nullptr;
    judge(head.request);
    if (!connection_.awaits_client() && connection_.memory().get() != before) {
      connection_.worked(kJudgingCost);
      request_begun_ = false;
      connection_.wait_for_turn();
      return true;
    }
  }
  if (is_new && head.framing != BodyFraming::none) {
    if (!collects_body(head, input)) {
      begin_body_stream(head, input);
      return true;
    }
    if (const Result<void> known = ContentDecoder::check(coding); !known) {
      refuse(known.error());
      return false;
    }
  }
  std::size_t total = head.size;
  std::string_view body;
  if (preparation() != nullptr) {
    total += preparation()->size;
    body = preparation()->body->text();
    head.request.prepared = preparation()->body.get();
  } else if (head.framing != BodyFraming::none) {
    if (!take_body(head, input, body, total)) return false;
    if (coding.data() != nullptr && !body.empty() && !decode_body(coding, body)) {
      return coded() != nullptr;
    }
    head.request.verdict = unhandled_ == nullptr ? nullptr : unhandled_->verdict.get();
    if (prepare(head, input, body, total)) return false;
  }
  input_needed_ = 0;
  request_begun_ = false;
  connection_.worked(kMessageCost + (coded() != nullptr ? body.size() : 0));
  dispatch(head, body);
  unhandled_ = nullptr;
  input.consume(total);
  return true;
}

/// Finds the body of the request with `head`. Returns false if it is not complete yet, or was
/// refused. Sets `total` to the request's size in the input.
bool ServerHttp::take_body(const HttpRequestHead& head, InputBuffer& input, std::string_view& body,
                           std::size_t& total) {
  bool whole = false;
  const bool has_length = head.framing == BodyFraming::length;
  if (has_length && !collected() && head.content_length <= kCollectedInInput) {
    total = head.size + head.content_length;
    input_needed_ = total;
    whole = input.size() >= total;
    if (whole) body = input.view().substr(head.size, head.content_length);
  } else {
    if (!collected()) {
      unhandled().collected =
          std::make_unique<CollectedBody>(has_length ? BodyReader::of_length(head.content_length)
                                                     : BodyReader(worker_->options.max_body));
      head_size_ = static_cast<std::uint32_t>(head.size);
    }
    if (!collected()->reader.done()) {
      const Result<std::size_t> used = collected()->reader.feed(input.view().substr(head.size));
      if (!used) {
        refuse(used.error());
        return false;
      }
      collected()->used = *used;
      const std::size_t held = collected()->reader.body().capacity();
      if (!collected()->hold.hold(connection_.memory(), held)) {
        refuse_for_memory();
        return false;
      }
    }
    whole = collected()->reader.done();
    if (whole) {
      total = head.size + collected()->used;
      body = collected()->reader.body();
    } else {
      // The head stays in the input, for the handler.
      input.truncate(head.size);
    }
  }
  if (whole) return true;
  if (head.expects_continue && !std::exchange(continued_, true)) {
    connection_.output().append(kContinue);
    connection_.send_added();
  }
  return false;
}

/// Decodes a part of the content coding of `body`. When all is decoded, sets `body` to the result
/// and returns true. Returns false before that, or if the request was refused.
bool ServerHttp::decode_body(std::string_view coding, std::string_view& body) {
  if (coded() == nullptr) {
    unhandled().coded = std::make_unique<CodedBody>(worker_->options.max_body);
    if (const Result<void> known = coded()->decoder.begin(coding); !known) {
      refuse(known.error());
      return false;
    }
  }
  const std::size_t before = coded()->decoder.work();
  const Result<bool> done = coded()->decoder.step(body, kExpandedAtOnce);
  connection_.worked((coded()->decoder.work() - before) / kExpandedPerCost);
  if (!done) {
    refuse(done.error());
    return false;
  }
  if (!coded()->hold.hold(connection_.memory(), coded()->decoder.held_bytes())) {
    refuse_for_memory();
    return false;
  }
  if (!*done) return false;
  coded()->text = coded()->decoder.take();
  body = coded()->text;
  return true;
}

/// Lets the handler prepare the body. Returns false if there is nothing to prepare.
bool ServerHttp::prepare(const HttpRequestHead& head, InputBuffer& input, std::string_view body,
                         std::size_t total) {
  if (!worker_->handler.prepares_body(head.request, body.size())) return false;
  std::string text;
  if (coded() != nullptr) {
    text = std::move(coded()->text);
  } else if (collected() != nullptr) {
    text = collected()->reader.take_body();
  } else {
    text = body;
  }
  // From now on, whoever keeps the text counts its memory.
  unhandled().collected = nullptr;
  unhandled().coded = nullptr;
  unhandled().preparation = std::make_unique<Preparation>();
  preparation()->body = worker_->handler.prepare(head.request, std::move(text),
                                                 [this] { connection_.resume_later(); });
  input_needed_ = 0;
  head_scanned_ = 0;
  if (input.size() == total) {
    // The head stays in the input, for the handler.
    input.truncate(head.size);
  } else {
    preparation()->size = total - head.size;
  }
  return true;
}

void ServerHttp::judge(const HttpRequest& head) {
  unhandled().head_lines = worker_->handler.head_lines(head);
  std::unique_ptr<HeadVerdict> verdict = worker_->handler.judge(head);
  if (verdict != nullptr && verdict->client() != nullptr) connection_.charge_to(verdict->client());
  unhandled().verdict = std::move(verdict);
}

/// Whether the handler gets the request with its whole body. Otherwise it gets only the head, to
/// read the body while it arrives or to refuse the request.
bool ServerHttp::collects_body(const HttpRequestHead& head, const InputBuffer& input) {
  HttpHandler& handler = worker_->handler;
  const bool is_coded = head.request.has(KnownHeader::content_encoding);
  const bool is_at_hand = head.framing == BodyFraming::length && !is_coded &&
                          input.size() >= head.size + head.content_length &&
                          !handler.prepares_body(head.request, head.content_length);
  if (!is_at_hand) {
    if (unhandled().verdict == nullptr) judge(head.request);
    const HeadVerdict* const verdict = unhandled().verdict.get();
    if (verdict != nullptr && !verdict->admits_body()) return false;
  }
  return is_coded || !handler.streams_body(head.request);
}

/// Passes the request to the handler before its body.
void ServerHttp::begin_body_stream(HttpRequestHead& head, InputBuffer& input) {
  body_stream_ = std::make_unique<BodyStream>();
  if (head.framing == BodyFraming::chunked) {
    body_stream_->chunked.emplace(kAnyChunk);
  } else {
    body_stream_->remaining = head.content_length;
  }
  body_stream_->expects_continue = head.expects_continue;
  const std::size_t size = head.size;
  request_begun_ = false;
  // The reply may be finished before the body has arrived.
  head.keep_alive = false;
  head.request.body_follows = true;
  connection_.worked(kMessageCost);
  dispatch(head, {});
  input.consume(size);
}

/// Passes on what has arrived of a body. Returns false if nothing more can be done with the input
/// now.
bool ServerHttp::take_body_piece(InputBuffer& input) {
  if (body_stream_->paused) return false;
  std::size_t used = 0;
  std::string unchunked;
  std::string_view piece;
  bool is_last = false;
  if (body_stream_->chunked) {
    const Result<std::size_t> fed = body_stream_->chunked->feed(input.view());
    if (!fed) {
      // The reply may have begun, so the error cannot be answered.
      connection_.give_up();
      return false;
    }
    used = *fed;
    unchunked = body_stream_->chunked->take_body();
    piece = unchunked;
    is_last = body_stream_->chunked->done();
  } else {
    used = std::min(body_stream_->remaining, input.size());
    piece = input.view().substr(0, used);
    body_stream_->remaining -= used;
    is_last = body_stream_->remaining == 0;
  }
  const std::shared_ptr<BodyHandler> handler = body_stream_->handler;
  const bool more = piece.empty() || handler->on_body(piece);
  if (!connection_.is_open() || body_stream_ == nullptr) return false;
  input.consume(used);
  body_stream_->paused = !more;
  if (const std::uint64_t now = handler->unfinished(); now != body_stream_->unfinished) {
    body_stream_->unfinished = now;
    body_stream_->unfinished_at = worker_->coarse_now();
  }
  if (is_last) {
    body_stream_ = nullptr;
    handler->on_body_end();
  }
  return true;
}

void ServerHttp::dispatch(HttpRequestHead& head, std::string_view body) {
  ServerCounters::add(worker_->counters.requests_total);
  HttpRequest& request = head.request;
  request.body = body;
  std::unique_ptr<HeadVerdict> verdict;
  if (unhandled_ != nullptr) verdict = std::move(unhandled_->verdict);
  request.verdict = verdict.get();
  // It has a reference count and lives as long as its handles.
  exchange_ = new ServerExchange;
  const bool keep_alive =
      head.keep_alive && !draining_ && !worker_->draining() && worker_->keeps_connections;
  exchange_->open(connection_, *this, request, keep_alive);
  const HttpExchangePtr exchange(exchange_);
  try {
    worker_->handler.on_request(request, exchange);
  } catch (...) {
    // If the handler kept no handle, the exchange answers by itself.
    static LogLimit limit;
    log_exception(limit, "A request failed");
  }
}

void ServerHttp::refuse(const Error& error) {
  const bool client_error = error.code < 500;
  ServerCounters::add(worker_->counters.responses[client_error ? 3 : 4]);
  std::string& out = connection_.output();
  std::string_view lines;
  if (unhandled_ != nullptr) lines = unhandled_->head_lines;
  append_reply_head(out, {.status = error.code,
                          .content_type = "text/plain; charset=utf-8",
                          .content_length = error.message.size() + 1,
                          .keep_alive = false,
                          .minor_version = 1,
                          .gzip = false,
                          .date = worker_->date(),
                          .extra = {},
                          .lines = lines});
  // A reply to HEAD has no content, not even an error (RFC 9110, section 9.3.2).
  if (!request_begun_ || !is_head_) out.append(error.message).push_back('\n');
  connection_.added();
  // The connection may take long to end. Meanwhile, a preparation that nobody needs would delay
  // others.
  unhandled_ = nullptr;
  connection_.close_after_flush();
}

void ServerHttp::refuse_for_memory() {
  static LogLimit limit;
  if (const auto left_out = limit.take()) {
    log_warning("a request is refused: there is no memory for buffers of connections",
                {{"limit", "http.max_total_buffers"},
                 {"peer", connection_.peer().to_string()},
                 {"left_out", *left_out}});
  }
  refuse({503, "The server is out of memory for buffers; try again later", {}});
}

void ServerHttp::on_no_memory() {
  if (exchange_ == nullptr && long_reply_ == nullptr && connection_.is_open()) {
    refuse_for_memory();
  } else {
    connection_.give_up();
  }
}

// --- for the exchange --------------------------------------------------------------------------

void ServerHttp::read_body(std::shared_ptr<BodyHandler> handler, bool is_unanswered) {
  if (body_stream_ == nullptr) return;
  if (std::exchange(body_stream_->expects_continue, false) && is_unanswered &&
      connection_.may_send()) {
    connection_.output().append(kContinue);
    connection_.added();
  }
  body_stream_->handler = std::move(handler);
  resume_body();
}

void ServerHttp::resume_body() {
  if (body_stream_ == nullptr) return;
  body_stream_->paused = false;
  since_ = worker_->coarse_now();
  body_stream_->unfinished_at = since_;
  connection_.resume_later();
}

bool ServerHttp::compress_later(std::string_view body) {
  auto reply = std::make_unique<LongReply>();
  reply->body = body;
  if (!reply->hold.hold(connection_.memory(), body.size() + Gzip::kMemory)) return false;
  long_reply_ = std::move(reply);
  return true;
}

/// Compresses and sends a part of the reply. False if nothing more can be done now.
bool ServerHttp::send_some() {
  LongReply& reply = *long_reply_;
  if (!connection_.may_send()) {
    forget_reply();
    return false;
  }
  const std::string_view piece = std::string_view(reply.body).substr(reply.sent, kCompressedAtOnce);
  reply.sent += piece.size();
  const bool is_last = reply.sent == reply.body.size();
  std::string chunk;
  reply.gzip.step(piece, is_last, chunk);
  connection_.worked(piece.size() * kCompressionCost);
  if (!chunk.empty()) {
    frame_chunk(chunk);
    connection_.output().append(chunk);
    connection_.added();
  }
  if (!is_last) return true;
  connection_.output().append("0\r\n\r\n");
  connection_.send_added();
  const bool keep_alive = reply.keep_alive;
  forget_reply();
  request_finished(keep_alive);
  return true;
}

void ServerHttp::request_finished(bool keep_alive) {
  exchange_ = nullptr;
  body_stream_ = nullptr;
  if (long_reply_ != nullptr) {
    long_reply_->keep_alive = keep_alive;
    connection_.resume_later();
    return;
  }
  since_ = worker_->coarse_now();
  if (is_shared_) connection_.await_client();
  if (!keep_alive || draining_ || !worker_->keeps_connections) {
    connection_.close_after_flush();
  } else {
    connection_.resume_later();
  }
}

void ServerHttp::become_websocket(const RefPtr<ServerWebSocket>& session) {
  exchange_ = nullptr;
  ServerCounters::add(worker_->counters.websockets);
  connection_.switch_to(session->as_protocol());
}

// --- life --------------------------------------------------------------------------------------

void ServerHttp::on_drain() {
  if (exchange_ != nullptr) exchange_->drained();
}

/// The peer sends no more requests but may still read, so complete requests are answered. Whether
/// the peer has gone altogether only shows when something is sent to it.
void ServerHttp::on_input_end() {
  if (preparation() != nullptr || long_reply_ != nullptr) return;
  if (exchange_ == nullptr) {
    connection_.close_after_flush();
    return;
  }
  // A body that is still expected will never be complete.
  const bool is_lost =
      body_stream_ != nullptr || (!std::exchange(has_probed_, true) && !exchange_->probe());
  if (is_lost) connection_.give_up();
}

void ServerHttp::on_tick(TimePoint now) {
  const HttpServerOptions& options = worker_->options;
  if (long_reply_ != nullptr) return;
  // While a peer does not read, nothing is read from it. That time does not count for its request.
  if (connection_.is_output_full()) {
    since_ = now;
    if (body_stream_ != nullptr) body_stream_->unfinished_at = now;
  }
  if (exchange_ == nullptr && connection_.is_open()) {
    if (request_begun_) {
      if (awaits_rest() && now - since_ >= options.request_timeout) {
        connection_.note_timeout("a request");
        refuse({408, "The request took too long to arrive"});
      }
      return;
    }
    // The connection itself checks whether a peer reads its answers. Input that begins no request,
    // such as empty lines or a handshake byte by byte, does not keep a connection alive.
    const TimePoint last = std::max(connection_.progress_at(), since_);
    const Duration timeout =
        connection_.is_established() ? options.idle_timeout : options.request_timeout;
    if (connection_.queued_bytes() == 0 && now - last >= timeout) {
      ServerCounters::add(worker_->counters.timeouts);
      connection_.give_up();
    }
    return;
  }
  if (body_stream_ != nullptr && !body_stream_->paused && is_body_late(now)) {
    connection_.note_timeout("a body");
    connection_.give_up();
    return;
  }
  // The end of the input may come after more than is read now.
  if (exchange_ != nullptr && body_stream_ == nullptr && connection_.is_at_end() && !has_probed_) {
    has_probed_ = exchange_->probe();
  }
  if (exchange_ == nullptr || connection_.queued_bytes() > 0 ||
      options.event_keep_alive.count() == 0) {
    return;
  }
  const TimePoint last = std::max(connection_.active_at(), connection_.progress_at());
  if (now - last >= options.event_start) exchange_->break_silence();
  if (now - connection_.progress_at() < options.event_keep_alive) return;
  if (connection_.is_at_end()) {
    [[maybe_unused]] const bool has_place = exchange_->probe();
  } else {
    exchange_->keep_alive();
  }
}

/// Whether nothing of the body has arrived for long, or not the rest of a message.
bool ServerHttp::is_body_late(TimePoint now) const {
  const HttpServerOptions& options = worker_->options;
  return now - std::max(connection_.active_at(), since_) >= options.idle_timeout ||
         (body_stream_->unfinished != 0 &&
          now - body_stream_->unfinished_at >= options.request_timeout);
}

/// Whether a request has come in part.
bool ServerHttp::awaits_rest() const {
  return request_begun_ && exchange_ == nullptr && long_reply_ == nullptr && coded() == nullptr &&
         preparation() == nullptr && connection_.is_open();
}

bool ServerHttp::is_idle() const {
  return exchange_ == nullptr && long_reply_ == nullptr && !request_begun_;
}

void ServerHttp::on_worker(ConnectionWorker& worker) {
  // All workers of one server have the same type.
  worker_ = static_cast<HttpWorker*>(&worker);
}

void ServerHttp::on_shutdown() {
  draining_ = true;
  if (is_idle()) {
    connection_.close_after_flush();
  } else if (body_stream_ != nullptr) {
    const std::unique_ptr<BodyStream> cut = std::move(body_stream_);
    if (cut->handler != nullptr) cut->handler->on_shutdown();
  } else if (awaits_rest()) {
    refuse({503, "The server is shutting down; try another", {}});
  }
}

void ServerHttp::on_end() {
  forget_reply();
  unhandled_ = nullptr;
  body_stream_ = nullptr;
  if (ServerExchange* const exchange = std::exchange(exchange_, nullptr))
    exchange->on_connection_lost();
}

}  // namespace sluice
