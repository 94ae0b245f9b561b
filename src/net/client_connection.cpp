#include "net/client_connection.hpp"

#include <memory>
#include <utility>

#include <boost/asio/ip/address.hpp>
#include <boost/asio/ip/basic_resolver.hpp>

#include "net/status_codes.hpp"

namespace sluice {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;

constexpr std::size_t kMaxEndpoints = 8;
constexpr std::size_t kReadSize = std::size_t{64} << 10U;
/// Bytes read before other connections have their turn.
constexpr std::size_t kReadPerTurn = std::size_t{512} << 10U;
constexpr std::size_t kKeptOutput = std::size_t{4} << 10U;

}  // namespace

ClientConnection::ClientConnection(EventLoop& loop, const Url& url, std::shared_ptr<TlsContext> tls)
    : loop_(&loop),
      url_(url),
      tls_(url.is_tls() ? std::move(tls) : nullptr),
      resolver_(loop.context()),
      socket_(loop.context()) {}

void ClientConnection::connect(Duration timeout) {
  if (url_.is_tls() && tls_ == nullptr) {
    fail_later(kBadGateway, "No TLS settings for " + url_.scheme + "://" + url_.authority());
    return;
  }
  deadline_ = loop_->clock().now() + timeout;
  timer_ = loop_->schedule_at(deadline_, [self = shared_from_this()] {
    self->timer_ = 0;
    self->fail_with(kGatewayTimeout,
                    "Cannot connect to " + self->url_.authority() + ": no answer in time");
  });
  error_code error;
  const auto address = asio::ip::make_address(url_.host, error);
  if (!error) {
    endpoints_.emplace_back(address, url_.port);
    try_next();
    return;
  }
  resolver_.async_resolve(
      url_.host, std::to_string(url_.port), asio::ip::resolver_base::numeric_service,
      [self = shared_from_this()](const error_code& failed, const Resolver::results_type& found) {
        if (self->closed_) return;
        if (failed) {
          self->fail_with(kBadGateway, "Cannot find " + self->url_.host + ": " + failed.message());
          return;
        }
        for (const auto& entry : found) {
          if (self->endpoints_.size() < kMaxEndpoints) self->endpoints_.push_back(entry);
        }
        self->try_next();
      });
}

void ClientConnection::try_next() {
  if (next_endpoint_ == endpoints_.size()) {
    fail_later(kBadGateway, "Cannot connect to " + url_.authority() + ": " + last_error_);
    return;
  }
  const tcp::endpoint endpoint = endpoints_[next_endpoint_++];
  error_code error;
  socket_.close(error);
  socket_.open(endpoint.protocol(), error);
  if (error) {
    last_error_ = error.message();
    try_next();
    return;
  }
  // An address that does not answer must not use up the time of those behind it.
  Executor::TimerId attempt = 0;
  if (next_endpoint_ < endpoints_.size()) {
    const TimePoint now = loop_->clock().now();
    const auto left = static_cast<std::int64_t>(endpoints_.size() - next_endpoint_ + 1);
    attempt = loop_->schedule_at(now + (deadline_ - now) / left,
                                 [self = shared_from_this()] { self->socket_.cancel(); });
  }
  socket_.async_connect(endpoint, [self = shared_from_this(), attempt](const error_code& failed) {
    self->loop_->cancel(attempt);
    if (self->closed_) return;
    if (failed) {
      self->last_error_ =
          failed == asio::error::operation_aborted ? "no answer in time" : failed.message();
      self->try_next();
      return;
    }
    self->on_connected();
  });
}

void ClientConnection::on_connected() {
  error_code error;
  socket_.set_option(tcp::no_delay(true), error);
  socket_.native_non_blocking(true, error);
  transport_.emplace(socket_.native_handle(), tls_.get(), url_.host);
  endpoints_ = {};
  if (transport_->is_tls()) {
    pump();
    return;
  }
  check_established();
  if (flush()) wait_readable();
}

void ClientConnection::check_established() {
  if (established_ || !transport_->is_established()) return;
  established_ = true;
  loop_->cancel(std::exchange(timer_, 0));
}

