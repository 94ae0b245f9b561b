// Handlers that are coroutines: what they send, and how they end.

#include <chrono>
#include <future>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <memory>
#include <optional>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "json/json.hpp"
#include "server/handlers/public_server_test_support.hpp"
#include "sluice/concurrency.hpp"

namespace sluice {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

TEST_F(PublicServerTest, ACallMayTakeAsLongAsADurationCanBe) {
  server = Server("test", "1", {.call_timeout = std::chrono::nanoseconds::max()});
  std::optional<TimePoint> deadline;
  server.tool("deadline", "", [&](Call& call) -> Task<std::string> {
    deadline = call.deadline();
    co_await call.sleep(1h);
    co_return "done";
  });
  serve();
  bench.executors[0].advance(1s);
  call("deadline", "{}");
  ASSERT_TRUE(deadline);
  EXPECT_GT(*deadline, bench.executors[0].clock().now() + std::chrono::hours(1000));
  bench.executors[0].advance(1h);
  EXPECT_EQ(text_of(answer_of("")), "done");
}

TEST_F(PublicServerTest, AStreamShowsWhatItYieldsBeforeItsResult) {
  server.tool("count", "", [](Add in) -> Stream<Total> {
    Total total;
    for (int i = in.a; i <= in.b; ++i) {
      total.sum += i;
      co_yield text(std::to_string(i));
    }
    co_return total;
  });
  serve();
  const json::value answer = call("count", R"({"a":1,"b":3})");
  EXPECT_EQ(answer.at_pointer("/result/structuredContent/sum").as_int64(), 6);
  EXPECT_EQ(events(), 4U);
  EXPECT_NE(caller.channel().written.find(R"("message":"3")"), std::string::npos);
}

TEST_F(PublicServerTest, AStreamWaitsForASlowPeerAndGoesOnWhenItReads) {
  constexpr int kSent = 5000;  // more than what waits for a peer may take
  const std::string line(1000, 'x');
  int made = 0;
  server.tool("many", "", [&]() -> Stream<Total> {
    for (; made < kSent; ++made) co_yield text(line);
    co_return Total{made};
  });
  serve();
  EXPECT_TRUE(bench.request("tools/call", modern("{}", R"("name":"many")"), caller).empty());
  caller.channel().writable = false;
  bench.executors[0].advance({});
  const int before = made;
  EXPECT_LT(before, kSent);
  for (int i = 0; i < kSent && made < kSent; ++i) {
    caller.channel().written.clear();
    caller.channel().drain();
    bench.executors[0].advance({});
  }
  EXPECT_EQ(answer_of("").at_pointer("/result/structuredContent/sum").as_int64(), kSent);
}

TEST_F(PublicServerTest, CancellationDestroysTheCoroutineWhereItWaits) {
  struct Guard {
    bool* gone;
    ~Guard() { *gone = true; }
  };
  bool gone = false;
  std::stop_token token;
  server.tool("wait", "", [&](Call& call) -> Task<std::string> {
    const Guard guard{&gone};
    token = call.stop_token();
    co_await call.sleep(1h);
    co_return "never";
  });
  serve();
  EXPECT_TRUE(call("wait", "{}").is_null());
  EXPECT_FALSE(gone);
  caller.channel().close();
  bench.run_all();
  EXPECT_TRUE(gone);
  EXPECT_TRUE(token.stop_requested());
  EXPECT_EQ(bench.executors[0].timers(), 0U);
}

TEST_F(PublicServerTest, ACharacterMayBeSplitBetweenTwoTexts) {
  server.tool("it", "", [](Call& call) {
    for (const char* const part : {"1\xe2\x82", "\xac", "2\xe2", "\x82",
                                   "\xac"
                                   "3\xe2"})
      call.text(part);
    return 1;
  });
  serve();
  call("it", "{}");
  std::string heard;
  const std::string& written = caller.channel().written;
  static constexpr std::string_view kMessage = R"("message":")";
  for (std::size_t at = 0; (at = written.find(kMessage, at)) != std::string::npos;) {
    at += kMessage.size();
    heard += written.substr(at, written.find('"', at) - at);
  }
  EXPECT_EQ(heard, "1\u20ac2\u20ac3\ufffd");
}

/// Uses everything of its call when it is destroyed.
struct LastWords {
  explicit LastWords(Call& of) : call(&of) {}
  LastWords(const LastWords&) = delete;
  LastWords& operator=(const LastWords&) = delete;
  ~LastWords() {
    said = true;
    heard = call->log(LoggingLevel::info, "bye") || call->progress(1) || call->text("bye");
    call->disconnect(1ms);
    key = call->idempotency_key();
    call->begin_task();
    std::ignore = call->ask({{.method = "roots/list", .key = "a"}});
    std::ignore = call->sleep(1h);
    std::ignore = call->room();
  }
  Call* call;
  static inline bool said;
  static inline bool heard;
  static inline std::string key;
};

