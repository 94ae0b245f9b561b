#pragma once

#include <string>
#include <sys/stat.h>
#include <sys/types.h>

#include "core/error.hpp"
#include "net/loop/descriptor.hpp"

namespace sluice {

/// A Unix domain socket in the file system that listens. Destroying it removes the path, unless
/// something else is there by then.
class UnixListener {
 public:
  /// Binds `path` (at most 107 bytes) with `mode`, such as 0600: at no time can anybody else
  /// connect. A socket that nobody listens on is replaced; the error names what else is in the way.
  static Result<UnixListener> listen(const std::string& path, mode_t mode);

  UnixListener(UnixListener&&) noexcept = default;
  UnixListener& operator=(UnixListener&&) noexcept = default;
  ~UnixListener();

  /// Hands the listening socket out, once.
  [[nodiscard]] Descriptor take_socket() { return std::move(socket_); }

 private:
  UnixListener(std::string path, Descriptor socket);

  std::string path_;
  Descriptor socket_;
  dev_t device_ = 0;
  ino_t inode_ = 0;
};

/// The user at the other end of a connected Unix domain socket, as the kernel vouches (unix(7),
/// SO_PEERCRED).
Result<uid_t> peer_user(const Descriptor& socket);

}  // namespace sluice
