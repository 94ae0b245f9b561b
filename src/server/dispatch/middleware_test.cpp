// sluice/middleware.hpp, around every method.

#include "sluice/middleware.hpp"

#include <functional>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <memory>
#include <optional>
#include <semaphore>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rpc/error_codes.hpp"
#include "server/dispatch/server_test_support.hpp"
#include "server/workers/worker_pool.hpp"

namespace sluice {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr std::string_view kNewestMeta =
    R"("_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",)"
    R"("io.modelcontextprotocol/clientCapabilities":{}})";

/// Records when it is destroyed.
class Farewell {
 public:
  explicit Farewell(std::vector<std::string>& said) : said_(&said) {}
  ~Farewell() { said_->emplace_back("destroyed"); }
  Farewell(const Farewell&) = delete;
  Farewell& operator=(const Farewell&) = delete;

 private:
  std::vector<std::string>* said_;
};

class MiddlewareTest : public ::testing::Test {
 protected:
  void use(Middleware middleware) {
    bench.definition.middleware.push_back(std::move(middleware));
    bench.serve();
  }
  /// Adds a middleware that records the requests it sees and how they end.
  void listen() {
    use([this](Request& request) -> Task<> {
      const RequestEnd end = co_await request.next();
      ends.push_back(request.method() + (end.error ? " " + std::to_string(*end.error) : "") +
                     (end.cancelled ? " cancelled" : ""));
    });
  }
  /// Adds a middleware that waits for a second, and then refuses the request if `refuses` is set.
  void wait() {
    use([this](Request& request) -> Task<> {
      const Farewell farewell(waits);
      waits.push_back(request.method());
      co_await request.sleep(1s);
      waits.emplace_back("waited");
      if (refuses) throw Error{403, "Not for you"};
      co_await request.next();
    });
  }
  std::string call_later(std::string_view more = "") {
    return bench.request(
        "tools/call", std::string(kNewestMeta) + R"(,"name":"later")" + std::string(more), caller);
  }
  /// The newest reply through the newest channel.
  const std::string& reply() {
    static const std::string kNone;
    return caller.channels.empty() || caller.channel().replies.empty()
               ? kNone
               : caller.channel().replies.back();
  }
  std::size_t replies() const {
    std::size_t count = 0;
    for (const auto& channel : caller.channels) {
      count += channel->replies.size() + static_cast<std::size_t>(channel->finishes);
    }
    return count;
  }
  void pass(Duration time) {
    bench.executors[0].advance(time);
    bench.run_all();
  }

