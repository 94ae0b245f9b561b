#include "cli/terminal/interrupts.hpp"

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <poll.h>
#include <sys/eventfd.h>
#include <system_error>
#include <unistd.h>

namespace sluice {
namespace {

// Signal handlers can only use globals.
std::atomic<int> wake_fd = -1;
std::atomic<bool> end_seen = false;
std::atomic<bool> cont_seen = false;

void on_interrupt(int signal) {
  const int saved = errno;
  if (signal != SIGINT) end_seen = true;
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(wake_fd, &one, sizeof one);
  errno = saved;
}

/// The main purpose of this handler is to interrupt poll().
void on_nudge(int signal) {
  if (signal == SIGCONT) cont_seen = true;
}

struct sigaction install(int signal, void (*handler)(int)) {
  struct sigaction action{};
  struct sigaction old{};
  action.sa_handler = handler;
  sigemptyset(&action.sa_mask);
  ::sigaction(signal, &action, &old);
  return old;
}

}  // namespace

Interrupts::Interrupts() {
  wake_fd = ::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  if (wake_fd < 0) throw std::system_error(errno, std::generic_category(), "eventfd");
  end_seen = false;
  old_int_ = install(SIGINT, on_interrupt);
  old_term_ = install(SIGTERM, on_interrupt);
  old_hup_ = install(SIGHUP, on_interrupt);
  if (old_hup_.sa_handler == SIG_IGN) install(SIGHUP, SIG_IGN);  // nohup
  old_winch_ = install(SIGWINCH, on_nudge);
  old_cont_ = install(SIGCONT, on_nudge);
}

Interrupts::~Interrupts() {
  ::sigaction(SIGINT, &old_int_, nullptr);
  ::sigaction(SIGTERM, &old_term_, nullptr);
  ::sigaction(SIGHUP, &old_hup_, nullptr);
  ::sigaction(SIGWINCH, &old_winch_, nullptr);
  ::sigaction(SIGCONT, &old_cont_, nullptr);
  ::close(wake_fd.exchange(-1));
  end_seen = false;
}

int Interrupts::fd() {
  return wake_fd;
}

bool Interrupts::is_pending() {
  pollfd wait{wake_fd, POLLIN, 0};
  return ::poll(&wait, 1, 0) > 0;
}

bool Interrupts::take() {
  std::uint64_t count = 0;
  return ::read(wake_fd, &count, sizeof count) == sizeof count;
}

bool Interrupts::take_continued() {
  return cont_seen.exchange(false);
}

bool Interrupts::terminating() {
  return end_seen;
}

}  // namespace sluice
