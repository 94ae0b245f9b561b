#include "net/connection.hpp"

#include <algorithm>
#include <array>
#include <sys/epoll.h>
#include <system_error>
#include <utility>

#include "net/compression.hpp"
#include "net/server_exchange.hpp"
#include "net/server_websocket.hpp"

namespace sluice {
namespace {

using namespace std::chrono_literals;

/// Bytes of later requests taken in while one is unanswered; reading then waits.
constexpr std::size_t kPipelineBytes = std::size_t{64} << 10U;
constexpr Duration kLinger = 2s;
/// Room for a decoded body that a worker keeps for the next.
constexpr std::size_t kKeptBody = std::size_t{64} << 10U;
/// What a chunk of a body that is not kept may have: any size that can be counted.
constexpr std::size_t kAnyChunk = std::size_t{1} << 48U;

}  // namespace

Connection::Connection(ServerWorker& worker, Descriptor socket, const PeerAddress& peer,
                       TlsContext* tls)
    : worker_(&worker),
      socket_(std::move(socket)),
      transport_(socket_.get(), tls),
      peer_(peer),
      input_(worker.buffers),
      output_(worker.buffers, worker.options.output),
      active_at_(worker.coarse_now()),
      request_at_(active_at_),
      progress_at_(active_at_) {}

Connection::~Connection() = default;

void Connection::start() {
  worker_->add(*this);
  ServerCounters::add(worker_->counters.parked);
  try {
    worker_->loop.watch(socket_.get(), *this);
  } catch (const std::system_error&) {
    give_up();
  }
}

void Connection::turn_away(std::string_view reply) {
  start();
  if (is_over()) return;
  if (transport_.is_tls()) {
    give_up();
    return;
  }
  output().append(reply);
  close_after_flush();
}

// --- input -------------------------------------------------------------------------------------

bool Connection::may_read() const {
  if (input_ended_ || state_ == State::flushing || is_over()) return false;
  if (websocket_) return !output_.is_full();
  // A peer that leaves answers unread gets no more of them.
  bool must_wait = output_.is_full();
  if (body_stream_ != nullptr) {
    if (body_stream_->paused) return false;
  } else {
    must_wait = must_wait || exchange_ != nullptr;
  }
  return !must_wait || input_.size() < kPipelineBytes;
}

bool Connection::is_between_requests() const {
  return exchange_ == nullptr && !websocket_ && !request_begun_ && state_ == State::open;
}

void Connection::on_ready(std::uint32_t events) {
  const RefPtr<Connection> keep(this);
  if ((events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0) is_readable_ = true;
  if ((events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0) is_at_end_ = true;
  if (writing_ && (events & (EPOLLOUT | EPOLLHUP | EPOLLERR)) != 0) {
    writing_ = false;
    flush();
    notify_drain();
    // A TLS read may have waited for this.
    if (transport_.is_tls()) is_readable_ = true;
  }
  if (is_readable_) read_now();
}

/// Reads what there is.
void Connection::read_now() {
  int round = 0;
  for (; round < kReadsInARow && is_readable_ && may_read(); ++round) {
    const std::span<char> room = input_.room();
    if (room.empty()) {
      refuse_for_memory();
      break;
    }
    const IoResult result = transport_.read(room);
    if (result.status == IoStatus::ok) {
      // A read that left room has emptied the socket, and the kernel tells when more comes. What it
      // has told already, such as the end, it does not tell again.
      if (result.bytes < room.size() && !is_at_end_ && !transport_.is_tls()) is_readable_ = false;
      input_.commit(result.bytes);
      took(result.bytes);
    } else if (result.status == IoStatus::want_read) {
      is_readable_ = false;
    } else if (result.status == IoStatus::want_write) {
      is_readable_ = false;
      wait_writable();
    } else {
      is_readable_ = false;
      on_input_end();
    }
  }
  if (is_over()) return;
  settle_input();
  // A TLS write may have waited for what has just been read.
  if (transport_.is_tls() && !output_.empty()) flush();
  if (round == kReadsInARow && is_readable_) resume_later();
}

/// Keeps what is left of the input, between events.
void Connection::settle_input() {
  if (!input_.settle()) refuse_for_memory();
  count_memory();
}

void Connection::forget_chunked() {
  if (chunked_ != nullptr) chunked_->share.release(worker_->buffers.budget());
  chunked_ = nullptr;
}

void Connection::refuse_for_memory() {
  if (exchange_ == nullptr && !websocket_ && state_ == State::open) {
    refuse({503, "The server holds as much as it may; try it again", {}});
  } else {
    give_up();
  }
  input_.clear();
}

void Connection::took(std::size_t bytes) {
  ServerCounters::add(worker_->counters.bytes_in, bytes);
  if (state_ == State::lingering) {
    input_.clear();
    return;
  }
  active_at_ = worker_->coarse_now();
  const RefPtr<Connection> keep(this);
  process();
  if (state_ != State::open) input_.clear();
}

void Connection::on_input_end() {
  input_ended_ = true;
  if (state_ == State::flushing) return;
  if (state_ == State::open && exchange_ == nullptr) {
    // What has come before may not have been looked at.
    resume_later();
  } else {
    // Nobody waits for the answer that is being made.
    give_up();
  }
}

/// The peer has asked its last, and may still read: what has come whole is answered.
void Connection::end_when_answered() {
  const bool waits = output_.is_full() && (!input_.empty() || websocket_);
  if (!input_ended_ || state_ != State::open || exchange_ != nullptr || waits) return;
  if (websocket_) {
    const RefPtr<ServerWebSocket> session = websocket_;
    session->input_ended();
  } else if (output_.empty()) {
    give_up();
  } else {
    close_after_flush();
  }
}

void Connection::process() {
  if (std::exchange(processing_, true)) return;
  while (state_ == State::open && !input_.empty() && !output_.is_full()) {
    if (websocket_) {
      const RefPtr<ServerWebSocket> session = websocket_;
      session->feed(input_.bytes());
      input_.clear();
      break;
    }
    if (body_stream_ != nullptr) {
      if (!process_body_stream()) break;
      continue;
    }
    if (exchange_ != nullptr || !process_request()) break;
  }
  processing_ = false;
}

/// Skips what some clients send behind a body (RFC 9112, section 2.2). Whether nothing is left.
bool Connection::skip_empty_lines() {
  while (input_.view().starts_with("\r\n")) input_.consume(2);
  return input_.empty() || input_.view() == "\r";
}

/// Whether the input holds the end of a head, or cannot. A head that came whole is not searched
/// for its end.
bool Connection::is_head_there() {
  static constexpr std::string_view kEnd = "\r\n\r\n";
  if (head_scanned_ == 0 || input_needed_ != 0 || chunked_) return true;
  const std::size_t from = head_scanned_ < kEnd.size() ? 0 : head_scanned_ - kEnd.size() + 1;
  if (input_.view().find(kEnd, from) != std::string_view::npos) return true;
  head_scanned_ = static_cast<std::uint32_t>(input_.size());
  return head_scanned_ > worker_->options.max_uri;
}

/// Handles the request at the front of the input if it is there whole.
bool Connection::process_request() {
  if (!request_begun_ && skip_empty_lines()) return false;
  if (!std::exchange(request_begun_, true)) {
    request_at_ = worker_->coarse_now();
    continued_ = false;
    head_scanned_ = 0;
  }
  if (input_.size() < input_needed_ || !is_head_there()) return false;

  HttpRequestHead head;
  bool found = false;
  const std::string_view text = chunked_ ? input_.view().substr(0, head_size_) : input_.view();
  if (Result<void> parsed = worker_->parser.parse(text, found, head); !parsed) {
    refuse(parsed.error());
    return false;
  }
  if (!found) {
    head_scanned_ = static_cast<std::uint32_t>(input_.size());
    return false;
  }

  const bool is_new = !chunked_ && input_needed_ == 0;
  if (is_new && head.framing != BodyFraming::none && begin_body_stream(head)) return true;
  std::size_t total = head.size;
  std::string_view body;
  if (head.framing != BodyFraming::none && !process_body(head, body, total)) return false;
  input_needed_ = 0;
  request_begun_ = false;
  dispatch(head, body);
  forget_chunked();
  input_.consume(total);
  return true;
}

/// Finds the body of the request with `head`. False if it is not there whole yet, or was refused.
/// `total` becomes the request's size in the input.
bool Connection::process_body(const HttpRequestHead& head, std::string_view& body,
                              std::size_t& total) {
  bool whole = false;
  if (head.framing == BodyFraming::length) {
    total = head.size + head.content_length;
    input_needed_ = total;
    whole = input_.size() >= total;
    if (whole) body = input_.view().substr(head.size, head.content_length);
  } else {
    if (!chunked_) {
      chunked_ = std::make_unique<ChunkedBody>(worker_->options.max_body);
      head_size_ = static_cast<std::uint32_t>(head.size);
    }
    const Result<std::size_t> used = chunked_->reader.feed(input_.view().substr(head.size));
    if (!used) {
      refuse(used.error());
      return false;
    }
    const std::size_t held = chunked_->reader.body().capacity();
    if (!chunked_->share.hold(worker_->buffers.budget(), held)) {
      refuse_for_memory();
      return false;
    }
    whole = chunked_->reader.done();
    if (whole) {
      total = head.size + *used;
      body = chunked_->reader.body();
    } else {
      // The head stays for the handler.
      input_.truncate(head.size);
    }
  }
  if (whole) return true;
  if (head.expects_continue && !std::exchange(continued_, true)) {
    output().append("HTTP/1.1 100 Continue\r\n\r\n");
    flush();
  }
  return false;
}

/// Hands the head over before its body, if the handler wants it so.
bool Connection::begin_body_stream(HttpRequestHead& head) {
  const bool is_coded = head.request.has(KnownHeader::content_encoding);
  if (is_coded || !worker_->handler.streams_body(head.request)) return false;
  body_stream_ = std::make_unique<BodyStream>();
  if (head.framing == BodyFraming::chunked) {
    body_stream_->chunked.emplace(kAnyChunk);
  } else {
    body_stream_->remaining = head.content_length;
  }
  if (head.expects_continue) output().append("HTTP/1.1 100 Continue\r\n\r\n");
  const std::size_t size = head.size;
  request_begun_ = false;
  // The reply may be over before the body is.
  head.keep_alive = false;
  head.request.body_follows = true;
  dispatch(head, {});
  input_.consume(size);
  return true;
}

/// Hands on what has come of a body. False if nothing more can be done with the input now.
bool Connection::process_body_stream() {
  if (body_stream_->paused) return false;
  std::size_t used = 0;
  std::string unchunked;
  std::string_view piece;
  bool is_last = false;
  if (body_stream_->chunked) {
    const Result<std::size_t> fed = body_stream_->chunked->feed(input_.view());
    if (!fed) {
      // The reply may have begun, so the error has no other place.
      give_up();
      return false;
    }
    used = *fed;
    unchunked = body_stream_->chunked->take_body();
    piece = unchunked;
    is_last = body_stream_->chunked->done();
  } else {
    used = std::min(body_stream_->remaining, input_.size());
    piece = input_.view().substr(0, used);
    body_stream_->remaining -= used;
    is_last = body_stream_->remaining == 0;
  }
  const std::shared_ptr<BodyHandler> handler = body_stream_->handler;
  const bool more = piece.empty() || handler->on_body(piece);
  if (state_ != State::open || body_stream_ == nullptr) return false;
  input_.consume(used);
  body_stream_->paused = !more;
  if (is_last) {
    body_stream_ = nullptr;
    handler->on_body_end();
  }
  return true;
}

void Connection::read_body(std::shared_ptr<BodyHandler> handler) {
  if (body_stream_ == nullptr) return;
  body_stream_->handler = std::move(handler);
  resume_body();
}

void Connection::resume_body() {
  if (body_stream_ == nullptr) return;
  body_stream_->paused = false;
  active_at_ = worker_->coarse_now();
  resume_later();
}

void Connection::dispatch(HttpRequestHead& head, std::string_view body) {
  ServerCounters::add(worker_->counters.requests_total);
  HttpRequest& request = head.request;
  request.body = body;
  request.peer = peer_;
  request.tls = transport_.is_tls();
  const std::string_view coding = request.header(KnownHeader::content_encoding);
  if (coding.data() != nullptr && !body.empty()) {
    Result<std::string> decoded = decode_content(coding, body, worker_->options.max_body);
    if (!decoded) {
      refuse(decoded.error());
      return;
    }
    worker_->body = std::move(*decoded);
    request.body = worker_->body;
  }
  // Counted: its handles decide when it goes.
  exchange_ = new ServerExchange;
  const bool keep_alive = head.keep_alive && !draining_ && !worker_->draining();
  exchange_->open(*this, request, keep_alive);
  worker_->handler.on_request(request, HttpExchangePtr(exchange_));
  if (worker_->body.capacity() > kKeptBody) worker_->body = {};
}

void Connection::refuse(const Error& error) {
  const bool client_error = error.code < 500;
  ServerCounters::add(worker_->counters.responses[client_error ? 3 : 4]);
  std::string& out = output();
  append_reply_head(out, {.status = error.code,
                          .content_type = "text/plain; charset=utf-8",
                          .content_length = error.message.size() + 1,
                          .keep_alive = false,
                          .minor_version = 1,
                          .gzip = false,
                          .extra = {}});
  out.append(error.message).push_back('\n');
  close_after_flush();
}

void Connection::request_finished(bool keep_alive) {
  exchange_ = nullptr;
  body_stream_ = nullptr;
  active_at_ = worker_->coarse_now();
  if (!keep_alive || draining_) {
    close_after_flush();
    return;
  }
  if (processing_ || state_ != State::open) return;
  // Not from within the call that finished this one.
  if (!input_.empty() || is_readable_ || input_ended_) resume_later();
}

void Connection::move_to(std::uint16_t worker) {
  next_worker_ = worker;
  worker_->loop.at_turn_end(*this);
}

/// Only where nothing of this connection is on the stack. False if something has to be done here
/// first.
bool Connection::move() {
  const std::uint16_t worker = std::exchange(next_worker_, ServerWorker::kNone);
  const bool is_idle =
      is_between_requests() && output_.empty() && !output_.is_full() && !draining_ && !input_ended_;
  if (!is_idle || worker == worker_->number()) return false;
  if (std::exchange(counted_parked_, true)) ServerCounters::subtract(worker_->counters.parked);
  worker_->loop.forget(*this);
  worker_->loop.unwatch(socket_.get(), *this);
  worker_->give(*this, worker);
  return true;
}

/// The other half of move(), on the new loop.
void Connection::arrive(ServerWorker& worker) {
  worker_ = &worker;
  input_.use(worker.buffers);
  output_.use(worker.buffers);
  active_at_ = worker.coarse_now();
  start();
  if (is_over()) return;
  count_memory();
  if (worker.draining()) {
    drain();
  } else if (!input_.empty() || is_readable_) {
    resume_later();
  }
}

void Connection::resume_later() {
  resume_ = true;
  worker_->loop.at_turn_end(*this);
}

void Connection::become_websocket(RefPtr<ServerWebSocket> session) {
  websocket_ = std::move(session);
  exchange_ = nullptr;
  ServerCounters::add(worker_->counters.websockets);
}

// --- output ------------------------------------------------------------------------------------

void Connection::on_turn_end() {
  const RefPtr<Connection> keep(this);
  flush();
  notify_drain();
  if (next_worker_ != ServerWorker::kNone && move()) return;
  if (!is_over() && std::exchange(resume_, false)) {
    process();
    if (is_readable_) {
      read_now();
    } else if (!is_over()) {
      settle_input();
    }
  }
  end_when_answered();
  // Nothing of this connection is on the stack here.
  if (state_ == State::doomed) tear_down();
}

bool Connection::may_send() {
  if (is_over()) return false;
  if (output_.has_room()) return true;
  // What has been added in this turn has not been tried yet.
  flush();
  if (!is_over() && !output_.has_room()) give_up_unread();
  return !is_over();
}

void Connection::give_up_unread() {
  ServerCounters::add(worker_->counters.stalled);
  give_up();
}

bool Connection::added() {
  worker_->loop.at_turn_end(*this);
  return output_.added();
}

void Connection::queue(const Bytes& bytes, std::size_t offset, std::size_t size) {
  if (size <= kCopiedBlock && !writing_) {
    output_.text().append(bytes.view().substr(offset, size));
  } else {
    output_.share(bytes, offset, size);
  }
}

Duration Connection::stalled_for() const {
  return writing_ ? worker_->now() - progress_at_ : Duration{};
}

void Connection::flush() {
  if (is_over()) return;
  while (!writing_ && !output_.empty()) {
    if (!send_some()) break;
  }
  if (is_over()) return;
  output_.added();
  if (!output_.empty()) {
    if (output_.is_over_budget()) give_up_unread();
    return;
  }
  if (output_.is_full()) worker_->loop.at_turn_end(*this);
  if (state_ == State::flushing) linger();
}

/// Sends once. False if the socket takes no more.
bool Connection::send_some() {
  std::array<iovec, kWritevParts> parts;
  std::size_t offered = 0;
  const std::size_t count = output_.gather(parts, offered);
  const IoResult result = transport_.write({parts.data(), count});
  switch (result.status) {
    case IoStatus::ok:
      ServerCounters::add(worker_->counters.bytes_out, result.bytes);
      progress_at_ = worker_->coarse_now();
      output_.consume(result.bytes);
      if (result.bytes < offered && !transport_.is_tls()) {
        wait_writable();
        return false;
      }
      return true;
    case IoStatus::want_write:
      wait_writable();
      return false;
    case IoStatus::want_read:
      return false;  // TLS: on_ready() goes on
    case IoStatus::closed:
    case IoStatus::failed:
      give_up();
      return false;
  }
  return false;
}

bool Connection::send_now(std::string_view bytes) {
  // TLS takes bytes that it could not send from the same place again.
  if (!may_send()) return true;
  if (state_ != State::open || writing_ || !output_.empty() || transport_.is_tls()) {
    output().append(bytes);
    flush();
    return !output_.is_full();
  }
  const iovec part{const_cast<char*>(bytes.data()), bytes.size()};
  const IoResult result = transport_.write({&part, 1});
  if (result.status == IoStatus::failed) {
    give_up();
    return true;
  }
  ServerCounters::add(worker_->counters.bytes_out, result.bytes);
  progress_at_ = worker_->coarse_now();
  if (result.bytes == bytes.size()) return true;
  output().append(bytes.substr(result.bytes));
  wait_writable();
  return added();
}

/// The kernel tells by itself when there is room again.
void Connection::wait_writable() {
  if (std::exchange(writing_, true)) return;
  progress_at_ = worker_->coarse_now();
  unacknowledged_ = transport_.unacknowledged();
}

/// Whether the peer has taken nothing for as long as it may. What it takes from a large buffer of
/// the kernel does not make the socket writable soon.
bool Connection::is_stalled(TimePoint now) {
  if (!writing_ && state_ != State::flushing) return false;
  if (now - progress_at_ < worker_->options.stall_timeout) return false;
  const std::size_t before = std::exchange(unacknowledged_, transport_.unacknowledged());
  if (unacknowledged_ >= before) return true;
  progress_at_ = now;
  return false;
}

void Connection::notify_drain() {
  if (is_over() || !output_.is_drained()) return;
  // Input waits as well while the peer does not read.
  resume_later();
  if (exchange_ != nullptr) {
    exchange_->drained();
  } else if (websocket_) {
    const RefPtr<ServerWebSocket> session = websocket_;
    session->drained();
  }
}

void Connection::close_after_flush() {
  if (state_ != State::open) return;
  state_ = State::flushing;
  flush();
}

void Connection::linger() {
  transport_.shutdown_send();
  state_ = State::lingering;
  active_at_ = worker_->coarse_now();
  if (input_ended_) {
    give_up();
    return;
  }
  if (is_readable_) resume_later();
}

// --- life --------------------------------------------------------------------------------------

void Connection::tick(TimePoint now) {
  const HttpServerOptions& options = worker_->options;
  if (state_ == State::lingering) {
    if (now - active_at_ >= kLinger) give_up();
    return;
  }
  if (is_stalled(now)) {
    ServerCounters::add(worker_->counters.stalled);
    give_up();
    return;
  }
  if (exchange_ == nullptr && !websocket_ && state_ == State::open) {
    if (request_begun_ && !output_.is_full() && now - request_at_ >= options.request_timeout) {
      ServerCounters::add(worker_->counters.timeouts);
      refuse({.code = 408, .message = "The request took too long to arrive"});
      return;
    }
    // Whether a peer still reads its answers is what is_stalled() asks.
    if (!request_begun_ && output_.empty() &&
        now - std::max(active_at_, progress_at_) >=
            (transport_.is_established() ? options.idle_timeout : options.request_timeout)) {
      ServerCounters::add(worker_->counters.timeouts);
      give_up();
      return;
    }
  }
  if (body_stream_ != nullptr && !body_stream_->paused && !output_.is_full() &&
      now - active_at_ >= options.idle_timeout) {
    ServerCounters::add(worker_->counters.timeouts);
    give_up();
    return;
  }
  if (exchange_ != nullptr && output_.empty() && options.event_keep_alive.count() > 0 &&
      now - progress_at_ >= options.event_keep_alive) {
    exchange_->keep_alive();
  }
  if (websocket_) websocket_->tick(now);
}

void Connection::count_memory() {
  const bool is_parked = !input_.holds_memory();
  if (is_parked == counted_parked_) return;
  counted_parked_ = is_parked;
  if (is_parked) {
    ServerCounters::add(worker_->counters.parked);
  } else {
    ServerCounters::subtract(worker_->counters.parked);
  }
}

void Connection::drain() {
  draining_ = true;
  if (websocket_) {
    websocket_->close(1001, "the server is shutting down");
  } else if (is_between_requests()) {
    close_after_flush();
  }
}

void Connection::give_up() {
  if (is_over()) return;
  state_ = State::doomed;
  output_.clear();
  worker_->loop.at_turn_end(*this);
}

void Connection::tear_down() {
  if (std::exchange(state_, State::closed) == State::closed) return;
  const RefPtr<Connection> keep(this);
  if (std::exchange(counted_parked_, false)) ServerCounters::subtract(worker_->counters.parked);
  worker_->loop.forget(*this);
  worker_->loop.unwatch(socket_.get(), *this);
  socket_.close();
  output_.clear();
  input_.clear();
  // Nothing is left to be lost.
  static_cast<void>(input_.settle());
  forget_chunked();
  body_stream_ = nullptr;
  worker_->remove(*this);
  if (ServerExchange* const exchange = std::exchange(exchange_, nullptr)) exchange->lost();
  if (const RefPtr<ServerWebSocket> session = std::exchange(websocket_, nullptr)) {
    ServerCounters::subtract(worker_->counters.websockets);
    session->lost();
  }
}

}  // namespace sluice