  // Declared before the bench: its middleware writes to these while it is destroyed.
  std::vector<std::string> ends;
  std::vector<std::string> waits;
  bool refuses = false;
  ServerBench bench;
  RecordingCaller caller;
};

TEST_F(MiddlewareTest, WhatDoesNotWaitIsAnsweredAtOnceInTheOrderOfAnOnion) {
  std::vector<std::string> heard;
  for (const char* name : {"outer", "inner"}) {
    use([&heard, name](Request& request) -> Task<> {
      heard.push_back(std::string(name) + " before");
      const RequestEnd end = co_await request.next();
      heard.push_back(std::string(name) + " after");
      EXPECT_FALSE(end.error || end.cancelled);
    });
  }
  EXPECT_EQ(bench.send(kPing, caller), kPong);
  EXPECT_EQ(bench.outcome.kind, Outcome::Kind::answered);
  EXPECT_TRUE(caller.channels.empty());
  EXPECT_THAT(heard, ElementsAre("outer before", "inner before", "inner after", "outer after"));
  EXPECT_EQ(bench.quota.in_use(), 0U);
}

TEST_F(MiddlewareTest, ItKnowsWhatARequestIsAboutWhateverElseItSays) {
  std::vector<std::string> heard;
  use([&heard](Request& request) -> Task<> {
    heard.push_back(request.method() + "|" + request.name() + "|" + request.principal() + "|" +
                    request.revision());
    co_await request.next();
  });
  const std::string misleading =
      std::string(kNewestMeta) + R"(,"uri":"test://secret","name":"harmless")";
  bench.request("resources/read", misleading, caller);
  bench.request("prompts/list", misleading, caller);
  bench.request("tasks/result", R"("taskId":"t")", caller);
  bench.request("abort", R"("stream_id":"0123456789abcdef")", caller);
  EXPECT_THAT(heard, ElementsAre("resources/read|test://secret|alice|2026-07-28",
                                 "prompts/list||alice|2026-07-28",
                                 "tasks/result|t|alice|2025-11-25", "abort||alice|"));
}

TEST_F(MiddlewareTest, EveryMethodWaitsForItAndIsAnsweredOnce) {
  listen();
  wait();
  const std::string unknown = R"("stream_id":"0123456789abcdef","from_seq":0,"seq":0)";
  const std::string modern(kNewestMeta);
  struct Row {
    std::string method;
    std::string params;
    std::optional<int> error;
  };
  const std::vector<Row> rows = {
      {"initialize", R"("protocolVersion":"2025-11-25","capabilities":{})", {}},
      {"initialize", "", kInvalidParams},
      {"ping", "", {}},
      {"logging/setLevel", R"("level":"debug")", {}},
      {"tools/list", modern, {}},
      {"tools/call", modern + R"(,"name":"echo","arguments":{"text":"a"})", {}},
      {"tools/call", modern + R"(,"name":"none")", kInvalidParams},
      {"resources/read", modern + R"(,"uri":"none:")", kInvalidParams},
      {"server/discover", modern, {}},
      {"no/such", modern, kMethodNotFound},
      {"abort", unknown, -32001},
      {"is_running", unknown, -32001},
      {"run", unknown, -32001},
      {"ack", unknown, -32001},
      {"run", R"("prompt":"p","stream":true)", {}},
      {"streams", "", {}},
  };
  for (const bool refused : {true, false}) {
    refuses = refused;
    for (const auto& [method, params, error] : rows) {
      const std::size_t before = replies();
      ends.clear();
      EXPECT_EQ(bench.request(method, params, caller), "") << method;
      EXPECT_EQ(bench.outcome.kind, Outcome::Kind::pending) << method;
      EXPECT_EQ(bench.quota.in_use(), 1U);
      pass(999ms);
      EXPECT_EQ(replies(), before) << method;
      pass(1ms);
      ASSERT_EQ(replies(), before + 1) << method;
      const int code = refused ? 403 : error.value_or(0);
      EXPECT_EQ(error_code(reply()), code) << reply();
      EXPECT_THAT(ends, ElementsAre(method + (code != 0 ? " " + std::to_string(code) : "")));
      EXPECT_EQ(bench.quota.in_use(), 0U);
      EXPECT_FALSE(caller.channel().waits_for_close()) << method;
    }
    EXPECT_EQ(caller.agreed == nullptr, refused);
    EXPECT_EQ(bench.runs.size(), refused ? 0U : 1U);
  }
}

TEST_F(MiddlewareTest, ACallThatIsAnsweredLaterIsHeardOfThen) {
  listen();
  wait();
  EXPECT_EQ(call_later(R"(,"arguments":{"a":1})"), "");
  EXPECT_TRUE(bench.calls.empty());
  pass(1s);
  ASSERT_EQ(bench.calls.size(), 1U);
  EXPECT_EQ(bench.quota.in_use(), 1U) << "the call has the place that the wait has left";
  EXPECT_THAT(ends, IsEmpty());
  bench.calls[0]->complete({.text = "done"});
  EXPECT_THAT(reply(), HasSubstr("done"));
  EXPECT_EQ(replies(), 1U);
  call_later();
  pass(1s);
  // Zero is a valid code.
  bench.calls[1]->fail({0, "odd", {}});
  call_later();
  pass(1s);
  caller.channel().close();
  EXPECT_TRUE(bench.calls[2]->over());
  call_later();
  pass(1s);
  bench.calls.pop_back();  // dropped without an answer
  EXPECT_THAT(
      ends, ElementsAre("tools/call", "tools/call 0", "tools/call cancelled", "tools/call -32603"));
}

TEST_F(MiddlewareTest, WhatItThrowsIsTheAnswer) {
  int which = 0;
  listen();
  use([&which](Request& request) -> Task<> {
    if (which == 0) throw Error{7, "seven", "[7]"};
    if (which == 1) throw std::runtime_error("secret");
    if (which == 2) co_return;
    if (which == 3) throw 3;
    co_await request.next();
    throw std::runtime_error("too late");
  });
  EXPECT_EQ(bench.send(kPing, caller),
            R"({"jsonrpc":"2.0","id":1,"error":{"code":7,"message":"seven","data":[7]}})");
  for (which = 1; which < 4; ++which) {
    EXPECT_EQ(bench.send(kPing, caller),
              R"({"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"Internal error"}})");
  }
  EXPECT_EQ(bench.send(kPing, caller), kPong);
  EXPECT_THAT(ends, ElementsAre("ping 7", "ping -32603", "ping -32603", "ping -32603", "ping"));
  // A middleware that is not a coroutine.
  which = 0;
  use([](Request& request) -> Task<> {
    if (request.method() == "ping") throw Error{8, "eight"};
    return [](Request& asked) -> Task<> { co_await asked.next(); }(request);
  });
  EXPECT_EQ(error_code(bench.send(kPing, caller)), 7) << "the one before is asked first";
  which = 4;
  EXPECT_EQ(error_code(bench.send(kPing, caller)), 8);
  EXPECT_EQ(error_code(bench.request("tools/list", kNewestMeta, caller)), 0);
}

