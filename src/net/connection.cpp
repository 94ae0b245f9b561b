#include "net/connection.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include <boost/asio/buffer.hpp>
#include <boost/asio/ip/tcp.hpp>

#include "net/compression.hpp"
#include "net/server_exchange.hpp"
#include "net/server_websocket.hpp"

namespace sluice {
namespace asio = boost::asio;
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kInputBuffer = 4096;
/// Bytes of later requests taken in while one is unanswered; reading then waits.
constexpr std::size_t kPipelineBytes = std::size_t{64} << 10U;
constexpr std::size_t kWritevParts = 16;
/// How long an ended connection may still send before it is closed under it, so that our last
/// bytes are not lost to a reset (RFC 9112, section 9.6).
constexpr Duration kLinger = 2s;
/// Output buffers larger than this are given back once empty.
constexpr std::size_t kKeptOutput = std::size_t{16} << 10U;

PeerAddress peer_of(const ServerWorker::Socket& socket) {
  PeerAddress peer;
  boost::system::error_code error;
  const asio::ip::tcp::endpoint endpoint = socket.remote_endpoint(error);
  if (error) return peer;
  peer.port = endpoint.port();
  if (endpoint.address().is_v4()) {
    const auto v4 = endpoint.address().to_v4().to_bytes();
    peer.ip[10] = 0xFF;
    peer.ip[11] = 0xFF;
    std::ranges::copy(v4, peer.ip.begin() + 12);
  } else {
    std::ranges::copy(endpoint.address().to_v6().to_bytes(), peer.ip.begin());
  }
  return peer;
}

}  // namespace

Connection::Connection(ServerWorker& worker, ServerWorker::Socket socket,
                       std::shared_ptr<TlsContext> tls)
    : worker_(&worker),
      socket_(std::move(socket)),
      tls_(std::move(tls)),
      transport_(socket_.native_handle(), tls_.get()),
      peer_(peer_of(socket_)),
      active_at_(worker.coarse_now()),
      request_at_(active_at_),
      progress_at_(active_at_) {}

Connection::~Connection() = default;

void Connection::start() {
  worker_->add(*this);
  read();
}

// --- input -------------------------------------------------------------------------------------

void Connection::reserve_input(std::size_t bytes) {
  if (input_begin_ > 0) {
    std::memmove(input_.get(), input_.get() + input_begin_, input_end_ - input_begin_);
    input_end_ -= input_begin_;
    input_begin_ = 0;
  }
  const std::size_t wanted = std::max(kInputBuffer, input_end_ + bytes);
  if (wanted <= input_capacity_) return;
  const std::size_t capacity = std::max<std::size_t>(wanted, std::size_t{input_capacity_} * 2);
  std::unique_ptr<char[]> larger(new char[capacity]);
  if (input_end_ > 0) std::memcpy(larger.get(), input_.get(), input_end_);
  input_ = std::move(larger);
  input_capacity_ = static_cast<std::uint32_t>(capacity);
}

void Connection::consume(std::size_t bytes) {
  input_begin_ += static_cast<std::uint32_t>(bytes);
  if (input_begin_ == input_end_) {
    input_begin_ = 0;
    input_end_ = 0;
  }
}

void Connection::read() {
  if (reading_ || input_ended_ || state_ == State::closed || state_ == State::flushing) return;
  if (exchange_ != nullptr && input_end_ - input_begin_ >= kPipelineBytes) return;
  if (transport_.is_tls() || parked_) {
    wait_readable();
    return;
  }
  if (input_capacity_ == input_end_) reserve_input(1);
  reading_ = true;
  socket_.async_read_some(
      asio::buffer(input_.get() + input_end_, input_capacity_ - input_end_),
      [self = RefPtr(this)](const boost::system::error_code& error, std::size_t bytes) {
        Connection& connection = *self;
        connection.reading_ = false;
        const bool parking = std::exchange(connection.parking_, false);
        if (error == asio::error::operation_aborted) {
          connection.on_read_cancelled(parking);
        } else if (error) {
          connection.on_input_end();
        } else {
          connection.on_read(bytes);
        }
      });
}

