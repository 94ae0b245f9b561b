// Handlers whose work is done on other threads.

#include <atomic>
#include <chrono>
#include <future>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <optional>
#include <string>
#include <thread>

#include "json/json.hpp"
#include "rpc/error_codes.hpp"
#include "server/handlers/public_server_test_support.hpp"

namespace sluice {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

TEST_F(PublicServerTest, ABlockingHandlerRunsOnAThreadOfItsOwn) {
  std::thread::id worker;
  server.tool("slow", "", blocking([&worker](Add in, Call& call) {
                worker = std::this_thread::get_id();
                for (int i = 0; i < 100; ++i) call.text("working");
                return Total{in.a * in.b};
              }));
  serve();
  bench.request("tools/call", modern("{}", R"("name":"slow","arguments":{"a":6,"b":7})"), caller);
  json::value answer;
  while (caller.channel().finishes == 0 && caller.channel().replies.empty()) bench.run_all();
  answer = answer_of("");
  EXPECT_EQ(answer.at_pointer("/result/structuredContent/sum").as_int64(), 42);
  EXPECT_EQ(events(), 101U);
  EXPECT_NE(worker, std::this_thread::get_id());
}

TEST_F(PublicServerTest, ABlockingHandlerWhoseCallIsCancelledIsLetGo) {
  std::promise<void> begun;
  std::promise<void> ended;
  server.tool("slow", "", blocking([&](Call& call) {
                begun.set_value();
                while (call.text("working")) {
                }
                ended.set_value();
                return "never";
              }));
  serve();
  bench.request("tools/call", modern("{}", R"("name":"slow")"), caller);
  begun.get_future().wait();
  caller.channel().close();
  const std::future<void> end = ended.get_future();
  while (end.wait_for(0s) != std::future_status::ready) bench.run_all();
}

TEST_F(PublicServerTest, ABlockingHandlerWhoseClientDoesNotReadKeepsNoThreadFromOthers) {
  Server narrow("test", "1", {.workers = 1});
  std::promise<void> stopped;
  bool endless = false;
  narrow.tool("talk", "", blocking([&](Call& call) {
                const std::string text(10'000, 'x');
                for (int i = 0; endless || i < 200; ++i) {
                  if (call.text(text)) continue;
                  stopped.set_value();
                  break;
                }
                return "said";
              }));
  narrow.tool("work", "", [](Call& call) -> Task<std::string> {
    co_await call.in_background([] {});
    co_return "done";
  });
  server = narrow;
  serve();
  for (const bool for_ever : {false, true}) {
    endless = for_ever;
    RecordingCaller unread;
    bench.request("tools/call", modern("{}", R"("name":"talk")"), unread);
    unread.channel().writable = false;
    RecordingCaller other("bob");
    bench.request("tools/call", modern("{}", R"("name":"work")"), other);
    const auto until = std::chrono::steady_clock::now() + 20s;
    while (other.channel().replies.empty() && std::chrono::steady_clock::now() < until) {
      bench.run_all();
    }
    ASSERT_EQ(other.channel().replies.size(), 1U);
    EXPECT_THAT(other.channel().replies[0], HasSubstr("done"));
    if (for_ever) {
      stopped.get_future().wait();
      bench.run_all();
    }
    EXPECT_LT(unread.channel().written.size(), 1'000'000U);
    unread.channel().drain();
    bench.run_all();
    EXPECT_THAT(
        unread.channel().written,
        HasSubstr(for_ever ? "Your streams have used all the memory that one client may have"
                           : "said"));
    EXPECT_GT(unread.channel().written.size(), 2'000'000U);
  }
}

TEST_F(PublicServerTest, AValueFromAnotherThreadWakesTheCoroutine) {
  std::optional<Resolver<int>> resolver;
  server.tool("wait", "", [&resolver](Call& call) -> Task<Total> {
    co_return Total{co_await call.callback<int>([&resolver](Resolver<int> it) { resolver = it; })};
  });
  serve();
  EXPECT_TRUE(call("wait", "{}").is_null());
  std::thread([&resolver] { resolver->succeed(9); }).join();
  EXPECT_EQ(answer_of("").at_pointer("/result/structuredContent/sum").as_int64(), 9);
  // Nobody waits any more.
  resolver->succeed(10);
  bench.run_all();
}

/// Only so many moves and copies of it on this thread succeed as `budget` says.
class Fragile {
 public:
  Fragile() = default;
  Fragile(const Fragile& /*other*/) { spend(); }
  Fragile(Fragile&& /*other*/) { spend(); }  // NOLINT(performance-noexcept-move-constructor)
  Fragile& operator=(const Fragile&) = delete;
  Fragile& operator=(Fragile&&) = delete;
  ~Fragile() = default;

  static inline thread_local int budget = 0;

 private:
  static void spend() {
    if (budget-- <= 0) throw Error{7, "it cannot be moved", {}};
  }
};

TEST_F(PublicServerTest, AValueThatCannotBeMovedFailsItsWaiter) {
  static constexpr int kEnough = 20;
  std::optional<Resolver<Fragile>> resolver;
  server.tool("callback", "", [&resolver](Call& call) -> Task<std::string> {
    co_await call.callback<Fragile>([&resolver](Resolver<Fragile> it) { resolver = it; });
    co_return "moved";
  });
  server.tool("in_background", "", [](Add in, Call& call) -> Task<std::string> {
    co_await call.in_background([&in] {
      Fragile::budget = in.a;
      return Fragile();
    });
    co_return "moved";
  });
  serve();
  const auto is_failure = [](const json::value& answer) {
    const json::value* const error = answer.as_object().if_contains("error");
    return error != nullptr && error->at("code").as_int64() == 7;
  };
  int failed = 0;
  for (int budget = 0; budget <= kEnough; ++budget) {
    EXPECT_TRUE(call("callback", "{}").is_null());
    const Fragile value;
    Fragile::budget = budget;
    try {
      resolver->succeed(value);
    } catch (const Error&) {
      resolver->fail(std::current_exception());
    }
    const json::value answer = answer_of("");
    ASSERT_FALSE(answer.is_null()) << budget;
    if (is_failure(answer)) ++failed;
  }
  // There are several places where it is moved.
  EXPECT_GT(failed, 2);
  EXPECT_LT(failed, kEnough);

  for (int budget = 0; budget <= kEnough; ++budget) {
    Fragile::budget = budget;
    bench.request("tools/call",
                  modern("{}", R"("name":"in_background","arguments":{"a":)" +
                                   std::to_string(budget) + R"(,"b":0})"),
                  caller);
    const auto until = std::chrono::steady_clock::now() + 20s;
    while (caller.channel().replies.empty() && std::chrono::steady_clock::now() < until) {
      bench.run_all();
    }
    ASSERT_EQ(caller.channel().replies.size(), 1U) << budget;
  }
}

TEST_F(PublicServerTest, ACoroutineIsThereAsLongAsAWorkerUsesIt) {
  struct Told {
    explicit Told(std::atomic<bool>& flag) : gone(&flag) {}
    ~Told() { *gone = true; }
    Told(const Told&) = delete;
    Told& operator=(const Told&) = delete;
    std::atomic<bool>* gone;
    int value = 7;
  };
  std::atomic<bool> gone = false;
  std::promise<void> running;
  std::promise<void> go_on;
  std::promise<int> seen;
  server.tool("work", "", [&](Call& call) -> Task<std::string> {
    Told local(gone);
    co_await call.in_background([&] {
      running.set_value();
      go_on.get_future().wait();
      seen.set_value(local.value);
    });
    co_return "done";
  });
  serve();
  call("work", "{}");
  running.get_future().wait();
  caller.channel().close();
  bench.run_all();
  EXPECT_FALSE(gone);
  go_on.set_value();
  EXPECT_EQ(seen.get_future().get(), 7);
  while (!gone) bench.run_all();
}

TEST_F(PublicServerTest, AJobThatHasNotBegunIsDroppedWithItsCall) {
  Server narrow("test", "1", {.workers = 1, .max_background_jobs = 1});
  std::promise<void> running;
  std::promise<void> go_on;
  int ran = 0;
  narrow.tool("hold", "", [&](Call& call) -> Task<std::string> {
    co_await call.in_background([&] {
      running.set_value();
      go_on.get_future().wait();
    });
    co_return "held";
  });
  narrow.tool("work", "", [&](Call& call) -> Task<std::string> {
    co_await call.in_background([&] { ++ran; });
    co_return "done";
  });
  server = narrow;
  serve();
  call("hold", "{}");
  running.get_future().wait();
  RecordingCaller leaving;
  bench.request("tools/call", modern("{}", R"("name":"work")"), leaving);
  leaving.channel().close();
  bench.run_all();
  // The dropped job has freed its place in the queue, which is the only one.
  RecordingCaller next;
  bench.request("tools/call", modern("{}", R"("name":"work")"), next);
  bench.run_all();
  go_on.set_value();
  while (next.channel().replies.empty()) bench.run_all();
  EXPECT_THAT(next.channel().replies.back(), HasSubstr("done"));
  EXPECT_EQ(ran, 1);
}

TEST_F(PublicServerTest, WhatNobodyWillHandOverFailsItsWaiter) {
  server.tool("void", "", [](Call& call) -> Task<std::string> {
    co_await call.callback<void>([](Resolver<void> it) { it.succeed(); });
    co_return "done";
  });
  server.tool("dropped", "", [](Call& call) -> Task<std::string> {
    co_await call.callback<void>([](const Resolver<void>&) {});
    co_return "never";
  });
  server.tool("twice", "", [](Call& call) -> Task<std::string> {
    co_return std::to_string(co_await call.callback<int>([](Resolver<int> it) {
      const Resolver<int> copy = it;
      it.succeed(1);
      it.succeed(2);
    }));
  });
  serve();
  EXPECT_EQ(text_of(call("void", "{}")), "done");
  EXPECT_EQ(text_of(call("twice", "{}")), "1");
  const json::value answer = call("dropped", "{}");
  EXPECT_EQ(answer.at_pointer("/error/code").as_int64(), kInternalError) << to_json(answer);
}

}  // namespace
}  // namespace sluice