TEST_F(MiddlewareTest, WhatItThrowsWhileTheRequestIsUnderWayEndsIt) {
  listen();
  bool late = false;
  use([&late](Request& request) -> Task<> {
    const Awaiting<RequestEnd> end = request.next();
    co_await request.sleep(1s);
    late = true;
    throw Error{kTimedOut, "Too late"};
  });
  call_later(R"(,"arguments":{})");
  pass(1s);
  EXPECT_TRUE(bench.calls.at(0)->over());
  EXPECT_EQ(error_code(reply()), kTimedOut);
  EXPECT_EQ(replies(), 1U);
  // Long polls and whole runs are not calls, but they end as well.
  const std::shared_ptr<ChunkStream> stream = bench.start(0);
  bench.request("run",
                R"("from_seq":0,"wait_ms":5000,"stream_id":")" +
                    std::string(std::string_view(stream->id())) + "\"",
                caller);
  bench.run_all();
  pass(1s);
  EXPECT_EQ(error_code(reply()), kTimedOut);
  bench.request("run", R"("prompt":"p")", caller);
  pass(1s);
  EXPECT_EQ(error_code(reply()), kTimedOut);
  EXPECT_TRUE(bench.runs.at(0)->ended());
  bench.request("run", R"("prompt":"p")", caller);
  bench.runs.at(1)->finish();
  bench.run_all();
  late = false;
  pass(1s);
  EXPECT_TRUE(late) << "it need not hear of the end, and may be late";
  EXPECT_EQ(replies(), 4U);
  EXPECT_THAT(ends, ElementsAre("tools/call -31001", "run -31001", "run -31001", "run"));
}

TEST_F(MiddlewareTest, OneWhoseCallerGoesIsDestroyedWhereItWaits) {
  listen();
  wait();
  call_later();
  EXPECT_EQ(bench.quota.in_use(), 1U);
  caller.channel().close();
  EXPECT_THAT(waits, ElementsAre("tools/call", "destroyed"));
  EXPECT_THAT(ends, ElementsAre("tools/call cancelled"));
  EXPECT_EQ(bench.quota.in_use(), 0U);
  pass(2s);
  EXPECT_TRUE(bench.calls.empty());
  EXPECT_EQ(replies(), 0U);
  EXPECT_EQ(bench.executors[0].timers(), 0U);
}