void Connection::wait_readable() {
  reading_ = true;
  socket_.async_wait(asio::socket_base::wait_read,
                     [self = RefPtr(this)](const boost::system::error_code& error) {
                       Connection& connection = *self;
                       connection.reading_ = false;
                       const bool parking = std::exchange(connection.parking_, false);
                       if (error == asio::error::operation_aborted) {
                         connection.on_read_cancelled(parking);
                       } else if (error) {
                         connection.on_input_end();
                       } else {
                         connection.on_readable();
                       }
                     });
}

/// A read was taken back: to park, or because what is in the buffer is to be handled, which moves
/// it.
void Connection::on_read_cancelled(bool parking) {
  if (state_ == State::closed) return;
  if (parking && input_end_ == input_begin_ && queued_bytes() == 0) {
    park();
    return;
  }
  const RefPtr<Connection> keep(this);
  process();
  read();
}

void Connection::on_readable() {
  if (state_ == State::closed) return;
  unpark();
  const RefPtr<Connection> keep(this);
  // A few rounds, so that one busy peer does not keep the loop to itself.
  for (int round = 0; round < 4 && state_ != State::closed && !input_ended_; ++round) {
    if (exchange_ != nullptr && input_end_ - input_begin_ >= kPipelineBytes) return;
    if (input_capacity_ == input_end_) reserve_input(1);
    const IoResult result =
        transport_.read({input_.get() + input_end_, input_capacity_ - input_end_});
    switch (result.status) {
      case IoStatus::ok:
        on_read(result.bytes);
        if (!transport_.is_tls()) return;  // on_read reads on
        break;
      case IoStatus::want_read:
        read();
        return;
      case IoStatus::want_write:
        wait_writable();
        read();
        return;
      case IoStatus::closed:
      case IoStatus::failed:
        on_input_end();
        return;
    }
  }
  read();
}

void Connection::on_read(std::size_t bytes) {
  if (state_ == State::closed) return;
  ServerCounters::add(worker_->counters.bytes_in, bytes);
  active_at_ = worker_->coarse_now();
  if (state_ == State::lingering) {
    read();
    return;
  }
  input_end_ += static_cast<std::uint32_t>(bytes);
  const RefPtr<Connection> keep(this);
  process();
  if (!transport_.is_tls()) read();
}

void Connection::on_input_end() {
  input_ended_ = true;
  if (state_ == State::flushing) return;
  drop();
}

void Connection::process() {
  if (std::exchange(processing_, true)) return;
  while (state_ == State::open && input_end_ > input_begin_) {
    if (websocket_) {
      const std::size_t size = input_end_ - input_begin_;
      const std::size_t begin = input_begin_;
      input_begin_ = 0;
      input_end_ = 0;
      const RefPtr<ServerWebSocket> session = websocket_;
      session->feed({input_.get() + begin, size});
      break;
    }
    if (exchange_ != nullptr || !process_request()) break;
  }
  processing_ = false;
}

/// Handles the request at the front of the input if it is there whole.
bool Connection::process_request() {
  if (!std::exchange(request_begun_, true)) {
    request_at_ = worker_->coarse_now();
    continued_ = false;
  }
  if (input().size() < input_needed_) return false;

  HttpRequestHead head;
  bool found = false;
  const std::string_view text = chunked_ ? input().substr(0, head_size_) : input();
  if (Result<void> parsed = worker_->parser.parse(text, found, head); !parsed) {
    refuse(parsed.error());
    return false;
  }
  if (!found) return false;

  std::size_t total = head.size;
  std::string_view body;
  if (head.framing == BodyFraming::length) {
    total += head.content_length;
    input_needed_ = static_cast<std::uint32_t>(total);
    if (input().size() >= total) body = input().substr(head.size, head.content_length);
  } else if (head.framing == BodyFraming::chunked) {
    if (!chunked_) {
      chunked_ = std::make_unique<ChunkedBodyReader>(worker_->options.max_body);
      head_size_ = static_cast<std::uint32_t>(head.size);
    }
    const Result<std::size_t> used = chunked_->feed(input().substr(head.size));
    if (!used) {
      refuse(used.error());
      return false;
    }
    if (chunked_->done()) {
      total += *used;
      body = chunked_->body();
    } else {
      // What the reader has taken makes room for what follows; the head stays for the handler.
      char* const rest = input_.get() + input_begin_ + head.size;
      std::memmove(rest, rest + *used, input().size() - head.size - *used);
      input_end_ -= static_cast<std::uint32_t>(*used);
      total = 0;
    }
  }
  if (total == 0 || input().size() < total) {
    if (head.expects_continue && !std::exchange(continued_, true)) {
      text_.append("HTTP/1.1 100 Continue\r\n\r\n");
      flush();
    }
    if (total > input_capacity_) reserve_input(total - input().size());
    return false;
  }
  input_needed_ = 0;
  request_begun_ = false;
  dispatch(head, body);
  chunked_ = nullptr;
  if (state_ != State::closed) consume(total);
  return true;
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
}

