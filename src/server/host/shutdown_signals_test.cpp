#include "server/host/shutdown_signals.hpp"

#include <array>
#include <csignal>
#include <gtest/gtest.h>
#include <pthread.h>
#include <pty.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <utility>

namespace sluice {
namespace {

bool is_blocked(int signal) {
  sigset_t now{};
  pthread_sigmask(SIG_SETMASK, nullptr, &now);
  return sigismember(&now, signal) == 1;
}

bool has_its_default(int signal) {
  struct sigaction now{};
  ::sigaction(signal, nullptr, &now);
  return now.sa_handler == SIG_DFL;
}

/// What TSan cannot run: it delivers no signal to a process forked from one with threads.
#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define SKIP_WITHOUT_SIGNALS_IN_CHILDREN() GTEST_SKIP()
#endif
#endif
#ifndef SKIP_WITHOUT_SIGNALS_IN_CHILDREN
#define SKIP_WITHOUT_SIGNALS_IN_CHILDREN()
#endif

void expect_ended_by_sigterm(pid_t child) {
  ::kill(child, SIGTERM);
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM) << status;
}

/// A terminal in place of standard input, while the object exists.
class TerminalAsInput {
 public:
  TerminalAsInput() : before_(::dup(STDIN_FILENO)) {
    int other = -1;
    EXPECT_EQ(::openpty(&terminal_, &other, nullptr, nullptr, nullptr), 0);
    ::dup2(other, STDIN_FILENO);
    ::close(other);
  }
  ~TerminalAsInput() {
    hang_up();
    ::dup2(before_, STDIN_FILENO);
    ::close(before_);
  }
  TerminalAsInput(const TerminalAsInput&) = delete;
  TerminalAsInput& operator=(const TerminalAsInput&) = delete;

  void hang_up() {
    if (terminal_ >= 0) ::close(std::exchange(terminal_, -1));
  }

 private:
  int before_;
  int terminal_ = -1;
};

TEST(ShutdownSignals, AreSignalsWhichArriveAsBeforeAfterwards) {
  std::thread([] {
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
      // A shell may have started the tests with SIGINT ignored, as a job in the background.
      ::signal(signal, SIG_DFL);
      {
        const ShutdownSignals signals;
        EXPECT_EQ(signals.take(), SignalRequest::none);
        pthread_kill(pthread_self(), signal);
        EXPECT_EQ(signals.wait(), SignalRequest::end);
        EXPECT_EQ(signals.take(), SignalRequest::none);
      }
      EXPECT_FALSE(is_blocked(signal));
      EXPECT_TRUE(has_its_default(signal));
    }
  }).join();
}

TEST(ShutdownSignals, GetWhatAThreadReceivesThatWasThereBefore) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe(ends.data()), 0);
  // Waits in a system call that a sanitizer knows, so that it runs handlers meanwhile.
  std::thread other([&] {
    char byte = 0;
    EXPECT_EQ(::read(ends[0], &byte, 1), 1);
  });
  std::thread([&other] {
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
      const ShutdownSignals signals(Hangup::reloads);
      pthread_kill(other.native_handle(), signal);
      EXPECT_EQ(signals.wait(), signal == SIGHUP ? SignalRequest::reload : SignalRequest::end);
      EXPECT_EQ(signals.take(), SignalRequest::none);
    }
  }).join();
  EXPECT_EQ(::write(ends[1], "x", 1), 1);
  other.join();
  for (const int end : ends) ::close(end);
}

TEST(ShutdownSignals, AreTakenWhereTheProgramBlocksThem) {
  std::thread([] {
    sigset_t all{};
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, nullptr);
    const ShutdownSignals signals;
    pthread_kill(pthread_self(), SIGTERM);
    EXPECT_EQ(signals.wait(), SignalRequest::end);
    EXPECT_EQ(signals.take(), SignalRequest::none);
    EXPECT_TRUE(is_blocked(SIGTERM));
  }).join();
}

TEST(ShutdownSignals, AreToldToEachObject) {
  std::thread([] {
    const ShutdownSignals first;
    {
      const ShutdownSignals second;
      pthread_kill(pthread_self(), SIGTERM);
      EXPECT_EQ(second.wait(), SignalRequest::end);
    }
    EXPECT_EQ(first.wait(), SignalRequest::end);
    pthread_kill(pthread_self(), SIGTERM);
    EXPECT_EQ(first.wait(), SignalRequest::end);
  }).join();
  EXPECT_TRUE(has_its_default(SIGTERM));
}

TEST(ShutdownSignals, OfAForkedProcessAreItsOwn) {
  SKIP_WITHOUT_SIGNALS_IN_CHILDREN();
  std::thread([] {
    const ShutdownSignals signals;
    const pid_t child = ::fork();
    if (child == 0) {
      ::alarm(10);
      ::pause();
      ::_exit(1);
    }
    expect_ended_by_sigterm(child);
    EXPECT_EQ(signals.take(), SignalRequest::none);
  }).join();
}

