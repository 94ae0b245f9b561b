// sluice/concurrency.hpp, in handlers and in middleware.

#include "sluice/concurrency.hpp"

#include "server/handlers/concurrency_test_support.hpp"

namespace sluice {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST_F(ConcurrencyTest, AllRunAtOnceAndTheirResultsAreInOrder) {
  run([this](Call& call) -> Task<std::string> {
    const auto [a, b, c, d, e] =
        co_await when_all(later(call, 3s, 1), later(call, 1s, std::string("b")), call.sleep(2s),
                          now(4), later(call, 2s, std::make_unique<int>(5)));
    static_assert(std::is_same_v<decltype(c), const std::monostate>);
    co_return std::to_string(a) + b + std::to_string(d) + std::to_string(*e);
  });
  pass(2999ms);
  EXPECT_EQ(answer(), "");
  pass(1ms);
  EXPECT_EQ(answer(), "1b45");
}

TEST_F(ConcurrencyTest, WhatDoesNotWaitIsDoneAtOnce) {
  run([](Call&) -> Task<std::string> {
    const auto [a, b] = co_await when_all(now(1), with_timeout(0s, now(2)));
    std::vector<Task<int>> many;
    for (int i = 0; i < 1000; ++i) many.push_back(now(i));
    const std::vector<int> values = co_await when_all(std::move(many));
    co_await when_all(std::vector<Task<>>());
    co_return std::to_string(a + b) + " " + std::to_string(values.size()) + " " +
        std::to_string(values[999]);
  });
  EXPECT_EQ(answer(), "3 1000 999");
  EXPECT_EQ(bench.executors[0].timers(), 0U);
}

TEST_F(ConcurrencyTest, AVectorOfTasksIsBounded) {
  run([this](Call& call) -> Task<std::string> {
    std::vector<Task<>> few;
    for (int i = 0; i < 3; ++i) {
      few.push_back([](Call& its_call) -> Task<> { co_await its_call.sleep(1s); }(call));
    }
    co_await when_all(std::move(few));
    said.emplace_back("few");
    std::vector<Task<int>> many;
    for (std::size_t i = 0; i <= kMaxConcurrentTasks; ++i) many.push_back(later(call, 1s, 1));
    co_await when_all(std::move(many));
    co_return "never";
  });
  pass(1s);
  EXPECT_THAT(said, ElementsAre("few"));
  EXPECT_EQ(answer(), "-31010 At most 1000 things may be done at once");
}

TEST_F(ConcurrencyTest, TheFirstErrorEndsTheOthersAndComesWhenTheyAreGone) {
  run([this](Call& call) -> Task<std::string> {
    try {
      co_await when_all(later(call, 3s, 1), fail_later(call, 2s, "second"),
                        fail_later(call, 1s, "first"), later(call, 1s, 2));
    } catch (const Error& error) {
      said.push_back(error.message);
    }
    co_await call.sleep(5s);
    co_return "went on";
  });
  pass(1s);
  EXPECT_THAT(said,
              ElementsAre("later begins", "later begins", "later ends", "later ends", "first"));
  pass(4s);
  EXPECT_EQ(answer(), "");
  EXPECT_EQ(bench.executors[0].timers(), 1 + kCallTimers) << "what was given up has none";
  pass(1s);
  EXPECT_EQ(answer(), "went on");
  EXPECT_EQ(said.size(), 5U);
}

TEST_F(ConcurrencyTest, WhatStandsBehindOneThatFailsAtOnceDoesNotBegin) {
  run([this](Call& call) -> Task<std::string> {
    co_await when_all(later(call, 1s, 1), fail_now("no"), later(call, 1s, 2));
    co_return "never";
  });
  EXPECT_EQ(answer(), "-5 no");
  EXPECT_THAT(said, ElementsAre("later begins", "later ends"));
}

TEST_F(ConcurrencyTest, AnyExceptionOfOneIsThatOfAll) {
  run([this](Call& call) -> Task<std::string> {
    try {
      co_await when_all(later(call, 1s, 1), [](Call& its_call) -> Task<> {
        co_await its_call.sleep(1ms);
        throw std::out_of_range("far");
      }(call));
    } catch (const std::out_of_range& error) {
      co_return error.what();
    }
    co_return "never";
  });
  pass(1ms);
  EXPECT_EQ(answer(), "far");
}

TEST_F(ConcurrencyTest, AFailureThatIsNullIsAnErrorOfWhoeverFails) {
  run([](Call& call) -> Task<std::string> {
    try {
      co_await call.callback<int>([](Resolver<int> it) { it.fail(nullptr); });
    } catch (const std::logic_error& error) {
      co_return error.what();
    }
    co_return "never";
  });
  EXPECT_THAT(answer(), HasSubstr("null exception_ptr"));
}

TEST_F(ConcurrencyTest, ACancelOfTheCallDestroysAllWhereTheyWait) {
  std::optional<Resolver<int>> resolver;
  run([&](Call& call) -> Task<std::string> {
    const Life life(*this, "call");
    co_await when_all(
        later(call, 1h, 1), with_timeout(1h, later(call, 2h, 2)), when_all(later(call, 1h, 3)),
        with_timeout(1h, call.callback<int>([&](Resolver<int> it) { resolver = std::move(it); })));
    co_return "never";
  });
  EXPECT_THAT(said, ElementsAre("call begins", "later begins", "later begins", "later begins"));
  said.clear();
  caller.channel().close();
  bench.run_all();
  EXPECT_THAT(said, ElementsAre("later ends", "later ends", "later ends", "call ends"));
  EXPECT_EQ(bench.executors[0].timers(), 0U);
  resolver->succeed(1);
  bench.run_all();
}

TEST_F(ConcurrencyTest, ACallThatEndsWhileOneOfSeveralRunsDestroysTheOthers) {
  run([this](Call& call) -> Task<std::string> {
    const auto close = [&]() -> Task<> {
      co_await call.sleep(1s);
      caller.channel().close();
      said.emplace_back("closed");
      co_await call.sleep(1s);
      said.emplace_back("never");
    };
    co_await when_all(later(call, 1h, 1), close());
    co_return "never";
  });
  pass(5s);
  EXPECT_THAT(said, ElementsAre("later begins", "closed", "later ends"));
  EXPECT_EQ(bench.executors[0].timers(), 0U);
}

TEST_F(ConcurrencyTest, AServerThatGoesDestroysWhatWaits) {
  run([this](Call& call) -> Task<std::string> {
    co_await when_all(later(call, 1h, 1), with_timeout(1h, later(call, 2h, 2)));
    co_return "never";
  });
  said.clear();
  bench.dispatcher.reset();
  bench.run_all();
  EXPECT_THAT(said, ElementsAre("later ends", "later ends"));
}

TEST_F(ConcurrencyTest, WhatComesInTimeIsTheResult) {
  run([this](Call& call) -> Task<std::string> {
    const int value = co_await with_timeout(1s, later(call, 999ms, 7));
    co_await with_timeout(1s, call.sleep(1ms));
    said.push_back(std::to_string(bench.executors[0].timers()));
    co_return std::to_string(value);
  });
  pass(1s);
  EXPECT_EQ(answer(), "7");
  EXPECT_THAT(
      said, ElementsAre("later begins", "later waited", "later ends", std::to_string(kCallTimers)));
}

TEST_F(ConcurrencyTest, WhatDoesNotIsGivenUp) {
  run([this](Call& call) -> Task<std::string> {
    co_return std::to_string(co_await with_timeout(1s, later(call, 2s, 7)));
  });
  pass(999ms);
  EXPECT_EQ(answer(), "");
  pass(1ms);
  EXPECT_EQ(answer(), "-31001 It took longer than it may");
  EXPECT_THAT(said, ElementsAre("later begins", "later ends"));
  EXPECT_EQ(bench.executors[0].timers(), 0U);
}

TEST_F(ConcurrencyTest, AnErrorInTimeIsTheOneThatComes) {
  run([](Call& call) -> Task<std::string> {
    co_return std::to_string(co_await with_timeout(1s, fail_later(call, 999ms, "early")));
  });
  pass(1s);
  EXPECT_EQ(answer(), "-5 early");
}

TEST_F(ConcurrencyTest, OfAValueAndATimeoutDueTogetherTheFirstCounts) {
  ManualExecutor& loop = bench.executors[0];
  std::vector<Resolver<int>> resolvers;
  const auto succeed_in_1s = [&](std::size_t index, int value) {
    loop.schedule_at(loop.clock().now() + 1s,
                     [&resolvers, index, value] { resolvers.at(index).succeed(value); });
  };
  succeed_in_1s(0, 7);  // before the timeout's timer is set
  run([&](Call& call) -> Task<std::string> {
    std::string heard;
    for (int i = 0; i < 2; ++i) {
      try {
        heard += std::to_string(co_await with_timeout(
            1s, call.callback<int>([&](Resolver<int> it) { resolvers.push_back(std::move(it)); })));
      } catch (const Error& error) {
        heard += " " + std::to_string(error.code);
      }
    }
    co_return heard;
  });
  pass(1s);
  ASSERT_EQ(resolvers.size(), 2U);
  EXPECT_EQ(answer(), "");

  succeed_in_1s(1, 8);  // after it
  pass(1s);
  EXPECT_EQ(answer(), "7 -31001");
}

TEST_F(ConcurrencyTest, AnAnswerThatComesTooLateIsHarmless) {
  std::optional<Resolver<int>> resolver;
  run([&](Call& call) -> Task<std::string> {
    try {
      co_await with_timeout(
          1s, call.callback<int>([&](Resolver<int> it) { resolver = std::move(it); }));
    } catch (const Error& error) {
      said.push_back(std::to_string(error.code));
    }
    co_await call.sleep(1s);
    co_return "went on";
  });
  pass(1s);
  EXPECT_THAT(said, ElementsAre("-31001"));
  resolver->succeed(7);
  bench.run_all();
  EXPECT_EQ(answer(), "");
  pass(1s);
  EXPECT_EQ(answer(), "went on");
}

TEST_F(ConcurrencyTest, WhatATaskWaitedForCanBeWaitedForAgain) {
  const auto wait = [](Awaiting<int>& value) -> Task<int> { co_return co_await value; };
  run([&wait](Call& call) -> Task<std::string> {
    std::optional<Resolver<int>> resolver;
    Awaiting<int> value = call.callback<int>([&](Resolver<int> it) { resolver = std::move(it); });
    bool is_late = false;
    try {
      co_await with_timeout(1s, wait(value));
    } catch (const Error& error) {
      is_late = error.code == kTimedOut;
    }
    EXPECT_TRUE(is_late);
    resolver->succeed(5);
    co_await call.sleep(1s);  // nobody waits for the value when it comes
    co_return std::to_string(co_await value);
  });
  pass(1s);
  pass(1s);
  EXPECT_EQ(answer(), "5");
}

TEST_F(ConcurrencyTest, TwoCannotWaitForTheSame) {
  const auto wait = [](Awaiting<void>& value) -> Task<> { co_await value; };
  run([&wait](Call& call) -> Task<std::string> {
    Awaiting<void> timer = call.sleep(1s);
    try {
      co_await when_all(wait(timer), wait(timer));
    } catch (const std::logic_error& error) {
      co_return error.what();
    }
    co_return "both came";
  });
  EXPECT_THAT(answer(), HasSubstr("two coroutines wait for the same value"));
}

TEST_F(ConcurrencyTest, AQuestionWhoseTimeIsOverIsTakenBack) {
  run_in_session([this](Call& call) -> Task<std::string> {
    try {
      co_await with_timeout(1s, call.ask({{.method = "roots/list"}}));
    } catch (const Error& error) {
      said.push_back(std::to_string(error.code));
    }
    co_await call.sleep(1s);
    co_return "went on";
  });
  EXPECT_THAT(caller.channel().written, HasSubstr(R"("id":1,"method":"roots/list")"));
  pass(1s);
  EXPECT_THAT(said, ElementsAre("-31001"));
  EXPECT_THAT(caller.channel().written,
              HasSubstr(R"("method":"notifications/cancelled","params":{"requestId":1})"));
  pass(1s);
  EXPECT_EQ(answer(), "went on");
}

TEST_F(ConcurrencyTest, TheCallMayEndWhileItsQuestionIsTakenBack) {
  run_in_session([this](Call& call) -> Task<std::string> {
    const Life life(*this, "call");
    co_await when_all(with_timeout(1s, call.ask({{.method = "roots/list"}})), call.sleep(1h));
    co_return "never";
  });
  // The connection closes when the client is told that the question is withdrawn.
  caller.channel().when_written = [this] { caller.channel().close(); };
  pass(1s);
  EXPECT_THAT(said, ElementsAre("call begins", "call ends"));
}

TEST_F(ConcurrencyTest, ATimeMayBeAnything) {
  run([this](Call& call) -> Task<std::string> {
    co_await with_timeout(std::chrono::nanoseconds::max(), call.sleep(1s));
    for (const auto time : {0ns, -1ns, std::chrono::nanoseconds::min()}) {
      try {
        co_await with_timeout(time, call.sleep(1s));
      } catch (const Error& error) {
        said.push_back(std::to_string(error.code));
      }
    }
    co_return "done";
  });
  pass(1s);
  EXPECT_EQ(answer(), "done");
  EXPECT_THAT(said, ElementsAre("-31001", "-31001", "-31001"));
}

TEST_F(ConcurrencyTest, TimersDoNotPileUp) {
  run([this](Call& call) -> Task<std::string> {
    for (int i = 0; i < 100; ++i) {
      co_await with_timeout(1h, call.sleep(1ms));
      try {
        co_await with_timeout(1ms, call.sleep(1h));
      } catch (const Error&) {
        said.push_back(std::to_string(bench.executors[0].timers()));
      }
    }
    co_return "done";
  });
  pass(200ms);
  EXPECT_EQ(answer(), "done");
  EXPECT_THAT(
      said, ::testing::AllOf(::testing::SizeIs(100), ::testing::Each(std::to_string(kCallTimers))));
}

TEST_F(ConcurrencyTest, TheyNest) {
  const auto or_else = [this](Call& call, Duration time, Duration limit) -> Task<int> {
    try {
      co_return co_await with_timeout(limit, later(call, time, 1));
    } catch (const Error&) {
      co_return 0;
    }
  };
  run([this, &or_else](Call& call) -> Task<std::string> {
    const auto [a, b, pair] = co_await when_all(
        or_else(call, 3s, 1s), or_else(call, 2s, 3s),
        with_timeout(10s, when_all(or_else(call, 1s, 2s), later(call, 1s, std::string("x")))));
    co_return std::to_string(a) + std::to_string(b) + std::to_string(std::get<0>(pair)) +
        std::get<1>(pair);
  });
  pass(2s);
  EXPECT_EQ(answer(), "011x");
}

TEST_F(ConcurrencyTest, ATimeThatIsOverFurtherInEndsAllFurtherOut) {
  run([this](Call& call) -> Task<std::string> {
    co_await with_timeout(
        1min, when_all(later(call, 1min, 1),
                       when_all(later(call, 1min, 2), with_timeout(1s, later(call, 2s, 3)))));
    co_return "never";
  });
  pass(1s);
  EXPECT_EQ(answer(), "-31001 It took longer than it may");
  EXPECT_EQ(said.size(), 6U);
  EXPECT_EQ(bench.executors[0].timers(), 0U);
}

TEST_F(ConcurrencyTest, MiddlewareLimitsTheTimeOfARequest) {
  Server server("test", "1");
  server.tool("it", "", [this](Call& call) -> Task<std::string> {
    co_return std::to_string(co_await later(call, 2s, 7));
  });
  server.use([this](Request& request) -> Task<> {
    co_await when_all(with_timeout(1s, request.next()), request.sleep(1ms));
    said.emplace_back("never");
  });
  serve(server);
  bench.send(kCall, caller);
  pass(1s);
  EXPECT_EQ(answer(), "-31001 It took longer than it may");
  EXPECT_THAT(said, ElementsAre("later begins", "later ends"));
}

TEST_F(ConcurrencyTest, MiddlewareHearsOfTheEndBesideOtherThings) {
  Server server("test", "1");
  server.tool("it", "", [this](Call& call) -> Task<std::string> {
    co_return std::to_string(co_await later(call, 2s, 7));
  });
  server.use([this](Request& request) -> Task<> {
    const auto [end, slept] =
        co_await when_all(with_timeout(3s, request.next()), request.sleep(1s));
    said.emplace_back(end.error ? "error" : "result");
  });
  serve(server);
  bench.send(kCall, caller);
  pass(2s);
  EXPECT_EQ(answer(), "7");
  EXPECT_THAT(said, ElementsAre("later begins", "later waited", "later ends", "result"));
}

TEST_F(ConcurrencyTest, AStreamMayRunThemToo) {
  Server server("test", "1");
  server.tool("it", "", [this](Call& call) -> Stream<std::string> {
    co_yield text("one");
    const auto [a, b] = co_await when_all(later(call, 1s, 1), later(call, 1s, 2));
    co_yield text("two");
    co_return std::to_string(a + b);
  });
  serve(server);
  bench.send(kCall, caller);
  pass(1s);
  EXPECT_EQ(answer(), "3");
  EXPECT_THAT(caller.channel().written, HasSubstr("two"));
}

}  // namespace
}  // namespace sluice
