#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <sys/uio.h>

#include "net/io/tls.hpp"

struct bio_st;

namespace sluice {

/// The outcome of a non-blocking transfer.
enum class IoStatus : std::uint8_t {
  ok,          // `bytes` were moved; if 0, TLS read a record without data and there may be more
  want_read,   // nothing more until the socket is readable
  want_write,  // nothing more until the socket is writable
  closed,      // the peer has ended its side
  failed,
};
struct IoResult {
  IoStatus status = IoStatus::ok;
  std::size_t bytes = 0;
};

/// Bytes in the kernel that a socket's peer has not acknowledged (TCP) or read (Unix socket) yet.
std::uint32_t unacknowledged_bytes(int socket);

/// Moves bytes over a connected non-blocking socket, which it does not own. Uses TLS if a context
/// is given, in the context's role (client or server); the handshake happens within reads and
/// writes. The context is needed only by the constructor. On the server's side, a read takes at
/// most one TLS record, and reading fails after very many records in a row that carry no data.
/// Belongs to the connection's loop.
class SocketIo {
 public:
  /// `server` is for clients: the server's name or address, which the certificate must contain.
  SocketIo(int socket, TlsContext* tls, const std::string& server = {});
  ~SocketIo();
  SocketIo(const SocketIo&) = delete;
  SocketIo& operator=(const SocketIo&) = delete;

  [[nodiscard]] bool is_tls() const { return ssl_ != nullptr; }
  /// Whether the handshake, if there is one, is over.
  [[nodiscard]] bool is_established() const;
  /// Whether the first message of a TLS handshake (ClientHello) has not fully arrived.
  [[nodiscard]] bool awaits_hello() const;
  /// Why the last transfer failed. Call immediately after it.
  [[nodiscard]] std::string failure_reason() const;
  IoResult read(std::span<char> into);
  /// Sends as much of the parts as one call can.
  IoResult write(std::span<const iovec> parts);
  /// As unacknowledged_bytes().
  [[nodiscard]] std::uint32_t unacknowledged() const { return unacknowledged_bytes(socket_); }
  /// Tells the peer that nothing follows.
  void shutdown_send();

 private:
  IoResult tls_read(std::span<char> into);
  IoResult tls_result(int returned);
  static long on_bio(bio_st* bio, int operation, const char* data, std::size_t size, int argument,
                     long long_argument, int result, std::size_t* moved);

  int socket_;
  std::uint8_t takes_left_ = 0;    // how often OpenSSL may still read the socket
  bool is_held_back_ = false;      // it tried to read more often
  std::uint8_t barren_reads_ = 0;  // in a row that brought a record but no data
  ssl_st* ssl_ = nullptr;
};

}  // namespace sluice
