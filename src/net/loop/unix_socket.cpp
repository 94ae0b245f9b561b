#include "net/loop/unix_socket.hpp"

#include <cerrno>
#include <chrono>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <thread>
#include <unistd.h>
#include <utility>

#include "core/log/log.hpp"

namespace sluice {
namespace {

/// The kernel limits it to net.core.somaxconn.
constexpr int kUnixBacklog = 4096;

std::unexpected<Error> cannot_listen(const std::string& path, std::string_view why) {
  return fail(1, "Cannot listen on " + path + ": " + std::string(why));
}

/// How long to wait for other processes that start at the same time. They need far less.
constexpr auto kLockWait = std::chrono::milliseconds(500);
constexpr auto kLockRetry = std::chrono::milliseconds(10);

/// Locks the path's folder, so that processes that start there at the same time do not replace each
/// other's socket. If the folder cannot be read, or somebody keeps it locked, goes on without the
/// lock: otherwise anybody who may read the folder could keep this process from starting.
Descriptor lock_folder(const std::string& path) {
  const std::filesystem::path parent = std::filesystem::path(path).parent_path();
  Descriptor folder(
      ::open(parent.empty() ? "." : parent.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder) return folder;
  const auto give_up = std::chrono::steady_clock::now() + kLockWait;
  while (::flock(folder.get(), LOCK_EX | LOCK_NB) != 0 &&
         (errno == EWOULDBLOCK || errno == EINTR)) {
    if (std::chrono::steady_clock::now() >= give_up) {
      log_warning("somebody keeps the folder of the socket locked; going on without",
                  {{"path", std::string_view(path)}});
      break;
    }
    std::this_thread::sleep_for(kLockRetry);
  }
  return folder;
}

Descriptor new_socket() {
  return Descriptor(::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
}

/// The error says which paths there can be.
std::expected<sockaddr_un, std::string> address_of(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof address.sun_path) {
    return std::unexpected("a socket's path has 1 to " +
                           std::to_string(sizeof address.sun_path - 1) + " bytes");
  }
  std::memcpy(address.sun_path, path.data(), path.size());
  return address;
}

/// Whether somebody listens at `address`, as far as can be found out.
bool is_alive(const sockaddr_un& address) {
  const Descriptor probe = new_socket();
  return ::connect(probe.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 ||
         errno != ECONNREFUSED;
}

}  // namespace

UnixListener::UnixListener(std::string path, Descriptor socket)
    : path_(std::move(path)), socket_(std::move(socket)) {
  struct stat status{};
  if (::lstat(path_.c_str(), &status) == 0) {
    device_ = status.st_dev;
    inode_ = status.st_ino;
  }
}

UnixListener::~UnixListener() {
  struct stat status{};
  if (!path_.empty() && ::lstat(path_.c_str(), &status) == 0 && status.st_dev == device_ &&
      status.st_ino == inode_) {
    ::unlink(path_.c_str());
  }
}

Result<UnixListener> UnixListener::listen(const std::string& path, mode_t mode) {
  const auto named = address_of(path);
  if (!named) return cannot_listen(path, named.error());
  const sockaddr_un& address = *named;

  const Descriptor lock = lock_folder(path);
  struct stat status{};
  if (::lstat(path.c_str(), &status) == 0) {
    if (!S_ISSOCK(status.st_mode)) {
      return cannot_listen(path, "something that is no socket is there; choose another path");
    }
    if (is_alive(address)) {
      return cannot_listen(path, "another program listens there; stop it or choose another path");
    }
    ::unlink(path.c_str());
  }
  Descriptor socket = new_socket();
  // bind() creates the path with the socket's mode minus the umask; chmod() then sets the full
  // mode.
  if (!socket || ::fchmod(socket.get(), mode) != 0 ||
      ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    return cannot_listen(path, std::strerror(errno));
  }
  UnixListener listener(path, std::move(socket));
  if (::chmod(path.c_str(), mode) != 0 || ::listen(listener.socket_.get(), kUnixBacklog) != 0) {
    return cannot_listen(path, std::strerror(errno));
  }
  return listener;
}

Result<Descriptor> connect_unix_socket(const std::string& path) {
  const auto cannot = [&path](std::string_view why) {
    return fail(502, "Cannot connect to " + path + ": " + std::string(why));
  };
  const auto address = address_of(path);
  if (!address) return cannot(address.error());
  Descriptor socket = new_socket();
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&*address), sizeof *address) != 0) {
    return cannot(errno == ECONNREFUSED ? "nobody listens there"
                  : errno == EAGAIN     ? "too many clients wait there"
                                        : std::strerror(errno));
  }
  return socket;
}

Result<uid_t> peer_user(const Descriptor& socket) {
  ucred credentials{};
  socklen_t size = sizeof credentials;
  if (::getsockopt(socket.get(), SOL_SOCKET, SO_PEERCRED, &credentials, &size) != 0) {
    return fail(1, std::strerror(errno));
  }
  return credentials.uid;
}

}  // namespace sluice
