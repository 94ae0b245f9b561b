#include "client/link/line_link.hpp"

#include <array>
#include <chrono>
#include <functional>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>

#include "client/session/client_session.hpp"
#include "net/loop/unix_socket.hpp"

namespace sluice {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class LineLinkTest : public ::testing::Test, protected ServerLink::Owner {
 protected:
  void on_message(std::string_view text) override {
    heard.emplace_back(text);
    if (text == pauses_at) link->pause("1", true);
    if (when_heard) when_heard();
  }
  bool on_reply(const RequestId& /*id*/, std::string_view /*text*/) override { return true; }
  void on_unreadable(std::string_view text, const Error& why) override {
    unreadable.push_back(std::string(text.substr(0, 8)) + ": " + why.message);
  }
  void on_unanswered(const RequestId& /*id*/, const Error& /*why*/) override {}
  void on_session_over(const RequestId& /*id*/) override {}
  [[nodiscard]] bool awaits(const RequestId& /*id*/) const override { return false; }
  void on_lost(const Error& why) override {
    lost = why.message;
    if (reopens) reopened = link->reopen();
  }

  /// The server is this shell script.
  OpenLines script(std::string text) {
    return start_child(loop, {.arguments = {"sh", "-c", std::move(text)}},
                       {.after_input = 1ms, .after_term = 1ms});
  }
  void open(OpenLines lines, LineLinkLimits limits = {}) {
    link = std::make_unique<LineLink>(loop, std::move(lines), limits);
    link->open(*this);
  }
  /// The server is the test, at the other end of a socket.
  void open_pair(LineLinkLimits limits = {}) {
    open(
        [this]() -> Result<LineEnds> {
          std::array<int, 2> ends{};
          EXPECT_EQ(
              ::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends.data()), 0);
          server = Descriptor(ends[1]);
          return LineEnds{.input = Descriptor(ends[0]), .output = {}};
        },
        limits);
  }
  bool until(const std::function<bool()>& done) {
    const auto deadline = std::chrono::steady_clock::now() + 10s;
    while (!done()) {
      if (std::chrono::steady_clock::now() > deadline) return false;
      if (!loop.poll()) std::this_thread::yield();
    }
    return true;
  }
  void say(std::string_view text) {
    EXPECT_EQ(::write(server.get(), text.data(), text.size()), static_cast<ssize_t>(text.size()));
  }
  /// What has arrived at the test's end.
  std::string take() {
    std::string all;
    std::array<char, 65536> buffer{};
    for (ssize_t got = 0; (got = ::read(server.get(), buffer.data(), buffer.size())) > 0;) {
      all.append(buffer.data(), static_cast<std::size_t>(got));
    }
    return all;
  }

  EventLoop loop;
  Descriptor server;
  std::unique_ptr<LineLink> link;
  std::vector<std::string> heard;
  std::function<void()> when_heard;
  std::vector<std::string> unreadable;
  std::optional<std::string> lost;
  bool reopens = false;
  std::string pauses_at;
  std::optional<bool> reopened;
};

TEST_F(LineLinkTest, SpeaksWithAChildAndSaysHowThatEnds) {
  open(script("read -r line; echo \"got $line\"; echo last; exit 4"));
  EXPECT_THAT(heard, IsEmpty());
  ASSERT_TRUE(link->send({.text = "hello"}));
  ASSERT_TRUE(until([this] { return lost.has_value(); }));
  EXPECT_THAT(heard, ElementsAre("got hello", "last"));
  EXPECT_EQ(*lost, "the server's process is over: it has ended with code 4");
  EXPECT_FALSE(link->send({.text = "more"}));
}

TEST_F(LineLinkTest, WhatWasSentLeavesBeforeTheEnd) {
  open_pair();
  const std::string text(4'000'000, 'x');
  ASSERT_TRUE(link->send({.text = text}));
  bool is_closed = false;
  link->close([&is_closed] { is_closed = true; });
  EXPECT_FALSE(is_closed);
  std::string all;
  ASSERT_TRUE(until([&] {
    all += take();
    return is_closed;
  }));
  all += take();
  EXPECT_EQ(all, text + "\n");
  EXPECT_FALSE(lost);
}

