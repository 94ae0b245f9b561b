#pragma once

#include <array>
#include <csignal>
#include <cstdint>
#include <ctime>
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "net/descriptor.hpp"

namespace sluice {

/// What ends a server: SIGINT and SIGTERM, and the end of standard input. While one lives, the
/// signals are blocked in the thread that made it and those that it starts.
class Endings {
 public:
  Endings() : input_ended_(::eventfd(0, EFD_CLOEXEC)) {
    sigemptyset(&signals_);
    sigaddset(&signals_, SIGINT);
    sigaddset(&signals_, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &signals_, nullptr);
    signal_ = Descriptor(::signalfd(-1, &signals_, SFD_CLOEXEC));
  }

  /// Thread-safe.
  void input_ended() const {
    const std::uint64_t one = 1;
    [[maybe_unused]] const ssize_t written = ::write(input_ended_.get(), &one, sizeof one);
  }
  /// Waits for the first of them. A signal is taken.
  void wait() const {
    std::array<pollfd, 2> either{{{.fd = signal_.get(), .events = POLLIN, .revents = 0},
                                  {.fd = input_ended_.get(), .events = POLLIN, .revents = 0}}};
    while (::poll(either.data(), either.size(), -1) < 0) {
    }
    static_cast<void>(take_signal());
  }
  /// Whether there has been a signal that has not been taken.
  [[nodiscard]] bool take_signal() const {
    const timespec now{};
    return sigtimedwait(&signals_, nullptr, &now) > 0;
  }

 private:
  sigset_t signals_{};
  Descriptor signal_;
  Descriptor input_ended_;
};

}  // namespace sluice
