#include "net/connection/socket_connection.hpp"

#include <sys/epoll.h>
#include <system_error>
#include <utility>

#include "core/log/log.hpp"
#include "core/log/log_limit.hpp"

namespace sluice {
namespace {

/// About what a handshake holds: records in both directions, the messages so far, keys.
constexpr std::uint32_t kHandshake = 64U << 10U;
/// What an incomplete ClientHello may hold. OpenSSL allocates the size that it announces, up to
/// 131,396 bytes, and a third more.
constexpr std::uint32_t kAwaitedHello = 192U << 10U;

}  // namespace

SocketConnection::SocketConnection(ConnectionWorker& worker, const OutputLimits& limits,
                                   Descriptor socket, const PeerAddress& peer, TlsContext* tls,
                                   ConnectionTicket ticket)
    : Connection(worker, peer, limits, tls != nullptr),
      socket_(std::move(socket)),
      io_(socket_.get(), tls),
      ticket_(std::move(ticket)) {}

void SocketConnection::on_ready(std::uint32_t events) {
  unsigned readiness = 0;
  if ((events & EPOLLIN) != 0) readiness |= kReadable;
  if ((events & EPOLLOUT) != 0) readiness |= kWritable;
  if ((events & EPOLLRDHUP) != 0) readiness |= kInputEnd;
  if ((events & (EPOLLHUP | EPOLLERR)) != 0) readiness |= kGone;
  Connection::on_ready(readiness);
}

/// Counts a TLS read by its time, because its bytes do not show the cost: depending on the
/// certificate's key, a handshake can take as long as thousands of requests.
IoResult SocketConnection::read_tls(std::span<char> buffer) {
  // A peer that has ended its side cannot complete the handshake, so its hello is not answered.
  if (is_at_end() && io_.awaits_hello()) {
    worked(kMessageCost);
    return {IoStatus::failed, 0};
  }
  const Clock& clock = worker().loop.clock();
  const TimePoint begun = clock.now();
  const IoResult result = io_.read(buffer);
  worked(static_cast<std::size_t>((clock.now() - begun) / kCostTime));
  worker().interrupt_steps();
  return draw_handshake() ? result : IoResult{IoStatus::failed, 0};
}

/// Counts the memory of the handshake in the budget of all buffers. Returns false if the handshakes
/// of its client hold too much.
bool SocketConnection::draw_handshake() {
  MemoryBudget* const budget = worker().memory;
  const bool awaits_hello = io_.awaits_hello();
  std::uint32_t held = awaits_hello ? kAwaitedHello : kHandshake;
  if (is_established()) held = 0;
  if (budget == nullptr || held == drawn_) return true;
  end_handshake();
  if (held == 0) return true;
  // Handshakes may get memory even when others have used up the budget. Incomplete hellos may get
  // less of it than the rest.
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
  IoResult result = io_.read(buffer);
  // A read that did not fill the buffer has emptied the socket, and the kernel reports when more
  // arrives. What it has reported already, such as the end, it does not report again.
  const bool has_emptied =
      result.status == IoStatus::ok && result.bytes < buffer.size() && !is_at_end();
  if (has_emptied) result.status = IoStatus::want_read;
  return result;
}

IoResult SocketConnection::write_some(std::span<const iovec> parts) {
  IoResult result = io_.write(parts);
  if (result.status != IoStatus::ok || is_tls()) return result;
  std::size_t offered = 0;
  for (const iovec& part : parts) offered += part.iov_len;
  if (result.bytes < offered) result.status = IoStatus::want_write;
  return result;
}

bool SocketConnection::end_output() {
  io_.shutdown_send();
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