TEST_F(LineLinkTest, WhatAChildHasSaidComesBeforeItsEnd) {
  open(script("head -c 3000000 /dev/zero | tr '\\0' 'x' | fold -w 100; echo; exit 0"));
  ASSERT_TRUE(until([this] { return lost.has_value(); }));
  std::size_t bytes = 0;
  for (const std::string& each : heard) bytes += each.size();
  EXPECT_EQ(bytes, 3'000'000U);
}

TEST_F(LineLinkTest, AChildThatClosesItsOutputIsEnded) {
  open(script("exec >&-; while :; do sleep 0.01; done"));
  ASSERT_TRUE(until([this] { return lost.has_value(); }));
  EXPECT_EQ(*lost, "the server has closed the connection") << "it was ended because of that";
}

TEST_F(LineLinkTest, AChildThatCannotStartIsALostLink) {
  open(start_child(loop, {.arguments = {"no-such-program"}}));
  EXPECT_FALSE(lost);
  ASSERT_TRUE(until([this] { return lost.has_value(); }));
  EXPECT_EQ(*lost, "There is no program \"no-such-program\" in PATH");
}

TEST_F(LineLinkTest, AChildIsStartedAgainIfItHasEnded) {
  reopens = true;
  open(script("read -r line || exit; echo \"$line\"; exit 1"));
  EXPECT_TRUE(link->reopen()) << "it is open";
  ASSERT_TRUE(link->send({.text = "one"}));
  ASSERT_TRUE(until([this] { return reopened.has_value(); }));
  EXPECT_TRUE(*reopened);
  ASSERT_TRUE(link->send({.text = "two"}));
  ASSERT_TRUE(until([this] { return heard.size() == 2; }));
  EXPECT_THAT(heard, ElementsAre("one", "two"));
}

TEST_F(LineLinkTest, MessagesAreSplitAndMergedHoweverTheyCome) {
  open_pair();
  say("on");
  until([this] { return !loop.poll(); });
  EXPECT_THAT(heard, IsEmpty());
  say("e\r\n\ntwo\nthr");
  say("ee");
  server.close();
  ASSERT_TRUE(until([this] { return lost.has_value(); }));
  EXPECT_THAT(heard, ElementsAre("one", "two", "three"));
  EXPECT_EQ(*lost, "the server has closed the connection");
}

TEST_F(LineLinkTest, ManyMessagesLeaveTimeForOthers) {
  open_pair();
  constexpr std::size_t kMessages = 1000;
  std::string all;
  for (std::size_t i = 0; i < kMessages; ++i) all += "y\n";
  when_heard = [] {
    const auto until = std::chrono::steady_clock::now() + 100us;
    while (std::chrono::steady_clock::now() < until) {
    }
  };
  say(all);
  server.close();
  ASSERT_TRUE(until([this] { return !heard.empty(); }));
  EXPECT_LT(heard.size(), kMessages / 2) << "in one turn";
  ASSERT_TRUE(until([this] { return lost.has_value(); }));
  EXPECT_EQ(heard.size(), kMessages);
}

