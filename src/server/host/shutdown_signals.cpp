#include "server/host/shutdown_signals.hpp"

#include <array>
#include <cstdint>
#include <ctime>
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

namespace sluice {
namespace {

bool is_ignored(int signal) {
  struct sigaction action{};
  return ::sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

}  // namespace

ShutdownSignals::ShutdownSignals() : input_ended_(::eventfd(0, EFD_CLOEXEC)) {
  sigemptyset(&signals_);
  sigaddset(&signals_, SIGINT);
  sigaddset(&signals_, SIGTERM);
  if (!is_ignored(SIGHUP)) sigaddset(&signals_, SIGHUP);
  pthread_sigmask(SIG_BLOCK, &signals_, &before_);
  signal_ = Descriptor(::signalfd(-1, &signals_, SFD_CLOEXEC));
}

ShutdownSignals::~ShutdownSignals() {
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

void ShutdownSignals::input_ended() const {
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(input_ended_.get(), &one, sizeof one);
}

void ShutdownSignals::wait() const {
  std::array<pollfd, 2> either{{{.fd = signal_.get(), .events = POLLIN, .revents = 0},
                                {.fd = input_ended_.get(), .events = POLLIN, .revents = 0}}};
  while (::poll(either.data(), either.size(), -1) < 0) {
  }
  static_cast<void>(take_signal());
}

bool ShutdownSignals::take_signal() const {
  const timespec now{};
  return sigtimedwait(&signals_, nullptr, &now) > 0;
}

}  // namespace sluice
