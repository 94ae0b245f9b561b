#pragma once

#include <string>
#include <sys/stat.h>
#include <sys/types.h>

#include "core/error.hpp"
#include "net/loop/descriptor.hpp"

namespace sluice {

/// A listening Unix domain socket in the file system. The destructor removes the path unless
/// something else has replaced it.
class UnixListener {
 public:
  /// Binds `path` (at most 107 bytes) with `mode`, such as 0600, and listens. At no time can a user
  /// connect whom `mode` excludes. Replaces a socket on which nobody listens. The error says what
  /// else is at the path.
  static Result<UnixListener> listen(const std::string& path, mode_t mode);

  UnixListener(UnixListener&&) noexcept = default;
  UnixListener& operator=(UnixListener&&) noexcept = default;
  ~UnixListener();

  /// Hands out the listening socket. Call once.
  [[nodiscard]] Descriptor take_socket() { return std::move(socket_); }

 private:
  UnixListener(std::string path, Descriptor socket);

  std::string path_;
  Descriptor socket_;
  dev_t device_ = 0;
  ino_t inode_ = 0;
};

/// Connects to the socket at `path`, without waiting. The returned socket is non-blocking. Error:
/// 502, with the reason.
Result<Descriptor> connect_unix_socket(const std::string& path);

/// The user at the other end of a connected Unix domain socket, as the kernel reports it (unix(7),
/// SO_PEERCRED).
Result<uid_t> peer_user(const Descriptor& socket);

}  // namespace sluice
