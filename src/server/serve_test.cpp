#include "sluice/serve.hpp"

#include <csignal>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <string>
#include <thread>

#include "sluice/server.hpp"

namespace sluice {
namespace {

using ::testing::HasSubstr;

TEST(Serve, WhereItWasIsKnownAfterItHasStopped) {
  auto serving = start(Server("test", "1"), http{.port = 0}, ServeOptions{.threads = 1});
  ASSERT_TRUE(serving);
  const std::string url = serving->url();
  EXPECT_THAT(serving->metrics(), HasSubstr("sluice_connections"));
  serving->stop();
  EXPECT_EQ(serving->url(), url);
  EXPECT_THAT(url, HasSubstr(":" + std::to_string(serving->port()) + "/"));
  EXPECT_EQ(serving->metrics(), "");
}

TEST(Serve, SignalsAreAsBeforeWhenItReturns) {
  const auto first = start(Server("test", "1"), http{.port = 0}, ServeOptions{.threads = 1});
  ASSERT_TRUE(first);
  const auto is_blocked = [](int signal) {
    sigset_t now{};
    pthread_sigmask(SIG_SETMASK, nullptr, &now);
    return sigismember(&now, signal) == 1;
  };
  std::thread([&] {
    EXPECT_EQ(serve(Server("test", "1"), http{.port = first->port()}), 1);
    EXPECT_FALSE(is_blocked(SIGINT));
    EXPECT_FALSE(is_blocked(SIGTERM));
  }).join();
}

}  // namespace
}  // namespace sluice