TEST(ShutdownSignals, OfAForkedServerAreItsOwn) {
  SKIP_WITHOUT_SIGNALS_IN_CHILDREN();
  std::thread([] {
    const ShutdownSignals signals;
    const pid_t child = ::fork();
    if (child == 0) {
      {
        const ShutdownSignals own;
        ::raise(SIGTERM);
        if (own.wait() != SignalRequest::end) ::_exit(1);
      }
      ::_exit(has_its_default(SIGTERM) ? 0 : 2);
    }
    int status = -1;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
    EXPECT_EQ(signals.take(), SignalRequest::none);
  }).join();
}

TEST(ShutdownSignals, EndWhatAToolHasStarted) {
  SKIP_WITHOUT_SIGNALS_IN_CHILDREN();
  std::thread([] {
    const ShutdownSignals signals;
    std::array<int, 2> ends{};
    ASSERT_EQ(::pipe(ends.data()), 0);
    const pid_t child = ::fork();
    if (child == 0) {
      ::dup2(ends[1], STDOUT_FILENO);
      ::execlp("sh", "sh", "-c", "echo; exec sleep 10", nullptr);
      ::_exit(1);
    }
    char byte = 0;
    EXPECT_EQ(::read(ends[0], &byte, 1), 1);
    expect_ended_by_sigterm(child);
    for (const int end : ends) ::close(end);
  }).join();
}

TEST(ShutdownSignals, DropWhatNobodyTook) {
  std::thread([] {
    {
      const ShutdownSignals signals(Hangup::reloads);
      for (const int signal : {SIGINT, SIGTERM, SIGHUP}) pthread_kill(pthread_self(), signal);
    }
    sigset_t pending{};
    sigpending(&pending);
    EXPECT_TRUE(sigisemptyset(&pending));
  }).join();
}

TEST(ShutdownSignals, LeaveAHangupAloneThatIsIgnored) {
  struct sigaction ignore{};
  struct sigaction before{};
  ignore.sa_handler = SIG_IGN;
  ASSERT_EQ(::sigaction(SIGHUP, &ignore, &before), 0);
  std::thread([] {
    const ShutdownSignals signals;
    struct sigaction now{};
    ::sigaction(SIGHUP, nullptr, &now);
    EXPECT_EQ(now.sa_handler, SIG_IGN);
    EXPECT_FALSE(has_its_default(SIGTERM));
  }).join();
  TerminalAsInput terminal;
  std::thread([&] {
    const ShutdownSignals signals(Hangup::reloads);
    terminal.hang_up();
    pthread_kill(pthread_self(), SIGHUP);
    EXPECT_EQ(signals.wait(), SignalRequest::reload);
  }).join();
  ::sigaction(SIGHUP, &before, nullptr);
}

TEST(ShutdownSignals, AHangupMayAskForAReload) {
  std::thread([] {
    const ShutdownSignals signals(Hangup::reloads);
    pthread_kill(pthread_self(), SIGHUP);
    EXPECT_EQ(signals.wait(), SignalRequest::reload);
    pthread_kill(pthread_self(), SIGTERM);
    EXPECT_EQ(signals.wait(), SignalRequest::end);
    pthread_kill(pthread_self(), SIGHUP);
    EXPECT_EQ(signals.take(), SignalRequest::reload);
    EXPECT_EQ(signals.take(), SignalRequest::none);
  }).join();
}

TEST(ShutdownSignals, TheHangupOfTheTerminalAsksForTheEnd) {
  TerminalAsInput terminal;
  std::thread([&] {
    const ShutdownSignals signals(Hangup::reloads);
    pthread_kill(pthread_self(), SIGHUP);
    EXPECT_EQ(signals.wait(), SignalRequest::reload);
    terminal.hang_up();
    pthread_kill(pthread_self(), SIGHUP);
    EXPECT_EQ(signals.wait(), SignalRequest::end);
  }).join();
}

TEST(ShutdownSignals, ExitAtOnceOnRequest) {
  for (const Hangup hangup : {Hangup::ends, Hangup::reloads}) {
    for (const int signal : {SIGINT, SIGTERM}) {
      const pid_t child = ::fork();
      if (child == 0) {
        const ShutdownSignals signals(hangup);
        ::raise(signal);
        signals.exit_at_once();
        ::_exit(1);
      }
      int status = -1;
      ASSERT_EQ(::waitpid(child, &status, 0), child);
      EXPECT_EQ(status, 0);
    }
  }
}

TEST(ShutdownSignals, AreTheEndOfTheInput) {
  std::thread([] {
    const ShutdownSignals signals;
    signals.input_ended();
    EXPECT_EQ(signals.wait(), SignalRequest::none);
  }).join();
}

}  // namespace
}  // namespace sluice
