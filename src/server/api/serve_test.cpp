#include "sluice/serve.hpp"

#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <expected>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <initializer_list>
#include <memory>
#include <optional>
#include <pthread.h>
#include <stdexcept>
#include <string>
#include <sys/resource.h>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>
#include <vector>

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
  const auto twice = start(server, stdio{}, stdio{});
  ASSERT_FALSE(twice);
  EXPECT_EQ(twice.error().message, "A server has at most one sluice::stdio{}");
}

TEST(Serve, WhatTheSystemRefusesIsAnError) {
#ifdef SLUICE_SANITIZED
  GTEST_SKIP() << "a sanitizer needs descriptors itself";
#endif
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

/// Gives a standard stream to a pipe.
class PipeInstead {
 public:
  explicit PipeInstead(int number) : number_(number), before_(::dup(number)) {
    std::array<int, 2> ends{};
    EXPECT_EQ(::pipe(ends.data()), 0);
    const auto used = static_cast<std::size_t>(number == STDIN_FILENO ? 0 : 1);
    EXPECT_GE(::dup2(ends.at(used), number), 0);
    for (const int end : ends) ::close(end);
    inode_ = inode();
  }
  ~PipeInstead() {
    ::dup2(before_, number_);
    ::close(before_);
  }
  PipeInstead(const PipeInstead&) = delete;
  PipeInstead& operator=(const PipeInstead&) = delete;
  [[nodiscard]] bool is_there() const { return inode() == inode_; }

 private:
  [[nodiscard]] ino_t inode() const {
    struct stat status{};
    EXPECT_EQ(::fstat(number_, &status), 0);
    return status.st_ino;
  }
  int number_;
  int before_;
  ino_t inode_ = 0;
};

TEST(Serve, StandardStreamsAreTakenOnlyOfAProgramThatServes) {
  const auto first = start(Server("test", "1"), http{.port = 0}, ServeOptions{.threads = 1});
  ASSERT_TRUE(first);
  const PipeInstead input(STDIN_FILENO);
  const PipeInstead output(STDOUT_FILENO);
  const ServeOptions options{.threads = 1};
  EXPECT_FALSE(start(Server("test", "1"), http{.port = first->port()}, stdio{}, options));
  EXPECT_TRUE(input.is_there() && output.is_there());
  EXPECT_TRUE(start(Server("test", "1"), stdio{}, options));
  EXPECT_FALSE(input.is_there() || output.is_there());
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

TEST(Serve, ListensInSeveralPlaces) {
  const auto serving =
      start(Server("test", "1"), http{.port = 0}, http{.port = 0}, ServeOptions{.threads = 1});
  ASSERT_TRUE(serving) << serving.error().message;
  ASSERT_EQ(serving->urls().size(), 2U);
  EXPECT_EQ(serving->url(), serving->urls().front());
  for (const std::string& url : serving->urls()) {
    Peer peer(static_cast<std::uint16_t>(std::stoi(url.substr(url.rfind(':') + 1))));
    peer.get("/healthz");
    EXPECT_THAT(peer.until("\r\n\r\n"), HasSubstr("200 OK"));
  }
}

std::string error_of(const std::expected<Serving, Error>& serving) {
  return serving ? "no error" : serving.error().message;
}

TEST(Serve, WhoMayCallIsTheSameInAllPlaces) {
  const Server server("test", "1");
  const http open{.port = 0};
  const http locked{.port = 0, .keys = {{"ann", "0123456789abcdef"}}};
  EXPECT_THAT(error_of(start(server, locked, open)), HasSubstr("give them to each sluice::http{}"));
  EXPECT_EQ(error_of(start(server, locked, locked, ServeOptions{.threads = 1})), "no error");
}

TEST(Serve, PlacesThatCannotBeAreRefused) {
  const Server server("test", "1");
  EXPECT_THAT(error_of(start(server, unix_socket{.path = "a"}, unix_socket{.path = "b"})),
              HasSubstr("at most one sluice::unix_socket{}"));
  EXPECT_THAT(error_of(start(server, unix_socket{.path = std::string("a\0b", 3)})),
              HasSubstr("has a zero byte"));
  const ServeOptions options{.threads = 1};
  EXPECT_EQ(error_of(start(server, http{.port = 0}, options, options)), "Give ServeOptions once");
  const command_line line{.count = 0, .arguments = nullptr, .over_http = {.port = 0}};
  EXPECT_EQ(error_of(start(server, line, line)), "Give sluice::command_line once");
}

TEST(Serve, RoutesOfAllPlacesComeFromOne) {
  const auto saying = [](const std::string& word) {
    return http{.port = 0, .routes = {{.path = "/who", .answer = [word](const RouteRequest&) {
                                         return RouteReply{.body = word};
                                       }}}};
  };
  const Server server("test", "1");
  EXPECT_THAT(error_of(start(server, saying("public"), saying("internal"))),
              HasSubstr("give them to one sluice::http{} only"));
  const auto serving = start(server, http{.port = 0}, saying("one"), ServeOptions{.threads = 1});
  ASSERT_TRUE(serving);
  for (const std::string& url : serving->urls()) {
    Peer peer(static_cast<std::uint16_t>(std::stoi(url.substr(url.rfind(':') + 1))));
    peer.get("/who");
    EXPECT_THAT(peer.until("one"), HasSubstr("200 OK"));
  }
}

/// A command line of main().
class Arguments {
 public:
  Arguments(std::initializer_list<std::string> words) : words_(words) {
    for (std::string& word : words_) pointers_.push_back(word.data());
  }
  command_line line(const http& otherwise = {.port = 0}) {
    return {static_cast<int>(pointers_.size()), pointers_.data(), otherwise};
  }

 private:
  std::vector<std::string> words_;
  std::vector<char*> pointers_;
};

TEST(Serve, PlacesComeFromTheCommandLine) {
  const Server server("test", "1");
  Arguments none{"/bin/test"};
  const auto alone = start(server, none.line(), ServeOptions{.threads = 1});
  ASSERT_TRUE(alone) << alone.error().message;
  EXPECT_EQ(alone->urls().size(), 1U);

  Arguments two{"/bin/test", "--listen", "127.0.0.1:0", "--listen", "localhost:0"};
  const http locked{.keys = {{"ann", "0123456789abcdef"}}};
  const auto both = start(server, two.line(locked), ServeOptions{.threads = 1});
  ASSERT_TRUE(both) << both.error().message;
  ASSERT_EQ(both->urls().size(), 2U);
  EXPECT_THAT(both->urls()[1], HasSubstr("http://localhost:"));
  Peer peer(both->port());
  peer.post(R"({"jsonrpc":"2.0","id":1,"method":"ping"})");
  EXPECT_THAT(peer.until("\r\n\r\n"), HasSubstr("401 Unauthorized"));
}

TEST(Serve, WrongCommandLinesAreExplained) {
  const Server server("test", "1");
  const auto outcome = [&](Arguments arguments) {
    const auto serving = start(server, arguments.line());
    return serving ? "none" : std::to_string(serving.error().code) + " " + serving.error().message;
  };
  EXPECT_THAT(outcome({"/bin/test", "--help"}), HasSubstr("0 Usage: test [--listen HOST:PORT]"));
  EXPECT_THAT(outcome({"/bin/test", "--port", "1"}),
              HasSubstr("2 --port is not an option.\nUsage"));
  EXPECT_THAT(outcome({"/bin/test", "--listen"}), HasSubstr("2 --listen needs a value."));
  EXPECT_THAT(outcome({"/bin/test", "--listen", "8080"}), HasSubstr("2 --listen 8080: give HOST:"));
  EXPECT_THAT(outcome({"/bin/test", "--unix", "a", "--unix", "b"}), HasSubstr("2 --unix can be"));
  Arguments wrong{"/bin/test", "--port"};
  EXPECT_EQ(serve(server, wrong.line()), 2);
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