void Connection::refuse(const Error& error) {
  const bool client_error = error.code < 500;
  ServerCounters::add(worker_->counters.responses[client_error ? 3 : 4]);
  append_reply_head(text_, {.status = error.code,
                            .content_type = "text/plain; charset=utf-8",
                            .content_length = error.message.size() + 1,
                            .keep_alive = false,
                            .minor_version = 1,
                            .gzip = false,
                            .extra = {}});
  text_.append(error.message).push_back('\n');
  close_after_flush();
}

void Connection::request_finished(bool keep_alive) {
  exchange_ = nullptr;
  active_at_ = worker_->coarse_now();
  if (!keep_alive || draining_) {
    close_after_flush();
    return;
  }
  if (processing_ || state_ != State::open) return;
  const RefPtr<Connection> keep(this);
  if (reading_ && input_end_ > input_begin_) {
    // The outstanding read writes behind this input, which handling it may move.
    boost::system::error_code ignored;
    socket_.cancel(ignored);
    return;
  }
  process();
  read();
}

void Connection::become_websocket(RefPtr<ServerWebSocket> session) {
  websocket_ = std::move(session);
  exchange_ = nullptr;
  ServerCounters::add(worker_->counters.websockets);
}

// --- output ------------------------------------------------------------------------------------

void Connection::output_changed() {
  worker_->loop.at_turn_end(*this);
}

void Connection::queue(const Bytes& bytes, std::size_t offset, std::size_t size) {
  if (text_sent_ < text_.size()) {
    const std::size_t rest = text_.size() - text_sent_;
    blocks_.push_back({Bytes(std::move(text_)), text_sent_, rest});
    queued_ += rest;
  }
  text_ = {};
  text_sent_ = 0;
  blocks_.push_back({bytes, offset, size});
  queued_ += size;
  output_changed();
}

bool Connection::check_room() {
  const std::size_t waiting = queued_bytes() - text_sent_;
  if (waiting > worker_->options.max_queued) {
    drop();
    return true;
  }
  full_ = full_ || waiting > worker_->options.high_water;
  return !full_;
}

Duration Connection::stalled_for() const {
  return writing_ ? worker_->now() - progress_at_ : Duration{};
}

void Connection::on_turn_end() {
  flush();
}

void Connection::flush() {
  if (state_ == State::closed || writing_) return;
  const RefPtr<Connection> keep(this);
  while (queued_bytes() > text_sent_) {
    if (!send_some()) return;
  }
  after_flush();
}

/// Sends once. False if the socket takes no more, or the connection is gone.
bool Connection::send_some() {
  std::array<iovec, kWritevParts> parts;
  std::size_t count = 0;
  std::size_t offered = 0;
  for (const Block& block : blocks_) {
    if (count + 1 == kWritevParts) break;
    parts[count++] = {const_cast<char*>(block.bytes.view().data()) + block.offset, block.size};
    offered += block.size;
  }
  if (count == blocks_.size() && text_sent_ < text_.size()) {
    parts[count++] = {text_.data() + text_sent_, text_.size() - text_sent_};
    offered += text_.size() - text_sent_;
  }
  const IoResult result = transport_.write({parts.data(), count});
  switch (result.status) {
    case IoStatus::ok:
      sent(result.bytes);
      if (result.bytes < offered && !transport_.is_tls()) {
        wait_writable();
        return false;
      }
      return true;
    case IoStatus::want_write:
      wait_writable();
      return false;
    case IoStatus::want_read:
      return false;  // TLS: on_readable goes on
    case IoStatus::closed:
    case IoStatus::failed:
      drop();
      return false;
  }
  return false;
}

