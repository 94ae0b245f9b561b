// What concurrent Tasks wait for: workers, slow peers, answers that come too late.

#include "server/handlers/concurrency_test_support.hpp"

namespace sluice {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;

TEST_F(ConcurrencyTest, AWorkerIsWaitedFor) {
  run([this](Call& call) -> Task<std::string> {
    try {
      co_await with_timeout(1s, work(call));
    } catch (const Error& error) {
      said.push_back(std::to_string(error.code));
    }
    co_await call.sleep(1s);
    co_return "went on";
  });
  running.get_future().wait();
  pass(5s);
  EXPECT_THAT(said, ElementsAre("work begins"));
  go_on.set_value();
  wait_for_worker();
  bench.run_all();
  EXPECT_THAT(said, ElementsAre("work begins", "work ends", "-31001"));
  pass(1s);
  EXPECT_EQ(answer(), "went on");
}

TEST_F(ConcurrencyTest, WhatWasGivenUpDoesNotGoOnWhileAWorkerIsWaitedFor) {
  run([this](Call& call) -> Task<std::string> {
    co_await with_timeout(
        1s, when_all(work(call), later(call, 2s, 1), with_timeout(3s, later(call, 1h, 1))));
    co_return "never";
  });
  running.get_future().wait();
  pass(5s);
  EXPECT_THAT(said, ElementsAre("work begins", "later begins", "later begins"));
  go_on.set_value();
  wait_for_worker();
  bench.run_all();
  EXPECT_EQ(answer(), "-31001 It took longer than it may");
  EXPECT_THAT(said, ::testing::Not(::testing::Contains("later waited")));
  EXPECT_EQ(said.size(), 6U);
}

TEST_F(ConcurrencyTest, AFailureBesideAWorkerWaitsForIt) {
  run([this](Call& call) -> Task<std::string> {
    co_await when_all(work(call), fail_later(call, 1s, "no"));
    co_return "never";
  });
  running.get_future().wait();
  pass(1s);
  EXPECT_EQ(answer(), "");
  go_on.set_value();
  wait_for_worker();
  bench.run_all();
  EXPECT_EQ(answer(), "-5 no");
}

TEST_F(ConcurrencyTest, OneThatIsGivenUpWithAllAroundItWhenItsWorkerHasJustEnded) {
  std::optional<Resolver<int>> resolver;
  run([&](Call& call) -> Task<std::string> {
    co_await when_all(with_timeout(1s, work(call)),
                      call.callback<int>([&](Resolver<int> it) { resolver = std::move(it); }));
    co_return "never";
  });
  running.get_future().wait();
  pass(1s);
  // The loop is told of the failure first, and destroys the task whose worker then ends.
  resolver->fail(std::make_exception_ptr(Error{-5, "no"}));
  go_on.set_value();
  wait_for_worker();
  bench.run_all();
  EXPECT_EQ(answer(), "-5 no");
  EXPECT_THAT(said, ElementsAre("work begins", "work ends"));
}

TEST_F(ConcurrencyTest, AJobThatHasNotBegunIsDropped) {
  run([this](Call& call) -> Task<std::string> {
    const auto second = [&]() -> Task<> {
      const Life life(*this, "second");
      co_await call.in_background([&] { said.emplace_back("never"); });
    };
    const auto try_second = [&]() -> Task<> {
      try {
        co_await with_timeout(1s, second());
      } catch (const Error& error) {
        said.push_back(std::to_string(error.code));
      }
    };
    co_await when_all(work(call), try_second());
    co_return "done";
  });
  running.get_future().wait();
  pass(1s);
  EXPECT_THAT(said, ElementsAre("work begins", "second begins", "second ends", "-31001"));
  go_on.set_value();
  wait_for_worker();
  bench.run_all();
  EXPECT_EQ(answer(), "done");
  EXPECT_EQ(said.back(), "work ends");
}

TEST_F(ConcurrencyTest, ACancelledCallIsThereAsLongAsAWorkerUsesOneOfItsTasks) {
  run([this](Call& call) -> Task<std::string> {
    const Life life(*this, "call");
    co_await when_all(with_timeout(1s, work(call)), later(call, 2s, 1));
    co_return "never";
  });
  running.get_future().wait();
  pass(1s);
  caller.channel().close();
  pass(5s);
  EXPECT_THAT(said, ElementsAre("call begins", "work begins", "later begins"));
  go_on.set_value();
  wait_for_worker();
  bench.run_all();
  EXPECT_THAT(said, ElementsAre("call begins", "work begins", "later begins", "work ends",
                                "later ends", "call ends"));
}

TEST_F(ConcurrencyTest, ASlowPeerIsWaitedForByEachThatSpeaks) {
  const auto speak = [](Call& call, int lines) -> Task<int> {
    for (int i = 0; i < lines; ++i) {
      if (!call.text("a line of some length that fills the buffer")) co_await call.room();
    }
    co_return lines;
  };
  run([&speak](Call& call) -> Task<std::string> {
    const auto [a, b] = co_await when_all(speak(call, 20'000), speak(call, 20'000));
    co_return std::to_string(a + b);
  });
  caller.channel().writable = false;
  for (int i = 0; i < 40'000 && caller.channel().finishes == 0; ++i) {
    caller.channel().written.clear();
    caller.channel().drain();
    caller.channel().writable = false;
    bench.executors[0].advance({});
  }
  EXPECT_EQ(answer(), "40000");
}

TEST_F(ConcurrencyTest, WaitsForRoomDoNotPileUp) {
  constexpr int kWaits = 10'000;
  std::size_t growth = 0;
  run([&growth](Call& call) -> Task<std::string> {
    co_await call.sleep(1ms);  // until the peer is slow
    while (call.text("a line of some length that fills the buffer")) {
    }
    co_await call.sleep(1ms);
    const std::size_t before = mallinfo2().uordblks;
    for (int i = 0; i < kWaits; ++i) {
      try {
        co_await with_timeout(1ms, call.room());
      } catch (const Error&) {
      }
    }
    growth = mallinfo2().uordblks - before;
    co_await call.room();
    co_return "went on";
  });
  caller.channel().writable = false;
  pass(kWaits * 1ms + 2ms);
  // With a sanitizer's allocator this shows nothing.
  EXPECT_LT(growth, std::size_t{kWaits} * 10);
  caller.channel().drain();
  bench.run_all();
  EXPECT_EQ(answer(), "went on");
}

TEST_F(ConcurrencyTest, AQuestionMayBeAnsweredTooLate) {
  bench.request("initialize",
                R"("protocolVersion":"2025-11-25","capabilities":{"elicitation":{}},)"
                R"("clientInfo":{"name":"c","version":"1"})",
                caller);
  Server server("test", "1");
  server.tool("it", "", [](Call& call) -> Task<std::string> {
    std::string heard;
    for (int i = 0; i < 2; ++i) {
      try {
        const auto [consent, slept] =
            co_await when_all(with_timeout(1min, call.elicit<Consent>("Sure?")), call.sleep(1s));
        heard += consent.content->sure ? "yes" : "no";
      } catch (const Error& error) {
        heard += std::to_string(error.code) + " ";
      }
    }
    co_return heard;
  });
  serve(server);
  bench.request("tools/call", R"("name":"it","arguments":{})", caller);
  const auto question_id = [this] {
    const std::string& written = caller.channel().written;
    const std::size_t at = written.rfind(R"(,"method":"elicitation/create")");
    const std::size_t from = written.rfind(R"("id":)", at) + 5;
    return written.substr(from, at - from);
  };
  const auto answer_with = [this](const std::string& id, std::string_view sure) {
    bench.send(R"({"jsonrpc":"2.0","id":)" + id +
                   R"(,"result":{"action":"accept","content":{"sure":)" + std::string(sure) + "}}}",
               caller);
    pass(1s);
  };
  bench.run_all();
  const std::string first = question_id();
  pass(1min);
  const std::string second = question_id();
  EXPECT_NE(first, second);
  answer_with(first, "false");
  EXPECT_EQ(answer(), "");
  answer_with(second, "true");
  EXPECT_EQ(answer(), "-31001 yes");
}

}  // namespace
}  // namespace sluice
