#include "sluice/serve.hpp"

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <expected>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <memory>
#include <optional>
#include <pthread.h>
#include <stdexcept>
#include <string>
#include <sys/resource.h>
#include <thread>
#include <unistd.h>

#include "core/clock.hpp"
#include "server/host/peer_test_support.hpp"
#include "sluice/authenticator.hpp"
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

TEST(Serve, LimitsMayBeAsLongAsTheirTypesCanSay) {
  using std::chrono::milliseconds;
  using std::chrono::seconds;
  for (const seconds longest : {seconds::max(), seconds(std::int64_t{1} << 40U)}) {
    EXPECT_EQ(at_most_forever(longest), kForever);
  }
  EXPECT_EQ(at_most_forever(milliseconds::max()), kForever);
  EXPECT_EQ(at_most_forever(Duration::max()), kForever);
  EXPECT_EQ(at_most_forever(seconds(1800)), seconds(1800));
  EXPECT_EQ(at_most_forever(seconds(-1)), seconds(-1));
  const auto serving = start(Server("test", "1"), http{.port = 0},
                             ServeOptions{.threads = 1,
                                          .session_expiry = seconds::max(),
                                          .shutdown_deadline = milliseconds::max()});
  EXPECT_TRUE(serving);
}

class Nobody final : public Authenticator {
  std::expected<Principal, Refusal> authenticate(const RequestHead& /*head*/) override {
    return std::unexpected(Refusal::forbidden("Nobody may"));
  }
};

const std::string kKey = "0123456789abcdef";

TEST(Serve, AKeyThatCanBeGuessedOrNotBeSentIsRefused) {
  const auto serving = [](const std::string& name, const std::string& key) {
    return start(Server("test", "1"), http{.port = 0, .keys = {{name, key}}},
                 ServeOptions{.threads = 1});
  };
  for (const std::string& key : {std::string("short"), kKey + " ", std::string(257, 'x')}) {
    const auto refused = serving("ann", key);
    ASSERT_FALSE(refused) << key;
    EXPECT_EQ(refused.error().message,
              "API key 'ann': it needs a name, and a key has 16 to 256 visible ASCII characters "
              "without commas");
  }
  EXPECT_FALSE(serving("", kKey));
  EXPECT_TRUE(serving("ann", kKey));
}

TEST(Serve, AServerNeedsAPlace) {
  const Server server("test", "1");
  const auto nowhere = start(server, ServeOptions{.threads = 1}, std::optional<http>());
  ASSERT_FALSE(nowhere);
  EXPECT_THAT(nowhere.error().message, HasSubstr("nowhere to serve: pass http{}"));
  EXPECT_EQ(serve(server), 1);
}

TEST(Serve, HalfAPlaceIsRefused) {
  const Server server("test", "1");
  const auto without_path = start(server, unix_socket{});
  ASSERT_FALSE(without_path);
  EXPECT_EQ(without_path.error().message, "unix_socket needs a path");
  const auto without_certificate = start(server, http{.port = 0, .tls_key = "key.pem"});
  ASSERT_FALSE(without_certificate);
  EXPECT_THAT(without_certificate.error().message, HasSubstr("tls_key needs a tls_certificate"));
  const auto same = start(server, http{.port = 0, .keys = {{"ann", kKey}, {"bob", kKey}}});
  ASSERT_FALSE(same);
  EXPECT_THAT(same.error().message, HasSubstr("API keys 'ann' and 'bob' are the same"));
}

TEST(Serve, WhatTheSystemRefusesIsAnError) {
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit few{.rlim_cur = 32, .rlim_max = before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
  const Server server("test", "1");
  const int next = ::dup(0);
  ::close(next);
  const auto refused = start(server, http{.port = 0}, ServeOptions{.threads = 50});
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("The event loops cannot start"));
  const int next_after = ::dup(0);
  ::close(next_after);
  EXPECT_EQ(next_after, next) << "all descriptors are closed";
  EXPECT_TRUE(start(server, http{.port = 0}, ServeOptions{.threads = 2}));
}

TEST(Serve, KeysAndAnAuthenticatorAreOneTooMany) {
  const Server server("test", "1");
  const auto nobody = std::make_shared<Nobody>();
  const auto both =
      start(server, http{.port = 0, .keys = {{"ann", kKey}}, .authenticator = nobody});
  ASSERT_FALSE(both);
  EXPECT_EQ(both.error().message, "Give the server keys or an authenticator, not both");
  EXPECT_TRUE(start(server, http{.port = 0, .authenticator = nobody}, ServeOptions{.threads = 1}));
}

TEST(Serve, AHandlerThatStopsItsOwnServerIsToldWhatToDo) {
  std::atomic<Serving*> served = nullptr;
  const auto stop = [&served]() -> std::string {
    try {
      served.load()->stop();
    } catch (const std::logic_error& error) {
      return error.what();
    }
    return "stopped";
  };
  Server server("test", "1");
  server.tool("on_the_loop", "", stop);
  server.tool("on_a_worker", "", blocking(stop));
  server.tool("in_the_background", "", [stop](Call& call) -> Task<std::string> {
    co_return co_await call.in_background(stop);
  });
  auto serving = start(server, http{.port = 0}, ServeOptions{.threads = 1});
  ASSERT_TRUE(serving);
  served = &*serving;
  for (const std::string tool : {"on_the_loop", "on_a_worker", "in_the_background"}) {
    Peer peer(serving->port());
    peer.post(R"({"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":")" + tool +
              R"("}})");
    const std::string answer = peer.until("call Serving::stop()");
    EXPECT_THAT(answer, HasSubstr("let the handler tell another thread")) << tool;
  }
  EXPECT_NE(serving->metrics(), "");
  serving->stop();
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