TEST_F(PublicServerTest, DestructorsOfACoroutineThatIsGivenUpMayUseTheCall) {
  server = Server("test", "1", {.call_timeout = 5s});
  std::promise<void> running;
  std::promise<void> go_on;
  server.tool("wait", "", [](Call& call) -> Task<std::string> {
    const LastWords words(call);
    co_await call.sleep(1h);
    co_return "never";
  });
  server.tool("work", "", [&](Call& call) -> Task<std::string> {
    const LastWords words(call);
    co_await call.in_background([&] {
      running.set_value();
      go_on.get_future().wait();
    });
    co_return "never";
  });
  const auto is_said = [] { return std::exchange(LastWords::said, false); };
  serve();

  EXPECT_TRUE(call("wait", "{}").is_null());
  caller.channel().close();
  bench.run_all();
  EXPECT_TRUE(is_said());
  EXPECT_FALSE(LastWords::heard);
  EXPECT_NE(std::exchange(LastWords::key, ""), "");

  EXPECT_TRUE(call("wait", "{}").is_null());
  bench.executors[0].advance(5s);
  EXPECT_EQ(answer_of("").at_pointer("/error/code").as_int64(), kTimedOut);
  EXPECT_TRUE(is_said());

  call("work", "{}");
  running.get_future().wait();
  caller.channel().close();
  bench.run_all();
  EXPECT_FALSE(is_said());
  LastWords::key.clear();
  go_on.set_value();
  while (!LastWords::said) bench.run_all();
  EXPECT_FALSE(LastWords::heard);
  EXPECT_NE(LastWords::key, "");
}

TEST_F(PublicServerTest, WhatADestructorWaitsForIsNoConcernOfACallThatIsOver) {
  static std::optional<Resolver<int>> resolver;
  static std::optional<Awaiting<void>> slept;
  struct Waits {
    Call* call;
    ~Waits() {
      std::ignore = call->callback<int>([](Resolver<int> it) { resolver = std::move(it); });
      slept = call->sleep(1h);
    }
  };
  server.tool("wait", "", [](Call& call) -> Task<std::string> {
    const Waits waits{&call};
    co_await call.sleep(1h);
    co_return "never";
  });
  serve();
  EXPECT_TRUE(call("wait", "{}").is_null());
  caller.channel().close();
  bench.run_all();
  ASSERT_TRUE(resolver && slept);
  EXPECT_EQ(bench.executors[0].timers(), 0U);
  resolver->succeed(7);
  EXPECT_EQ(bench.executors[0].run(), 0U);
  resolver.reset();
  slept.reset();
}

TEST_F(PublicServerTest, WhatIsAwaitedMayOutliveItsCall) {
  std::optional<Awaiting<void>> slept;
  std::optional<Awaiting<std::vector<json::value>>> asked;
  server.tool("keep", "", [&](Call& call) -> Task<std::string> {
    slept = call.sleep(1h);
    asked = call.ask({{.method = "roots/list"}});
    co_await call.sleep(1s);
    co_return "kept";
  });
  serve();
  bench.request("initialize", R"("protocolVersion":"2025-11-25","capabilities":{"roots":{}})",
                caller);
  bench.request("tools/call", R"("name":"keep")", caller);
  bench.executors[0].advance(1s);
  EXPECT_EQ(text_of(answer_of("")), "kept");
  ASSERT_TRUE(slept && asked);
  slept.reset();
  asked.reset();
  EXPECT_EQ(bench.executors[0].run(), 0U);
}

TEST_F(PublicServerTest, ADestructorMayEndTheCallThatGoesOnWithoutIt) {
  // The client gets the question as the result, which ends the call while with_timeout() gives up
  // its task.
  struct Asks {
    Call* call;
    ~Asks() { std::ignore = call->ask({{.method = "roots/list", .key = "a"}}); }
  };
  server.tool("ask", "", [](Call& call) -> Task<std::string> {
    co_await with_timeout(1s, [](Call& in) -> Task<> {
      const Asks asks{&in};
      co_await in.sleep(1h);
    }(call));
    co_return "never";
  });
  serve();
  EXPECT_TRUE(call("ask", "{}", R"({"roots":{}})").is_null());
  bench.executors[0].advance(1s);
  EXPECT_EQ(answer_of("").at_pointer("/result/resultType"), "input_required");
}

TEST_F(PublicServerTest, ACallThatTakesTooLongFails) {
  server = Server("test", "1", {.call_timeout = 5s});
  server.tool("wait", "", [](Call& call) -> Task<std::string> {
    EXPECT_TRUE(call.deadline().has_value());
    co_await call.sleep(1h);
    co_return "never";
  });
  serve();
  EXPECT_TRUE(call("wait", "{}").is_null());
  ::testing::internal::CaptureStderr();
  bench.executors[0].advance(5s);
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              HasSubstr("tool=wait what=\"it took longer than call_timeout\""));
  EXPECT_EQ(answer_of("").at_pointer("/error/code").as_int64(), kTimedOut);
}

TEST_F(PublicServerTest, ACallIsGivenUpAlsoAfterAnExceptionOnItsLoop) {
  std::shared_ptr<detail::Mailbox> mailbox;
  bool gone = false;
  struct Leaves {
    bool* gone;
    ~Leaves() { *gone = true; }
  };
  server.tool("wait", "", [&](Call& call) -> Task<std::string> {
    const Leaves leaves{&gone};
    mailbox = call.backend().loop().mailbox();
    co_await call.sleep(1h);
    co_return "never";
  });
  serve();
  EXPECT_TRUE(call("wait", "{}").is_null());
  mailbox->post([] { throw std::runtime_error("no memory"); });
  EXPECT_THROW(bench.run_all(), std::runtime_error);
  caller.channel().close();
  bench.run_all();
  EXPECT_TRUE(gone);
}

}  // namespace
}  // namespace sluice
