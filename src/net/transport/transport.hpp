#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <sys/uio.h>

#include "net/transport/tls.hpp"

struct bio_st;

namespace sluice {

/// What a non-blocking transfer came to.
enum class IoStatus : std::uint8_t {
  ok,          // `bytes` were moved; none: TLS took something for itself, and there may be more
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
/// context is needed only at the start. On the server's side a read takes no more than one record
/// of TLS, and a peer fails that sends very many in a row that bring no bytes. Belongs to the
/// connection's loop.
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
  /// Whether there is a handshake whose first message has not come whole.
  [[nodiscard]] bool awaits_hello() const;
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
  IoResult tls_read(std::span<char> into);
  IoResult tls_result(int returned);
  static long on_bio(bio_st* bio, int operation, const char* data, std::size_t size, int argument,
                     long long_argument, int result, std::size_t* moved);

  int socket_;
  std::uint8_t takes_left_ = 0;    // how often OpenSSL may take bytes from the socket
  bool is_held_back_ = false;      // it wanted to take more often
  std::uint8_t barren_reads_ = 0;  // in a row that brought a record, but no bytes
  ssl_st* ssl_ = nullptr;
};

}  // namespace sluice