void Connection::sent(std::size_t bytes) {
  ServerCounters::add(worker_->counters.bytes_out, bytes);
  progress_at_ = worker_->coarse_now();
  std::size_t whole = 0;
  for (Block& block : blocks_) {
    const std::size_t part = std::min(bytes, block.size);
    block.offset += part;
    block.size -= part;
    bytes -= part;
    queued_ -= part;
    if (block.size > 0) break;
    ++whole;
  }
  if (whole > 0)
    blocks_.erase(blocks_.begin(), blocks_.begin() + static_cast<std::ptrdiff_t>(whole));
  text_sent_ += bytes;
  if (text_sent_ == text_.size()) {
    text_.clear();
    text_sent_ = 0;
    if (text_.capacity() > kKeptOutput) text_.shrink_to_fit();
  }
}

void Connection::wait_writable() {
  if (std::exchange(writing_, true)) return;
  progress_at_ = worker_->coarse_now();
  socket_.async_wait(asio::socket_base::wait_write,
                     [self = RefPtr(this)](const boost::system::error_code& error) {
                       Connection& connection = *self;
                       connection.writing_ = false;
                       if (connection.state_ == State::closed) return;
                       if (error && error != asio::error::operation_aborted) {
                         connection.drop();
                         return;
                       }
                       connection.flush();
                       connection.notify_drain();
                     });
}

void Connection::notify_drain() {
  if (!full_ || queued_bytes() - text_sent_ > worker_->options.low_water) return;
  full_ = false;
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

void Connection::after_flush() {
  if (state_ == State::flushing) linger();
}

void Connection::linger() {
  transport_.shutdown_send();
  state_ = State::lingering;
  active_at_ = worker_->coarse_now();
  input_begin_ = 0;
  input_end_ = 0;
  if (input_ended_) {
    drop();
  } else {
    read();
  }
}

// --- life --------------------------------------------------------------------------------------

void Connection::tick(TimePoint now) {
  const HttpServerOptions& options = worker_->options;
  const RefPtr<Connection> keep(this);
  if (state_ == State::lingering) {
    if (now - active_at_ >= kLinger) drop();
    return;
  }
  if (writing_ && now - progress_at_ >= options.stall_timeout) {
    ServerCounters::add(worker_->counters.stalled);
    drop();
    return;
  }
  if (exchange_ == nullptr && !websocket_ && state_ == State::open) {
    if (request_begun_ && now - request_at_ >= options.request_timeout) {
      ServerCounters::add(worker_->counters.timeouts);
      refuse({.code = 408, .message = "The request took too long to arrive"});
      return;
    }
    if (!request_begun_ && now - active_at_ >= options.idle_timeout) {
      ServerCounters::add(worker_->counters.timeouts);
      drop();
      return;
    }
  }
  if (websocket_ && websocket_->tick(now)) return;
  if (!parked_ && reading_ && !parking_ && !writing_ && !request_begun_ &&
      input_end_ == input_begin_ && queued_bytes() == 0 && now - active_at_ >= options.park_after &&
      now - progress_at_ >= options.park_after) {
    parking_ = true;
    boost::system::error_code ignored;
    socket_.cancel(ignored);
  }
}

void Connection::park() {
  if (state_ == State::closed) return;
  parked_ = true;
  input_ = nullptr;
  input_capacity_ = 0;
  input_begin_ = 0;
  input_end_ = 0;
  text_ = {};
  blocks_ = {};
  ServerCounters::add(worker_->counters.parked);
  wait_readable();
}

void Connection::unpark() {
  if (std::exchange(parked_, false)) ServerCounters::subtract(worker_->counters.parked);
}

void Connection::drain() {
  draining_ = true;
  if (websocket_) {
    websocket_->close(1001, "the server is shutting down");
  } else if (exchange_ == nullptr && !request_begun_) {
    close_after_flush();
  }
}

void Connection::drop() {
  if (std::exchange(state_, State::closed) == State::closed) return;
  const RefPtr<Connection> keep(this);
  unpark();
  worker_->loop.forget(*this);
  boost::system::error_code ignored;
  socket_.close(ignored);
  blocks_.clear();
  queued_ = 0;
  text_ = {};
  text_sent_ = 0;
  worker_->remove(*this);
  if (ServerExchange* const exchange = std::exchange(exchange_, nullptr)) exchange->lost();
  if (const RefPtr<ServerWebSocket> session = std::exchange(websocket_, nullptr)) {
    ServerCounters::subtract(worker_->counters.websockets);
    session->lost();
  }
}

}  // namespace sluice
