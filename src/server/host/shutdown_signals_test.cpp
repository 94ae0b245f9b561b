#include "server/host/shutdown_signals.hpp"

#include <csignal>
#include <gtest/gtest.h>
#include <pthread.h>
#include <thread>

namespace sluice {
namespace {

bool is_blocked(int signal) {
  sigset_t now{};
  pthread_sigmask(SIG_SETMASK, nullptr, &now);
  return sigismember(&now, signal) == 1;
}

TEST(ShutdownSignals, AreSignalsWhichArriveAsBeforeAfterwards) {
  std::thread([] {
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
      ASSERT_FALSE(is_blocked(signal));
      {
        const ShutdownSignals signals;
        EXPECT_TRUE(is_blocked(signal));
        EXPECT_FALSE(signals.take_signal());
        pthread_kill(pthread_self(), signal);
        signals.wait();
        EXPECT_FALSE(signals.take_signal());
      }
      EXPECT_FALSE(is_blocked(signal));
    }
  }).join();
}

TEST(ShutdownSignals, LeaveAHangupAloneThatIsIgnored) {
  struct sigaction ignore{};
  struct sigaction before{};
  ignore.sa_handler = SIG_IGN;
  ASSERT_EQ(::sigaction(SIGHUP, &ignore, &before), 0);
  std::thread([] {
    const ShutdownSignals signals;
    EXPECT_FALSE(is_blocked(SIGHUP));
    EXPECT_TRUE(is_blocked(SIGTERM));
  }).join();
  ::sigaction(SIGHUP, &before, nullptr);
}

TEST(ShutdownSignals, AreTheEndOfTheInput) {
  std::thread([] {
    const ShutdownSignals signals;
    signals.input_ended();
    signals.wait();
  }).join();
}

}  // namespace
}  // namespace sluice
