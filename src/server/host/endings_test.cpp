#include "server/host/endings.hpp"

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

TEST(Endings, AreSignalsWhichArriveAsBeforeAfterwards) {
  std::thread([] {
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
      ASSERT_FALSE(is_blocked(signal));
      {
        const Endings endings;
        EXPECT_TRUE(is_blocked(signal));
        EXPECT_FALSE(endings.take_signal());
        pthread_kill(pthread_self(), signal);
        endings.wait();
        EXPECT_FALSE(endings.take_signal());
      }
      EXPECT_FALSE(is_blocked(signal));
    }
  }).join();
}

TEST(Endings, LeaveAHangupAloneThatIsIgnored) {
  struct sigaction ignore{};
  struct sigaction before{};
  ignore.sa_handler = SIG_IGN;
  ASSERT_EQ(::sigaction(SIGHUP, &ignore, &before), 0);
  std::thread([] {
    const Endings endings;
    EXPECT_FALSE(is_blocked(SIGHUP));
    EXPECT_TRUE(is_blocked(SIGTERM));
  }).join();
  ::sigaction(SIGHUP, &before, nullptr);
}

TEST(Endings, AreTheEndOfTheInput) {
  std::thread([] {
    const Endings endings;
    endings.input_ended();
    endings.wait();
  }).join();
}

}  // namespace
}  // namespace sluice