void ClientConnection::write(std::string_view bytes) {
  if (closed_) return;
  out_.append(bytes);
  if (transport_) flush();
}

bool ClientConnection::flush() {
  while (sent_ < out_.size() && !waiting_writable_) {
    const iovec part{.iov_base = out_.data() + sent_, .iov_len = out_.size() - sent_};
    const IoResult result = transport_->write({&part, 1});
    switch (result.status) {
      case IoStatus::ok:
        sent_ += result.bytes;
        break;
      case IoStatus::want_write:
        wait_writable();
        return true;
      case IoStatus::want_read:
        // Reading moves the handshake on, and then the output.
        wait_readable();
        return true;
      case IoStatus::closed:
      case IoStatus::failed:
        // A reply that is there already explains more than a failure to write.
        if (!transport_->is_tls()) {
          sent_ = out_.size();
          wait_readable();
          break;
        }
        fail_later(kBadGateway, "The connection to " + url_.authority() +
                                    " failed: " + transport_->failure_reason());
        return false;
    }
  }
  if (sent_ < out_.size()) return true;
  sent_ = 0;
  out_.clear();
  if (out_.capacity() > kKeptOutput) out_.shrink_to_fit();
  return true;
}

void ClientConnection::wait_readable() {
  if (closed_ || input_ended_ || std::exchange(waiting_readable_, true)) return;
  socket_.async_wait(Socket::wait_read, [self = shared_from_this()](const error_code& error) {
    self->waiting_readable_ = false;
    if (!self->closed_ && !error) self->pump();
  });
}

void ClientConnection::wait_writable() {
  if (closed_ || std::exchange(waiting_writable_, true)) return;
  socket_.async_wait(Socket::wait_write, [self = shared_from_this()](const error_code& error) {
    self->waiting_writable_ = false;
    if (!self->closed_ && !error) self->pump();
  });
}

void ClientConnection::pump() {
  const auto self = shared_from_this();
  read();
  // What TLS could not send before it had read may go now.
  if (!closed_ && transport_ && !flush()) return;
}

void ClientConnection::read() {
  thread_local const std::unique_ptr<char[]> buffer(new char[kReadSize]);
  std::size_t total = 0;
  while (!closed_ && !input_ended_) {
    if (total >= kReadPerTurn) {
      // TLS may hold bytes that the socket no longer has: come back whether it is readable or not.
      loop_->post([self = shared_from_this()] {
        if (!self->closed_) self->pump();
      });
      return;
    }
    const IoResult result = transport_->read({buffer.get(), kReadSize});
    switch (result.status) {
      case IoStatus::ok:
        check_established();
        total += result.bytes;
        if (owner_ == nullptr) {
          close();
          return;
        }
        owner_->on_bytes({buffer.get(), result.bytes});
        if (result.bytes < kReadSize && !transport_->is_tls()) {
          wait_readable();
          return;
        }
        break;
      case IoStatus::want_read:
        check_established();
        wait_readable();
        return;
      case IoStatus::want_write:
        wait_writable();
        return;
      case IoStatus::closed:
        input_ended_ = true;
        if (!established_) {
          fail_with(kBadGateway, url_.authority() + " closed the connection during the handshake");
        } else if (owner_ == nullptr) {
          close();
        } else {
          owner_->on_end();
        }
        return;
      case IoStatus::failed:
        fail_with(kBadGateway, "The connection to " + url_.authority() +
                                   " failed: " + transport_->failure_reason());
        return;
    }
  }
}

void ClientConnection::fail_with(int code, const std::string& what) {
  if (closed_) return;
  const auto self = shared_from_this();
  close();
  if (Owner* const owner = std::exchange(owner_, nullptr)) owner->on_failure({code, what});
}

void ClientConnection::fail_later(int code, const std::string& what) {
  loop_->post([self = shared_from_this(), code, what] { self->fail_with(code, what); });
}

void ClientConnection::close() {
  if (std::exchange(closed_, true)) return;
  loop_->cancel(std::exchange(timer_, 0));
  if (transport_) transport_->shutdown_send();
  resolver_.cancel();
  error_code error;
  socket_.close(error);
}

}  // namespace sluice