TEST_F(LineLinkTest, AServerThatDoesNotReadHoldsUpTheSender) {
  open_pair({.max_message = 1U << 20U, .max_queued = 1U << 20U});
  const std::string text(100'000, 'x');
  std::size_t sent = 0;
  while (link->send({.text = text})) {
    ++sent;
    loop.poll();
    ASSERT_LT(sent, 1000U);
  }
  EXPECT_GE(sent, 10U);
  std::string all;
  ASSERT_TRUE(until([&] {
    all += take();
    return all.size() == sent * (text.size() + 1);
  }));
  EXPECT_TRUE(link->send({.text = std::string(2U << 20U, 'y')})) << "one message may be longer";
}

TEST_F(LineLinkTest, WhatWasSentLeavesBeforeTheLinkEnds) {
  open_pair();
  ASSERT_TRUE(link->send({.text = "cancelled"}));
  link->close([] {});
  link.reset();
  EXPECT_EQ(take(), "cancelled\n");
}

TEST_F(LineLinkTest, ALongMessageIsSkipped) {
  open_pair({.max_message = 10, .max_queued = 100});
  say("12345678901\nnext\n");
  ASSERT_TRUE(until([this] { return !heard.empty(); }));
  EXPECT_THAT(heard, ElementsAre("next"));
  EXPECT_THAT(unreadable, ElementsAre("12345678: it is longer than 10 bytes"));
}

TEST_F(LineLinkTest, ConnectsToAUnixSocket) {
  const std::string path = ::testing::TempDir() + "line_link_" + std::to_string(::getpid());
  open(connect_unix(path));
  ASSERT_TRUE(until([this] { return lost.has_value(); }));
  EXPECT_EQ(*lost, "Cannot connect to " + path + ": No such file or directory");
  Result<UnixListener> listener = UnixListener::listen(path, 0600);
  ASSERT_TRUE(listener) << listener.error().message;
  const Descriptor listening = listener->take_socket();
  open(connect_unix(path));
  ASSERT_TRUE(link->send({.text = "hello"}));
  ASSERT_TRUE(until([&] {
    server = Descriptor(::accept4(listening.get(), nullptr, nullptr, SOCK_NONBLOCK));
    return static_cast<bool>(server);
  }));
  std::string all;
  ASSERT_TRUE(until([&] {
    all += take();
    return all == "hello\n";
  }));
  say("you too\n");
  ASSERT_TRUE(until([this] { return !heard.empty(); }));
  EXPECT_THAT(heard, ElementsAre("you too"));
}

/// A server of 2025-06-18 that dies of what it does not know, as some do.
TEST_F(LineLinkTest, ASessionSurvivesAServerThatDiesOfTheProbe) {
  const OpenLines lines = script(R"(
    read -r line
    case "$line" in *server/discover*) exit 1;; esac
    echo '{"jsonrpc":"2.0","id":2,"result":{"protocolVersion":"2025-06-18","capabilities":{}}}'
    read -r line
    read -r line
    echo '{"jsonrpc":"2.0","id":3,"result":{"content":[]}}'
    read -r line)");
  const auto session = std::make_shared<ClientSession>(
      loop, std::make_unique<LineLink>(loop, lines), ClientSessionOptions{});
  std::optional<Result<ServerDescription>> connected;
  session->connect([&](Result<ServerDescription> outcome) { connected = std::move(outcome); });
  ASSERT_TRUE(until([&] { return connected.has_value(); }));
  ASSERT_TRUE(*connected) << connected->error().message;
  EXPECT_EQ((*connected)->revision->name, "2025-06-18");
  std::optional<Result<json::object>> answer;
  session->begin("tools/call", {{"name", "t"}}, {},
                 {.on_answer = [&](Result<json::object> said) { answer = std::move(said); }});
  ASSERT_TRUE(until([&] { return answer.has_value(); }));
  ASSERT_TRUE(*answer) << answer->error().message;
  EXPECT_TRUE((*answer)->contains("content"));
}

TEST_F(LineLinkTest, IsReadAgainWhenNoRequestIsPausedAnyMore) {
  pauses_at = "two";
  open_pair();
  say("one\ntwo\nthree\n");
  ASSERT_TRUE(until([this] { return heard.size() == 2; }));
  link->pause("2", true);
  link->pause("1", false);
  say("four\nfive");
  server.close();
  for (int i = 0; i < 20; ++i) loop.poll();
  EXPECT_THAT(heard, ElementsAre("one", "two"));
  EXPECT_FALSE(lost);
  link->pause("2", false);
  ASSERT_TRUE(until([this] { return lost.has_value(); }));
  EXPECT_THAT(heard, ElementsAre("one", "two", "three", "four", "five"));
}

TEST_F(LineLinkTest, TheMemoryOfAMessageIsKeptUntilItHasLeft) {
  open_pair();
  std::vector<std::shared_ptr<int>> memory;
  for (int i = 0; i < 20; ++i) {
    memory.push_back(std::make_shared<int>(0));
    ASSERT_TRUE(link->send({.text = std::string(100'000, 'x'), .memory = memory.back()}));
  }
  loop.poll();
  EXPECT_EQ(memory.front().use_count(), 1);
  EXPECT_EQ(memory.back().use_count(), 2);
  ASSERT_TRUE(until([&] {
    take();
    return memory.back().use_count() == 1;
  }));
  for (const auto& each : memory) EXPECT_EQ(each.use_count(), 1);
  ASSERT_TRUE(link->send({.text = std::string(4'000'000, 'x'), .memory = memory.back()}));
  loop.poll();
  EXPECT_EQ(memory.back().use_count(), 2);
  link = nullptr;
  EXPECT_EQ(memory.back().use_count(), 1);
}

}  // namespace
}  // namespace sluice
