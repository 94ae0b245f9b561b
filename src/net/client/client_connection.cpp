#include "net/client/client_connection.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <memory>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <system_error>
#include <utility>

#include "core/release_memory.hpp"
#include "net/http/status_codes.hpp"

namespace sluice {
namespace {

constexpr std::size_t kMaxEndpoints = 8;
constexpr std::size_t kReadSize = std::size_t{64} << 10U;
/// How long one connection is read before others have their turn, however short the messages are
/// that come. The time is looked at between slices.
constexpr Duration kReadFor = std::chrono::milliseconds(1);
constexpr std::size_t kSlice = std::size_t{1} << 10U;
/// So many bytes do not wait for the end of the turn.
constexpr std::size_t kSentAtOnce = std::size_t{16} << 10U;
/// When nothing has come for so many seconds, the kernel probes whether the peer's system is there,
/// and again so often. If it does not say so, the connection fails after kProbes.
constexpr int kProbeAfter = 30;
constexpr int kProbeEvery = 10;
constexpr int kProbes = 6;

/// Has the kernel notice a peer that has gone without a word. Sockets that are not TCP ignore this.
void watch_peer(const Descriptor& socket) {
  const int on = 1;
  ::setsockopt(socket.get(), SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  ::setsockopt(socket.get(), IPPROTO_TCP, TCP_KEEPIDLE, &kProbeAfter, sizeof kProbeAfter);
  ::setsockopt(socket.get(), IPPROTO_TCP, TCP_KEEPINTVL, &kProbeEvery, sizeof kProbeEvery);
  ::setsockopt(socket.get(), IPPROTO_TCP, TCP_KEEPCNT, &kProbes, sizeof kProbes);
}

}  // namespace

Result<ConnectionRoute> route_to(const Url& url, const Dial& dial, const ProxySettings* proxies,
                                 bool is_tunnelled) {
  if (dial || proxies == nullptr) return ConnectionRoute{.dial = dial};
  Result<std::optional<ProxyServer>> proxy = proxies->proxy_for(url);
  if (!proxy) return std::unexpected(std::move(proxy.error()));
  return ConnectionRoute{.proxy = *std::move(proxy), .is_tunnelled = is_tunnelled};
}

ClientConnection::ClientConnection(EventLoop& loop, const Url& url, std::shared_ptr<TlsContext> tls,
                                   ConnectionRoute route)
    : loop_(&loop),
      url_(url),
      tls_(url.is_tls() ? std::move(tls) : nullptr),
      route_(std::move(route)) {
  if (route_.proxy && route_.is_tunnelled) tunnel_.emplace(url_, *route_.proxy);
}

bool ClientConnection::leads_to(const Url& url, const ConnectionRoute& route) const {
  if (url.port != url_.port || url.host != url_.host || url.scheme != url_.scheme) return false;
  if (!route.proxy || !route_.proxy) return !route.proxy && !route_.proxy;
  return route.proxy->label() == route_.proxy->label();
}

void ClientConnection::connect(Duration timeout) {
  if (url_.is_tls() && tls_ == nullptr) {
    fail_later(kBadGateway, "No TLS settings for " + url_.scheme + "://" + url_.authority());
    return;
  }
  if (tunnel_) {
    Result<std::string> request = tunnel_->request();
    if (!request) {
      fail_later(kBadRequest, request.error().message);
      return;
    }
    out_ = *std::move(request);
  }
  deadline_ = loop_->clock().now() + timeout;
  timer_ = loop_->schedule_at(deadline_, [self = shared_from_this()] {
    self->timer_ = 0;
    self->fail_with(kGatewayTimeout, "Cannot connect to " + self->peer() + ": no answer in time");
  });
  if (route_.dial) {
    dial();
    return;
  }
  Endpoints literal = endpoints_of_address(url_.host, url_.port);
  if (!literal.empty() && !keep_allowed(literal)) return;
  if (route_.proxy) {
    look_up(route_.proxy->host, route_.proxy->port);
  } else if (!literal.empty()) {
    try_all(std::move(literal));
  } else {
    look_up(url_.host, url_.port);
  }
}

void ClientConnection::look_up(const std::string& host, std::uint16_t port) {
  lookup_.start(*loop_, host, port, [this](Result<Endpoints> found) {
    const auto self = shared_from_this();
    if (!found) {
      fail_with(kBadGateway, "Cannot find " + (route_.proxy ? peer() : url_.host) + ": " +
                                 found.error().message);
    } else if (route_.proxy || keep_allowed(*found)) {
      try_all(*std::move(found));
    }
  });
}

bool ClientConnection::keep_allowed(Endpoints& endpoints) {
  if (!may_connect_) return true;
  std::erase_if(endpoints, [this](const Endpoint& each) { return !may_connect_(each); });
  if (!endpoints.empty()) return true;
  fail_later(kBadRequest, url_.authority() + " has only addresses that may not be asked");
  return false;
}

std::string ClientConnection::peer() const {
  const bool is_proxy = route_.proxy && (tunnel_ || !route_.is_tunnelled);
  return is_proxy ? "the " + route_.proxy->label() : url_.authority();
}

void ClientConnection::dial() {
  Result<Descriptor> dialled = route_.dial(url_);
  if (!dialled) {
    fail_later(kBadGateway,
               "Cannot connect to " + url_.authority() + ": " + dialled.error().message);
    return;
  }
  socket_ = std::move(*dialled);
  await_connection();
}

void ClientConnection::try_all(Endpoints endpoints) {
  endpoints_ = std::move(endpoints);
  endpoints_.resize(std::min(endpoints_.size(), kMaxEndpoints));
  try_next();
}

void ClientConnection::try_next() {
  if (next_endpoint_ == endpoints_.size()) {
    fail_later(kBadGateway, "Cannot connect to " + peer() + ": " + last_error_);
    return;
  }
  const Endpoint& endpoint = endpoints_[next_endpoint_++];
  const auto* const address = reinterpret_cast<const sockaddr*>(&endpoint.address);
  socket_ = Descriptor(
      ::socket(address->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_TCP));
  if (!socket_ || (::connect(socket_.get(), address, endpoint.size) != 0 && errno != EINPROGRESS)) {
    give_up_endpoint(errno);
    return;
  }
  // An address that does not answer must not use up the time of the remaining ones.
  if (next_endpoint_ < endpoints_.size()) {
    const TimePoint now = loop_->clock().now();
    const auto left = static_cast<std::int64_t>(endpoints_.size() - next_endpoint_ + 1);
    endpoint_timer_ = loop_->schedule_at(now + (deadline_ - now) / left, [this] {
      const auto self = shared_from_this();
      endpoint_timer_ = 0;
      loop_->unwatch(socket_.get(), *this);
      give_up_endpoint(ETIMEDOUT);
    });
  }
  await_connection();
}

void ClientConnection::await_connection() {
  try {
    loop_->watch(socket_.get(), *this);
  } catch (const std::system_error& error) {
    loop_->cancel(std::exchange(endpoint_timer_, 0));
    give_up_endpoint(error.code().value());
  }
}

void ClientConnection::give_up_endpoint(int error) {
  socket_.close();
  last_error_ = error == ETIMEDOUT ? "no answer in time" : std::strerror(error);
  try_next();
}

void ClientConnection::on_ready(std::uint32_t events) {
  const auto self = shared_from_this();
  if (io_) {
    if ((events & EPOLLOUT) != 0) writable_ = true;
    if ((events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0) peer_ended_ = true;
    pump();
    return;
  }
  loop_->cancel(std::exchange(endpoint_timer_, 0));
  int error = 0;
  socklen_t size = sizeof error;
  ::getsockopt(socket_.get(), SOL_SOCKET, SO_ERROR, &error, &size);
  if (error != 0) {
    loop_->unwatch(socket_.get(), *this);
    give_up_endpoint(error);
    return;
  }
  peer_ended_ = (events & (EPOLLRDHUP | EPOLLHUP)) != 0;
  on_connected();
}

void ClientConnection::on_connected() {
  const int on = 1;
  ::setsockopt(socket_.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  watch_peer(socket_);
  io_.emplace(socket_.get(), tunnel_ ? nullptr : tls_.get(), url_.host);
  release_memory(endpoints_);
  if (!io_->is_tls()) check_established();
  pump();
}

bool ClientConnection::open_tunnel(std::string_view bytes) {
  if (const Result<void> fed = tunnel_->feed(bytes); !fed) {
    fail_with(fed.error().code, fed.error().message);
    return false;
  }
  if (!tunnel_->is_open()) return true;
  tunnel_.reset();
  // What was left to send was for the proxy.
  out_ = std::exchange(waiting_, {});
  sent_ = 0;
  io_.emplace(socket_.get(), tls_.get(), url_.host);
  return true;
}

void ClientConnection::check_established() {
  if (established_ || tunnel_ || !io_->is_established()) return;
  established_ = true;
  loop_->cancel(std::exchange(timer_, 0));
  loop_->post([self = shared_from_this()] {
    if (!self->closed_ && self->owner_ != nullptr) self->owner_->on_established();
  });
}

void ClientConnection::write(std::string bytes, std::shared_ptr<void> memory) {
  if (closed_) return;
  memory_.keep(std::move(memory), left_ + queued_bytes() + bytes.size());
  std::string& out = tunnel_ ? waiting_ : out_;
  if (out.empty()) {
    out = std::move(bytes);
  } else {
    out.append(bytes);
  }
  if (tunnel_) return;
  if (!io_) return;
  if (queued_bytes() >= kSentAtOnce) {
    flush();
  } else {
    loop_->at_turn_end(*this);
  }
}

/// Sending takes much code of the system. If what all connections have written is sent in one go,
/// the processor's caches need not take turns between that code and ours.
void ClientConnection::on_turn_end() {
  const auto self = shared_from_this();
  send_rest();
}

void ClientConnection::send_rest() {
  if (closed_ || !io_ || queued_bytes() == 0) return;
  if (flush() && queued_bytes() == 0 && owner_ != nullptr) owner_->on_drained();
}

bool ClientConnection::flush() {
  while (sent_ < out_.size() && writable_) {
    const iovec part{.iov_base = out_.data() + sent_, .iov_len = out_.size() - sent_};
    const IoResult result = io_->write({&part, 1});
    switch (result.status) {
      case IoStatus::ok:
        sent_ += result.bytes;
        left_ += result.bytes;
        break;
      case IoStatus::want_write:
        writable_ = false;
        memory_.release(left_);
        return true;
      case IoStatus::want_read:
        // Reading continues the handshake, and then the output.
        return true;
      case IoStatus::closed:
      case IoStatus::failed:
        // A reply that has already arrived explains more than a failed write.
        if (!io_->is_tls()) {
          left_ += out_.size() - sent_;
          sent_ = out_.size();
          break;
        }
        fail_later(kBadGateway,
                   "The connection to " + peer() + " failed: " + io_->failure_reason());
        return false;
    }
  }
  memory_.release(left_);
  if (sent_ < out_.size()) return true;
  sent_ = 0;
  release_memory(out_);
  return true;
}

void ClientConnection::pump() {
  const auto self = shared_from_this();
  read();
  // TLS may now be able to send what it could not send before it had read.
  send_rest();
}

void ClientConnection::pump_later() {
  if (std::exchange(pumps_later_, true)) return;
  // A turn of the loop may run several rounds of posted tasks, but a timer once.
  loop_->schedule_at(loop_->clock().now(), [self = shared_from_this()] {
    self->pumps_later_ = false;
    if (!self->closed_ && self->io_) self->pump();
  });
}

void ClientConnection::acknowledge_at_once() {
  const int on = 1;
  if (io_) flush();  // sending turns it off
  if (socket_) ::setsockopt(socket_.get(), IPPROTO_TCP, TCP_QUICKACK, &on, sizeof on);
}

void ClientConnection::pause(bool is_paused) {
  // Whatever has come meanwhile is not reported again.
  if (std::exchange(is_paused_, is_paused) && !is_paused) pump_later();
}

void ClientConnection::read() {
  thread_local const std::unique_ptr<char[]> buffer(new char[kReadSize]);
  const TimePoint until = loop_->clock().now() + kReadFor;
  if (closed_ || is_held() || pumps_later_) return;
  if (std::string rest = std::exchange(unread_, {}); !rest.empty() && !pass(rest, until)) return;
  while (!closed_ && !input_ended_ && !is_held()) {
    // Continues even if the socket is not readable: TLS may hold bytes that it has read already.
    if (loop_->clock().now() >= until) return pump_later();
    const IoResult result = io_->read({buffer.get(), kReadSize});
    switch (result.status) {
      case IoStatus::ok:
        check_established();
        if (tunnel_) {
          if (!open_tunnel({buffer.get(), result.bytes})) return;
          if (!tunnel_) continue;  // reading begins TLS
          break;
        }
        if (!pass({buffer.get(), result.bytes}, until)) return;
        // A read that did not fill the buffer has emptied the socket, and the kernel reports when
        // more arrives.
        if (result.bytes < kReadSize && !peer_ended_ && !closed_ && !io_->is_tls()) return;
        break;
      case IoStatus::want_read:
        check_established();
        return;
      case IoStatus::want_write:
        writable_ = false;
        return;
      case IoStatus::closed:
        input_ended_ = true;
        if (!established_) {
          fail_with(kBadGateway,
                    "The connection to " + peer() + " was closed during the handshake");
        } else if (owner_ == nullptr) {
          close();
        } else {
          owner_->on_end();
        }
        return;
      case IoStatus::failed:
        fail_with(kBadGateway, "The connection to " + peer() + " failed: " + io_->failure_reason());
        return;
    }
  }
}

bool ClientConnection::pass(std::span<char> bytes, TimePoint until) {
  while (true) {
    Owner* const owner = owner_;
    if (owner == nullptr) {
      close();
      return false;
    }
    const std::span<char> slice = bytes.first(std::min(bytes.size(), kSlice));
    owner->on_bytes(slice);
    bytes = bytes.subspan(slice.size());
    if (closed_) return false;
    if (bytes.empty()) return true;
    if (owner_ != owner) {
      // It has all that it has asked for, and nobody else has asked for this.
      fail_with(kBadGateway, "The connection to " + peer() + " is out of step");
      return false;
    }
    const bool is_time = loop_->clock().now() >= until;
    if (!is_held() && !is_time) continue;
    unread_.assign(bytes.data(), bytes.size());
    if (!is_held()) pump_later();
    return false;
  }
}

void ClientConnection::fail_with(int code, const std::string& what) {
  if (closed_) return;
  const auto self = shared_from_this();
  close();
  if (Owner* const owner = std::exchange(owner_, nullptr)) owner->on_failure({code, what});
}

void ClientConnection::fail_later(int code, const std::string& what) {
  if (closed_) return;
  loop_->post([self = shared_from_this(), code, what] { self->fail_with(code, what); });
}

void ClientConnection::close() {
  if (std::exchange(closed_, true)) return;
  loop_->forget(*this);
  // What was written in this turn was to be sent.
  if (io_) flush();
  loop_->cancel(std::exchange(timer_, 0));
  loop_->cancel(std::exchange(endpoint_timer_, 0));
  lookup_.forget();
  memory_.clear();
  if (!socket_) return;
  loop_->unwatch(socket_.get(), *this);
  if (io_) io_->shutdown_send();
  socket_.close();
}

}  // namespace sluice
