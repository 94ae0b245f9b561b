#include "server/host/shutdown_signals.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <ctime>
#include <fcntl.h>
#include <mutex>
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <thread>
#include <unistd.h>
#include <utility>

namespace sluice {
namespace {

constexpr std::array kSignals{SIGINT, SIGTERM, SIGHUP};

struct Receiver {
  std::atomic<int> pipe = -1;  // -1: free
};
/// Where the handler writes what it receives, one for each object.
std::array<Receiver, 16> receivers;
/// How many handlers use them now.
std::atomic<int> handlers_running = 0;
/// The process that they are for.
std::atomic<pid_t> receiving_process = -1;

/// Protects what follows.
std::mutex installing;
/// How many objects want each of kSignals.
std::array<int, kSignals.size()> users{};
/// What handled each of them before the first of those.
std::array<struct sigaction, kSignals.size()> handlers_before{};

/// Lets a signal do what it did before. To be called by its handler: the signal comes again when
/// that returns.
void handle_as_before(int signal) {
  const auto* const which = std::ranges::find(kSignals, signal);
  ::sigaction(signal, &handlers_before[static_cast<std::size_t>(which - kSignals.begin())],
              nullptr);
  ::raise(signal);
}

void hand_over(int signal) {
  const int error = errno;
  if (::getpid() != receiving_process) {
    // A forked process has this handler and the pipes too, but what is sent to it is not for its
    // parent.
    handle_as_before(signal);
  } else {
    const auto number = static_cast<unsigned char>(signal);
    ++handlers_running;
    for (const Receiver& receiver : receivers) {
      const int to = receiver.pipe;
      if (to < 0) continue;
      [[maybe_unused]] const ssize_t written = ::write(to, &number, 1);
    }
    --handlers_running;
  }
  errno = error;
}

/// In a forked process: the receivers are those of its parent. `installing` must be held.
void forget_parent() {
  if (receiving_process.exchange(::getpid()) == ::getpid()) return;
  for (std::size_t i = 0; i < kSignals.size(); ++i) {
    if (std::exchange(users[i], 0) > 0) ::sigaction(kSignals[i], &handlers_before[i], nullptr);
  }
  for (Receiver& receiver : receivers) receiver.pipe = -1;
  handlers_running = 0;
}

Receiver* receiver_of(int pipe) {
  for (Receiver& receiver : receivers) {
    if (receiver.pipe == pipe) return &receiver;
  }
  return nullptr;
}

bool is_ignored(int signal) {
  struct sigaction action{};
  return ::sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

}  // namespace

ShutdownSignals::ShutdownSignals(Hangup hangup)
    : hangup_(hangup), input_ended_(::eventfd(0, EFD_CLOEXEC)) {
  sigemptyset(&signals_);
  sigaddset(&signals_, SIGINT);
  sigaddset(&signals_, SIGTERM);
  const bool outlives_terminal = is_ignored(SIGHUP);
  if (hangup == Hangup::reloads || !outlives_terminal) sigaddset(&signals_, SIGHUP);
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (!outlives_terminal && terminal_ < 0 && ::isatty(stream) == 1) terminal_ = stream;
  }
  pthread_sigmask(SIG_SETMASK, nullptr, &before_);
  signal_ = Descriptor(::signalfd(-1, &signals_, SFD_CLOEXEC));

  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC | O_NONBLOCK) != 0) return;
  handed_over_ = Descriptor(ends[0]);
  hands_over_ = Descriptor(ends[1]);
  const std::scoped_lock lock(installing);
  forget_parent();
  Receiver* const free = receiver_of(-1);
  if (free == nullptr) return;
  free->pipe = hands_over_.get();
  struct sigaction action{};
  action.sa_handler = hand_over;
  action.sa_flags = SA_RESTART;
  for (std::size_t i = 0; i < kSignals.size(); ++i) {
    if (sigismember(&signals_, kSignals[i]) != 1 || users[i]++ > 0) continue;
    ::sigaction(kSignals[i], &action, &handlers_before[i]);
  }
}

ShutdownSignals::~ShutdownSignals() {
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  while (take() != SignalRequest::none) {
  }
  const std::scoped_lock lock(installing);
  Receiver* const mine = hands_over_ ? receiver_of(hands_over_.get()) : nullptr;
  if (mine == nullptr) return;
  for (std::size_t i = 0; i < kSignals.size(); ++i) {
    if (sigismember(&signals_, kSignals[i]) != 1 || --users[i] > 0) continue;
    ::sigaction(kSignals[i], &handlers_before[i], nullptr);
  }
  mine->pipe = -1;
  // Its number may soon be that of another file.
  while (handlers_running > 0) std::this_thread::yield();
}

void ShutdownSignals::input_ended() const {
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(input_ended_.get(), &one, sizeof one);
}

bool ShutdownSignals::has_hung_up() const {
  pollfd terminal{.fd = terminal_, .events = 0, .revents = 0};
  return terminal_ >= 0 && ::poll(&terminal, 1, 0) > 0 && (terminal.revents & POLLHUP) != 0;
}

SignalRequest ShutdownSignals::wait() const {
  std::array<pollfd, 3> either{{{.fd = signal_.get(), .events = POLLIN, .revents = 0},
                                {.fd = handed_over_.get(), .events = POLLIN, .revents = 0},
                                {.fd = input_ended_.get(), .events = POLLIN, .revents = 0}}};
  while (::poll(either.data(), either.size(), -1) < 0) {
  }
  return take();
}

int ShutdownSignals::take_signal() const {
  unsigned char number = 0;
  while (handed_over_ && ::read(handed_over_.get(), &number, 1) == 1) {
    if (sigismember(&signals_, number) == 1) return number;
  }
  const timespec now{};
  return std::max(0, sigtimedwait(&signals_, nullptr, &now));
}

SignalRequest ShutdownSignals::take() const {
  const int signal = take_signal();
  if (signal == 0) return SignalRequest::none;
  const bool reloads = signal == SIGHUP && hangup_ == Hangup::reloads && !has_hung_up();
  return reloads ? SignalRequest::reload : SignalRequest::end;
}

void ShutdownSignals::exit_at_once() const {
  sigset_t ends = signals_;
  if (hangup_ == Hangup::reloads) sigdelset(&ends, SIGHUP);
  struct sigaction exit{};
  exit.sa_handler = [](int) { ::_exit(0); };
  for (const int signal : kSignals) {
    if (sigismember(&ends, signal) == 1) ::sigaction(signal, &exit, nullptr);
  }
  pthread_sigmask(SIG_UNBLOCK, &ends, nullptr);
  while (const int signal = take_signal()) {
    if (sigismember(&ends, signal) == 1) ::_exit(0);
  }
}

}  // namespace sluice
