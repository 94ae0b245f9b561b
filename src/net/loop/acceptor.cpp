#include "net/loop/acceptor.hpp"

#include <algorithm>
#include <arpa/inet.h>
#include <cerrno>
#include <cstring>
#include <memory>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <utility>

#include "core/log/log.hpp"
#include "core/log/log_limit.hpp"

namespace sluice {
namespace {

/// Connections accepted in a row. The limit keeps a flood of them from occupying the loop.
constexpr int kBatch = 64;
/// How long the acceptor pauses when the process has no descriptors left.
constexpr Duration kRest = std::chrono::milliseconds(100);
/// The kernel limits it to net.core.somaxconn.
constexpr int kBacklog = 4096;

PeerAddress peer_address(const sockaddr_storage& address) {
  PeerAddress peer;
  if (address.ss_family == AF_INET) {
    sockaddr_in v4{};
    std::memcpy(&v4, &address, sizeof v4);
    peer.ip[10] = 0xFF;
    peer.ip[11] = 0xFF;
    std::memcpy(peer.ip.data() + 12, &v4.sin_addr, 4);
    peer.port = ntohs(v4.sin_port);
  } else if (address.ss_family == AF_INET6) {
    sockaddr_in6 v6{};
    std::memcpy(&v6, &address, sizeof v6);
    std::memcpy(peer.ip.data(), &v6.sin6_addr, peer.ip.size());
    peer.port = ntohs(v6.sin6_port);
  }
  return peer;
}

void set_port(addrinfo& entry, std::uint16_t port) {
  if (entry.ai_family == AF_INET) {
    reinterpret_cast<sockaddr_in*>(entry.ai_addr)->sin_port = htons(port);
  } else {
    reinterpret_cast<sockaddr_in6*>(entry.ai_addr)->sin6_port = htons(port);
  }
}

std::uint16_t bound_port(int socket) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  ::getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size);
  return peer_address(address).port;
}

/// A listening socket, or nothing and errno.
Descriptor open_listener(const addrinfo& entry) {
  Descriptor socket(
      ::socket(entry.ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, entry.ai_protocol));
  if (!socket) return socket;
  const int on = 1;
  // The port can be bound again while old connections to it are still in the kernel.
  ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (::bind(socket.get(), entry.ai_addr, entry.ai_addrlen) != 0 ||
      ::listen(socket.get(), kBacklog) != 0) {
    return {};
  }
  return socket;
}

std::unexpected<Error> cannot_listen(const HostPort& place, std::string_view why) {
  return fail(1, "Cannot listen on " + to_text(place) + ": " + std::string(why));
}

std::string_view reason(int error) {
  if (error == EADDRINUSE) {
    return "the port is taken; stop what listens there, or choose another port";
  }
  if (error == EACCES) return "no permission for that port; choose one above 1023";
  return std::strerror(error);
}

}  // namespace

Result<std::vector<Descriptor>> listen_on(HostPort& place) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  addrinfo* list = nullptr;
  const int failure =
      ::getaddrinfo(place.host.c_str(), std::to_string(place.port).c_str(), &hints, &list);
  if (failure != 0) {
    return cannot_listen(place, "no such address (" + std::string(::gai_strerror(failure)) + ")");
  }
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(list, &::freeaddrinfo);
  std::vector<Descriptor> sockets;
  for (addrinfo* entry = list; entry != nullptr; entry = entry->ai_next) {
    set_port(*entry, place.port);
    Descriptor socket = open_listener(*entry);
    if (socket) {
      place.port = bound_port(socket.get());
      sockets.push_back(std::move(socket));
    } else if (sockets.empty()) {
      return cannot_listen(place, reason(errno));
    }
  }
  return sockets;
}

Acceptor::Acceptor(EventLoop& loop, Descriptor socket, Sink sink,
                   std::atomic<std::uint64_t>& errors)
    : loop_(&loop), socket_(std::move(socket)), sink_(std::move(sink)), errors_(&errors) {
  loop_->watch(socket_.get(), *this);
}

Acceptor::~Acceptor() {
  loop_->cancel(timer_);
  loop_->unwatch(socket_.get(), *this);
}

void Acceptor::on_ready(std::uint32_t /*events*/) {
  for (int i = 0; i < kBatch; ++i) {
    sockaddr_storage address{};
    socklen_t size = sizeof address;
    Descriptor socket(::accept4(socket_.get(), reinterpret_cast<sockaddr*>(&address), &size,
                                SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (socket) {
      const int on = 1;
      ::setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
      try {
        sink_(std::move(socket), peer_address(address));
      } catch (...) {
        // The next connections may have better luck; no event would tell of them again.
        static LogLimit limit;
        log_exception(limit, "A connection could not be taken");
        errors_->fetch_add(1, std::memory_order_relaxed);
      }
      continue;
    }
    const int error = errno;
    if (error == EAGAIN || error == EWOULDBLOCK) return;
    if (error == EINTR) continue;
    errors_->fetch_add(1, std::memory_order_relaxed);
    const bool is_shortage =
        error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM;
    if (!is_shortage) continue;  // only this connection has failed
    if (shortage_.take(loop_->clock().now())) {
      log_warning("cannot accept connections; raise the limit of open files (ulimit -n)",
                  {{"reason", std::string_view(std::strerror(error))}});
    }
    go_on_at(loop_->clock().now() + kRest);
    return;
  }
  go_on_at(loop_->clock().now());
}

void Acceptor::go_on_at(TimePoint when) {
  loop_->cancel(timer_);
  timer_ = loop_->schedule_at(when, [this] { on_ready(0); });
}

}  // namespace sluice
