#include "cli/session/bounded_log.hpp"

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

#include "cli/options/exit_code.hpp"

namespace sluice {

Result<std::unique_ptr<BoundedLog>> BoundedLog::open(const std::string& path) {
  const auto refused = [&path] { return fail(kExitFailure, path + ": " + std::strerror(errno)); };
  Descriptor file(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW,
                         S_IRUSR | S_IWUSR));
  Descriptor over(::eventfd(0, EFD_CLOEXEC));
  std::array<int, 2> ends{};
  if (!file || !over || ::pipe2(ends.data(), O_CLOEXEC) != 0) return refused();
  Descriptor input(ends[0]);
  const Descriptor output(ends[1]);
  // Only this end: those who write wait while the pipe is full.
  if (::fcntl(input.get(), F_SETFL, O_NONBLOCK) != 0 || ::dup2(output.get(), STDERR_FILENO) < 0) {
    return refused();
  }
  return std::unique_ptr<BoundedLog>(
      new BoundedLog(std::move(file), std::move(input), std::move(over)));
}

BoundedLog::BoundedLog(Descriptor file, Descriptor input, Descriptor over)
    : file_(std::move(file)),
      input_(std::move(input)),
      over_(std::move(over)),
      thread_([this] { run(); }) {}

BoundedLog::~BoundedLog() {
  const Descriptor nowhere(::open("/dev/null", O_WRONLY | O_CLOEXEC));
  ::dup2(nowhere.get(), STDERR_FILENO);
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(over_.get(), &one, sizeof one);
  thread_.join();
}

void BoundedLog::run() {
  std::array<pollfd, 2> either{{{.fd = input_.get(), .events = POLLIN, .revents = 0},
                                {.fd = over_.get(), .events = POLLIN, .revents = 0}}};
  while (either[1].revents == 0) {
    if (::poll(either.data(), either.size(), -1) < 0) continue;
    copy();
  }
  // At most what a full log has, as others may still write.
  for (std::size_t before = size_; size_ >= before && copy(); before = size_) {
  }
}

bool BoundedLog::copy() {
  std::array<char, 16384> piece{};
  const ssize_t got = ::read(input_.get(), piece.data(), piece.size());
  if (got <= 0) return false;
  const auto size = static_cast<std::size_t>(got);
  if (size_ + size > kMaxLog) {
    if (::ftruncate(file_.get(), 0) != 0 || ::lseek(file_.get(), 0, SEEK_SET) != 0) return false;
    size_ = 0;
  }
  // Without room on the disk, the lines are lost.
  [[maybe_unused]] const ssize_t written = ::write(file_.get(), piece.data(), size);
  size_ += size;
  return true;
}

}  // namespace sluice