TEST_F(MiddlewareTest, AShutdownAnswersWhatWaits) {
  listen();
  wait();
  call_later();
  EXPECT_EQ(bench.request("ping", "", caller), "");
  pass(500ms);
  EXPECT_EQ(bench.request("ping", "", caller), "");
  bench.dispatcher->end_calls({kBusy, "The server is shutting down", {}});
  bench.run_all();
  ASSERT_EQ(caller.channels.size(), 3U);
  for (const auto& channel : caller.channels) {
    ASSERT_EQ(channel->replies.size(), 1U);
    EXPECT_EQ(error_code(channel->replies[0]), kBusy);
  }
  EXPECT_EQ(ends, (std::vector<std::string>{"tools/call -31000", "ping -31000", "ping -31000"}));
  EXPECT_EQ(std::ranges::count(waits, "destroyed"), 3);
  EXPECT_EQ(std::ranges::count(waits, "waited"), 0);
  EXPECT_EQ(bench.quota.in_use(), 0U);
  pass(2s);
  EXPECT_EQ(replies(), 3U);
}

TEST_F(MiddlewareTest, TheEndOfItsDispatcherEndsItInEveryPhase) {
  std::vector<std::string> said;
  use([&said](Request& request) -> Task<> {
    const Farewell farewell(said);
    co_await request.next();
    co_await request.sleep(1h);
  });
  use([&said](Request& request) -> Task<> {
    const Farewell farewell(said);
    if (request.method() == "ping") co_await request.sleep(1h);
    co_await request.next();
  });
  bench.request("ping", "", caller);                 // the second waits
  bench.request("tools/list", kNewestMeta, caller);  // the first waits, after the end
  call_later();                                      // both wait for the end
  bench.calls.clear();
  call_later();
  EXPECT_THAT(said, ElementsAre("destroyed", "destroyed"));
  bench.dispatcher.reset();
  bench.run_all();
  EXPECT_EQ(said.size(), 8U);
  EXPECT_EQ(bench.quota.in_use(), 0U);
  bench.serve();
}

TEST_F(MiddlewareTest, WhatWaitsCountsAmongTheCallsOfItsClient) {
  wait();
  const std::size_t most = bench.quota.limit();
  for (std::size_t i = 0; i < most; ++i) EXPECT_EQ(bench.request("ping", "", caller), "");
  EXPECT_EQ(error_code(bench.request("ping", "", caller)), kLimitReached);
  EXPECT_THAT(waits.back(), "destroyed");
  RecordingCaller other("bob");
  EXPECT_EQ(bench.request("ping", "", other), "");
  pass(1s);
  EXPECT_EQ(replies(), most);
  caller.full = true;
  EXPECT_EQ(error_code(bench.request("ping", "", caller)), kBusy);
  EXPECT_EQ(bench.quota.in_use(), 0U);
}

TEST_F(MiddlewareTest, WhatWaitsBehindTheEndCountsToo) {
  int finished = 0;
  use([&finished](Request& request) -> Task<> {
    co_await request.next();
    co_await request.sleep(1s);
    ++finished;
  });
  const std::size_t most = bench.quota.limit();
  for (std::size_t i = 0; i < most + 2; ++i) {
    EXPECT_EQ(bench.send(kPing, caller), kPong) << "the answer does not wait";
  }
  EXPECT_EQ(bench.quota.in_use(), most);
  pass(1s);
  EXPECT_EQ(finished, static_cast<int>(most));
  EXPECT_EQ(bench.quota.in_use(), 0U);
}

TEST_F(MiddlewareTest, OneThatIsCancelledLeavesTheOthers) {
  listen();
  wait();
  EXPECT_EQ(bench.send(kPing, caller), "");
  EXPECT_EQ(bench.send(ping("2"), caller), "");
  caller.channel().close(DisconnectReason::cancelled);
  pass(1s);
  EXPECT_THAT(ends, ElementsAre("ping cancelled", "ping"));
}

TEST_F(MiddlewareTest, ALongMessageIsReadAgainBesideTheLoop) {
  wait();
  const std::string text(100'000, 'x');
  EXPECT_EQ(bench.request(
                "tools/call",
                std::string(kNewestMeta) + R"(,"name":"echo","arguments":{"text":")" + text + "\"}",
                caller),
            "");
  pass(1s);
  EXPECT_THAT(reply(), HasSubstr(text));
  EXPECT_EQ(replies(), 1U);
}

