#include "net/connection/socket_connection.hpp"

#include <sys/epoll.h>
#include <system_error>
#include <utility>

#include "core/log.hpp"
#include "core/log_limit.hpp"

namespace sluice {
namespace {

/// What a handshake holds, about: records both ways, the messages so far, keys.
constexpr std::uint32_t kHandshake = 64U << 10U;
/// OpenSSL makes room for as much as a ClientHello says that it has, up to 131,396 bytes, and for a
/// third more.
constexpr std::uint32_t kAwaitedHello = 192U << 10U;

}  // namespace

SocketConnection::SocketConnection(ConnectionWorker& worker, const OutputLimits& limits,
                                   Descriptor socket, const PeerAddress& peer, TlsContext* tls,
                                   ConnectionTicket ticket)
    : Connection(worker, peer, limits, tls != nullptr),
      socket_(std::move(socket)),
      transport_(socket_.get(), tls),
      ticket_(std::move(ticket)) {}

void SocketConnection::on_ready(std::uint32_t events) {
  unsigned readiness = 0;
  if ((events & EPOLLIN) != 0) readiness |= kReadable;
  if ((events & EPOLLOUT) != 0) readiness |= kWritable;
  if ((events & EPOLLRDHUP) != 0) readiness |= kInputEnd;
  if ((events & (EPOLLHUP | EPOLLERR)) != 0) readiness |= kGone;
  Connection::on_ready(readiness);
}

/// What a read costs with TLS does not show in its bytes: a handshake takes as long as thousands
/// of requests, or not, as the certificate's key is.
IoResult SocketConnection::read_tls(std::span<char> buffer) {
  // Nobody hears the answer to a hello who has said already that nothing follows it.
  if (is_at_end() && transport_.awaits_hello()) {
    worked(kMessageCost);
    return {IoStatus::failed, 0};
  }
  const Clock& clock = worker().loop.clock();
  const TimePoint begun = clock.now();
  const IoResult result = transport_.read(buffer);
  worked(static_cast<std::size_t>((clock.now() - begun) / kCostTime));
  return draw_handshake() ? result : IoResult{IoStatus::failed, 0};
}

/// Counts what the handshake holds among the buffers of all. False if its client has too many.
bool SocketConnection::draw_handshake() {
  MemoryBudget* const budget = worker().memory;
  const bool awaits_hello = transport_.awaits_hello();
  std::uint32_t held = awaits_hello ? kAwaitedHello : kHandshake;
  if (is_established()) held = 0;
  if (budget == nullptr || held == drawn_) return true;
  end_handshake();
  if (held == 0) return true;
  // Whatever else holds memory, there is some for handshakes; of that, less for hellos that do not
  // come whole.
  const std::size_t most = budget->limit() / (awaits_hello ? 4 : 2);
  if (ticket_.take_for_handshake(held, most)) {
    budget->acquire_beyond_limit(held);
    drawn_ = held;
    return true;
  }
  static LogLimit limit;
  if (const auto left_out = limit.take()) {
    log_warning("a TLS handshake is refused: those under way take too much memory",
                {{"limit", "http.max_total_buffers"},
                 {"peer", peer().to_string()},
                 {"left_out", *left_out}});
  }
  return false;
}

void SocketConnection::end_handshake() {
  if (drawn_ == 0) return;
  ticket_.give_back_of_handshake(drawn_);
  worker().memory->release(std::exchange(drawn_, 0));
}

IoResult SocketConnection::read_some(std::span<char> buffer) {
  if (is_tls()) return read_tls(buffer);
  IoResult result = transport_.read(buffer);
  // A read that left room has emptied the socket, and the kernel tells when more comes. What it has
  // told already, such as the end, it does not tell again.
  const bool has_emptied =
      result.status == IoStatus::ok && result.bytes < buffer.size() && !is_at_end();
  if (has_emptied) result.status = IoStatus::want_read;
  return result;
}

IoResult SocketConnection::write_some(std::span<const iovec> parts) {
  IoResult result = transport_.write(parts);
  if (result.status != IoStatus::ok || is_tls()) return result;
  std::size_t offered = 0;
  for (const iovec& part : parts) offered += part.iov_len;
  if (result.bytes < offered) result.status = IoStatus::want_write;
  return result;
}

bool SocketConnection::end_output() {
  transport_.shutdown_send();
  return true;
}

bool SocketConnection::attach() {
  try {
    worker().sockets->watch(socket_.get(), *this);
  } catch (const std::system_error&) {
    return false;
  }
  return true;
}

void SocketConnection::detach() {
  worker().sockets->unwatch(socket_.get(), *this);
}

void SocketConnection::close() {
  socket_.close();
  end_handshake();
  const ConnectionTicket gone = std::move(ticket_);
}

}  // namespace sluice
