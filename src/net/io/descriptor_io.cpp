#include "net/io/descriptor_io.hpp"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <string>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace sluice {
namespace {

bool is_socket(int descriptor) {
  struct stat status{};
  return ::fstat(descriptor, &status) == 0 && S_ISSOCK(status.st_mode);
}

/// Whether `descriptor` is open, and for `mode`.
bool is_open(int descriptor, int mode) {
  const int flags = ::fcntl(descriptor, F_GETFL);
  return flags >= 0 && ((flags & O_ACCMODE) == mode || (flags & O_ACCMODE) == O_RDWR);
}

IoResult failure(IoStatus again) {
  if (errno == EAGAIN || errno == EWOULDBLOCK) return {again, 0};
  return {IoStatus::failed, 0};
}

/// Another descriptor for the same file, pipe, terminal or socket, whose I/O does not wait.
Descriptor open_again(int descriptor, int mode) {
  if (!is_socket(descriptor)) {
    // Other processes (a shell, the reader of our log) share the open file and its flags. So it is
    // opened again.
    const std::string path = "/proc/self/fd/" + std::to_string(descriptor);
    Descriptor own(::open(path.c_str(), mode | O_NONBLOCK | O_CLOEXEC | O_NOCTTY));
    struct stat status{};
    // A file must continue at the shared offset, so it is not opened again.
    if (own && ::fstat(own.get(), &status) == 0 && !S_ISREG(status.st_mode)) return own;
  }
  Descriptor shared(::fcntl(descriptor, F_DUPFD_CLOEXEC, 3));
  struct stat status{};
  if (shared && ::fstat(shared.get(), &status) == 0 &&
      (S_ISFIFO(status.st_mode) || S_ISCHR(status.st_mode))) {
    // A pipe or terminal that could not be opened again, such as another user's.
    const int flags = ::fcntl(shared.get(), F_GETFL);
    ::fcntl(shared.get(), F_SETFL, flags | O_NONBLOCK);
  }
  return shared;
}

std::unexpected<Error> cannot_take_streams() {
  return fail(1, std::string("Cannot take standard input and output: ") + std::strerror(errno));
}

}  // namespace

DescriptorIo::DescriptorIo(int descriptor)
    : descriptor_(descriptor), is_socket_(is_socket(descriptor)) {}

IoResult DescriptorIo::read(std::span<char> into) const {
  for (;;) {
    const ssize_t got = is_socket_ ? ::recv(descriptor_, into.data(), into.size(), MSG_DONTWAIT)
                                   : ::read(descriptor_, into.data(), into.size());
    if (got > 0) return {IoStatus::ok, static_cast<std::size_t>(got)};
    if (got == 0) return {IoStatus::closed, 0};
    if (errno != EINTR) return failure(IoStatus::want_read);
  }
}

IoResult DescriptorIo::write(std::span<const iovec> parts) const {
  for (;;) {
    ssize_t sent = 0;
    if (is_socket_) {
      msghdr message{};
      message.msg_iov = const_cast<iovec*>(parts.data());
      message.msg_iovlen = parts.size();
      sent = ::sendmsg(descriptor_, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
    } else {
      sent = ::writev(descriptor_, parts.data(), static_cast<int>(parts.size()));
    }
    if (sent >= 0) return {IoStatus::ok, static_cast<std::size_t>(sent)};
    if (errno != EINTR) return failure(IoStatus::want_write);
  }
}

std::uint32_t DescriptorIo::unacknowledged() const {
  return is_socket_ ? unacknowledged_bytes(descriptor_) : 0;
}

Result<StandardStreams> open_standard_streams() {
  // Checked first: a descriptor that is opened later could get the number of a closed stream.
  if (!is_open(STDIN_FILENO, O_RDONLY)) {
    return fail(1, "Standard input is closed; messages come from there");
  }
  if (!is_open(STDOUT_FILENO, O_WRONLY)) {
    return fail(1, "Standard output is closed; messages go there");
  }
  StandardStreams streams{.input = open_again(STDIN_FILENO, O_RDONLY),
                          .output = open_again(STDOUT_FILENO, O_WRONLY)};
  if (!streams.input || !streams.output) return cannot_take_streams();
  return streams;
}

Result<void> divert_standard_streams() {
  const Descriptor nothing(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  if (!nothing || ::dup2(nothing.get(), STDIN_FILENO) < 0 ||
      ::dup2(STDERR_FILENO, STDOUT_FILENO) < 0) {
    return cannot_take_streams();
  }
  return {};
}

Result<StandardStreams> take_standard_streams() {
  Result<StandardStreams> streams = open_standard_streams();
  if (!streams) return streams;
  if (Result<void> diverted = divert_standard_streams(); !diverted) {
    return std::unexpected(std::move(diverted.error()));
  }
  return streams;
}

}  // namespace sluice
