#include "net/socket_connection.hpp"

#include <sys/epoll.h>
#include <system_error>
#include <utility>

namespace sluice {

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
IoResult SocketConnection::read_tls(std::span<char> room) {
  const Clock& clock = worker().loop.clock();
  const TimePoint begun = clock.now();
  const IoResult result = transport_.read(room);
  worked(static_cast<std::size_t>((clock.now() - begun) / kCostTime));
  return result;
}

IoResult SocketConnection::read_some(std::span<char> room) {
  if (is_tls()) return read_tls(room);
  IoResult result = transport_.read(room);
  // A read that left room has emptied the socket, and the kernel tells when more comes. What it has
  // told already, such as the end, it does not tell again.
  const bool has_emptied =
      result.status == IoStatus::ok && result.bytes < room.size() && !is_at_end();
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
  const ConnectionTicket gone = std::move(ticket_);
}

}  // namespace sluice
