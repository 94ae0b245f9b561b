#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <sys/uio.h>

#include "net/tls.hpp"

namespace sluice {

/// What a non-blocking transfer came to.
enum class IoStatus : std::uint8_t {
  ok,          // `bytes` were moved
  want_read,   // nothing more until the socket is readable
  want_write,  // nothing more until the socket is writable
  closed,      // the peer has ended its side
  failed,
};
struct IoResult {
  IoStatus status = IoStatus::ok;
  std::size_t bytes = 0;
};

/// Bytes that a socket's peer has not acknowledged, or taken, yet.
std::uint32_t unacknowledged_bytes(int socket);

/// Moves bytes over a connected non-blocking socket that it does not own, with TLS on top if a
/// context is given (on the context's side; the handshake happens within the transfers). The
/// context is needed only at the start. Belongs to the connection's loop.
class Transport {
 public:
  /// A client gives the name or address of its server, which the certificate must bear.
  Transport(int socket, TlsContext* tls, const std::string& server = {});
  ~Transport();
  Transport(const Transport&) = delete;
  Transport& operator=(const Transport&) = delete;

  [[nodiscard]] bool is_tls() const { return ssl_ != nullptr; }
  /// Whether the handshake, if there is one, is over.
  [[nodiscard]] bool is_established() const;
  /// Why the last transfer failed. Call at once after it.
  [[nodiscard]] std::string failure_reason() const;
  IoResult read(std::span<char> into);
  /// Sends as much of the parts as goes in one call.
  IoResult write(std::span<const iovec> parts);
  /// Bytes in the kernel that the peer has not acknowledged yet.
  [[nodiscard]] std::uint32_t unacknowledged() const { return unacknowledged_bytes(socket_); }
  /// Tells the peer that nothing follows.
  void shutdown_send();

 private:
  IoResult tls_result(int returned);

  int socket_;
  ssl_st* ssl_ = nullptr;
};

}  // namespace sluice
