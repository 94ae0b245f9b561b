// sluice/concurrency.hpp, in handlers and in middleware.

#include "sluice/concurrency.hpp"

#include <functional>
#include <future>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <malloc.h>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rpc/error_codes.hpp"
#include "server/api/server_state.hpp"
#include "server/dispatch/server_test_support.hpp"
#include "server/workers/worker_pool.hpp"
#include "sluice/server.hpp"

namespace sluice {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

struct Consent {
  bool sure;
};

class ConcurrencyTest : public ::testing::Test {
 protected:
  using Body = std::function<Task<std::string>(Call&)>;

  /// Calls a tool that has this body. answer() is what the body returns or throws.
  void run(Body body) {
    Server server("test", "1", {.workers = 1});
    server.tool("it", "", [body = std::move(body)](Call& call) { return body(call); });
    serve(server);
    bench.send(kCall, caller);
    bench.run_all();
  }
  /// The same in a session whose client can be asked for its roots.
  void run_in_session(Body body) {
    Server server("test", "1", {.workers = 1});
    server.tool("it", "", [body = std::move(body)](Call& call) { return body(call); });
    serve(server);
    bench.request("initialize", R"("protocolVersion":"2025-11-25","capabilities":{"roots":{}})",
                  caller);
    bench.request("tools/call", R"("name":"it")", caller);
    bench.run_all();
  }
  void serve(const Server& server) {
    const ServerDefinition made = server.state()->definition();
    bench.definition.tools.push_back(made.tools.front());
    bench.definition.middleware = made.middleware;
    bench.definition.workers = made.workers;
    bench.serve();
  }
  void pass(Duration time) {
    bench.executors[0].advance(time);
    bench.run_all();
  }
  /// The text of the result or the error; empty if there is no answer yet.
  std::string answer() {
    const RecordingChannel& channel = caller.channel();
    std::string_view message;
    if (!channel.replies.empty()) {
      message = channel.replies.back();
    } else if (const std::size_t data = channel.written.rfind("data: ");
               data != std::string::npos && channel.finishes > 0) {
      message = std::string_view(channel.written).substr(data + 6);
    }
    if (message.empty()) return {};
    const json::value value = parse_json(message).value();
    if (const json::value* const error = value.as_object().if_contains("error")) {
      return std::to_string(error->at("code").as_int64()) + " " +
             std::string(error->at("message").as_string());
    }
    return std::string(value.at_pointer("/result/content/0/text").as_string());
  }
  /// Waits until the only worker has nothing left to do.
  void wait_for_worker() const {
    std::promise<void> done;
    WorkerPool& workers = *bench.definition.workers;
    workers.run(workers.new_id(), "waits", [&] { done.set_value(); });
    done.get_future().wait();
  }

  // Tasks to run concurrently. They record in `said` what they do.

  class Life {
   public:
    Life(ConcurrencyTest& test, std::string name) : test_(&test), name_(std::move(name)) {
      test_->said.push_back(name_ + " begins");
    }
    ~Life() { test_->said.push_back(name_ + " ends"); }
    Life(const Life&) = delete;
    Life& operator=(const Life&) = delete;

   private:
    ConcurrencyTest* test_;
    std::string name_;
  };
  template <class T>
  Task<T> later(Call& call, Duration time, T value) {
    const Life life(*this, "later");
    co_await call.sleep(time);
    said.emplace_back("later waited");
    co_return value;
  }
  static Task<int> fail_later(Call& call, Duration time, std::string why) {
    co_await call.sleep(time);
    throw Error{-5, std::move(why)};
  }
  static Task<int> fail_now(std::string why) {
    throw Error{-5, std::move(why)};
    co_return 0;
  }
  static Task<int> now(int value) { co_return value; }
  /// Works on the worker until `go_on` is set.
  Task<int> work(Call& call) {
    const Life life(*this, "work");
    const int local = 7;
    co_return co_await call.in_background([&] {
      running.set_value();
      go_on.get_future().wait();
      return local;
    });
  }

  /// The number of timers of a call that is not answered: that of its timeout.
  static constexpr std::size_t kCallTimers = 1;
  static constexpr std::string_view kCall =
      R"({"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"it","_meta":{)"
      R"("io.modelcontextprotocol/protocolVersion":"2026-07-28","progressToken":7,)"
      R"("io.modelcontextprotocol/clientCapabilities":{"elicitation":{}}}}})";

  std::vector<std::string> said;
  std::promise<void> running;
  std::promise<void> go_on;
  ServerBench bench;
  RecordingCaller caller;
};

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