TEST_F(MiddlewareTest, WhatItHeldBackMeetsWhatIsOfferedThen) {
  wait();
  call_later();
  bench.definition.tools.clear();
  bench.dispatcher->take(RefPtr(new LoopCatalog(Catalog::make(bench.definition).value(),
                                                *bench.results, bench.executors[0])));
  pass(1s);
  EXPECT_THAT(reply(), HasSubstr("Unknown tool"));
  EXPECT_EQ(replies(), 1U);
}

TEST_F(MiddlewareTest, NotificationsOfStreamMethodsWaitForIt) {
  listen();
  wait();
  const std::shared_ptr<ChunkStream> stream = bench.start(0);
  CountingStreamProducer producer;
  stream->set_producer(&producer);
  const std::string abort = R"({"jsonrpc":"2.0","method":"abort","params":{"stream_id":")" +
                            std::string(std::string_view(stream->id())) + "\"}}";
  for (refuses = true;; refuses = false) {
    EXPECT_EQ(bench.send(abort, caller), "");
    EXPECT_EQ(bench.outcome.kind, Outcome::Kind::accepted);
    pass(999ms);
    EXPECT_EQ(producer.cancels, 0);
    pass(1ms);
    EXPECT_EQ(producer.cancels, refuses ? 0 : 1);
    if (!refuses) break;
  }
  EXPECT_TRUE(caller.channels.empty());
  EXPECT_THAT(ends, ElementsAre("abort 403", "abort"));
  stream->set_producer(nullptr);
  // Other notifications do not pass the middleware.
  bench.send(R"({"jsonrpc":"2.0","method":"notifications/initialized"})", caller);
  EXPECT_EQ(ends.size(), 2U);
}

TEST_F(MiddlewareTest, ItMayAskOtherThreads) {
  bench.definition.workers = std::make_shared<WorkerPool>(1, 10);
  std::binary_semaphore begun(0);
  std::binary_semaphore go_on(0);
  listen();
  use([&](Request& request) -> Task<> {
    const std::string token = "token of " + request.principal();
    const bool allowed = co_await request.in_background([&] {
      begun.release();
      go_on.acquire();
      return token == "token of alice";
    });
    if (!allowed) throw Error{403, "Not for you"};
    co_await request.next();
  });
  EXPECT_EQ(bench.send(kPing, caller), "");
  begun.acquire();
  go_on.release();
  while (replies() == 0) bench.run_all();
  EXPECT_EQ(reply(), kPong);
  // The thread uses the coroutine's variables, so they must exist until the thread has finished.
  EXPECT_EQ(bench.send(kPing, caller), "");
  begun.acquire();
  caller.channel().close();
  bench.run_all();
  go_on.release();
  bench.definition.workers = nullptr;
  bench.serve();
  bench.run_all();
  EXPECT_THAT(ends, ElementsAre("ping", "ping cancelled"));
}

TEST_F(MiddlewareTest, ItHearsOfTheErrorOfATasksResult) {
  listen();
  bench.definition.tools[1].task_support = TaskSupport::optional;
  bench.serve();
  caller.agreed =
      std::make_shared<Session>("", "alice", *find_revision("2025-11-25"), ClientDescription());
  const std::string created = bench.request("tools/call", R"("name":"later","task":{})", caller);
  const std::string id(parse_json(created).value().at_pointer("/result/task/taskId").as_string());
  bench.run_all();
  bench.request("tasks/result", R"("taskId":")" + id + "\"", caller);
  bench.calls.at(0)->fail({42, "broken", {}});
  bench.run_all();
  EXPECT_EQ(error_code(reply()), 42);
  bench.request("tasks/result", R"("taskId":")" + id + "\"", caller);
  EXPECT_THAT(ends, ElementsAre("tools/call", "tasks/result 42", "tasks/result 42"));
}

}  // namespace
}  // namespace sluice
