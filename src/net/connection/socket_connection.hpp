#pragma once

#include <cstdint>

#include "net/connection/connection.hpp"
#include "net/connection/connection_ticket.hpp"
#include "net/loop/descriptor.hpp"
#include "net/loop/event_loop.hpp"

namespace sluice {

/// A connection over an accepted TCP socket, with TLS if a context is given. The worker must have a
/// loop for sockets.
class SocketConnection final : public Connection, private EventLoop::Watcher {
 public:
  /// `limits` must outlive the connection. `tls` is null for a plain connection, and needed only by
  /// the constructor.
  SocketConnection(ConnectionWorker& worker, const OutputLimits& limits, Descriptor socket,
                   const PeerAddress& peer, TlsContext* tls, ConnectionTicket ticket);

  [[nodiscard]] bool is_established() const override { return io_.is_established(); }

 private:
  void on_ready(std::uint32_t events) override;
  IoResult read_some(std::span<char> buffer) override;
  IoResult read_tls(std::span<char> buffer);
  IoResult write_some(std::span<const iovec> parts) override;
  [[nodiscard]] std::uint32_t unacknowledged() const override { return io_.unacknowledged(); }
  bool end_output() override;
  bool attach() override;
  void detach() override;
  void close() override;

  [[nodiscard]] bool draw_handshake();
  void end_handshake();

  Descriptor socket_;
  std::uint32_t drawn_ = 0;  // bytes of memory, for the handshake under way
  SocketIo io_;
  ConnectionTicket ticket_;
};

}  // namespace sluice
