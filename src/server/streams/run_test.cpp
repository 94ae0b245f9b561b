// The stream method `run`, with and without a stream.

#include <algorithm>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "server/dispatch/server_test_support.hpp"
#include "stream/stream_error.hpp"
#include "stream/stream_test_support.hpp"

namespace sluice {
namespace {

class RunTest : public ::testing::Test {
 protected:
  ServerBench bench;
  RecordingCaller caller;
};

TEST_F(RunTest, StartsAStream) {
  const std::string out =
      bench.request("run", R"("prompt":"p","stream":true,"priority":3,"window":9)", caller);
  ASSERT_EQ(bench.runs.size(), 1U);
  EXPECT_EQ(out, result_text(R"({"stream_id":")" + std::string(bench.runs[0]->id()) +
                             R"(","status":"streaming_started"})"));
  EXPECT_EQ(bench.runs[0]->priority(), 3);
  EXPECT_EQ(bench.runs[0]->principal(), "alice");
  EXPECT_THAT(bench.run_params[0], testing::HasSubstr(R"("prompt":"p")"));
}

TEST_F(RunTest, DoesNotCopyItsParameters) {
  const json::object params = {{"prompt", "p"}, {"stream", true}};
  bool is_same = false;
  bench.definition.stream_methods.at(0).handler =
      [&](const json::object& given, const MethodCaller&,
          const std::shared_ptr<ChunkStream>&) -> Result<void> {
    is_same = &given == &params;
    return {};
  };
  const Principal alice{.id = "alice"};
  EXPECT_TRUE(bench.services[0]->start(bench.definition.stream_methods.at(0), params,
                                       {.principal = alice, .storage = {}}, {}, true));
  EXPECT_TRUE(is_same);
}

TEST_F(RunTest, AnswersAWholeText) {
  EXPECT_EQ(bench.request("run", R"("prompt":"p")", caller), "");
  EXPECT_EQ(bench.outcome.kind, Outcome::Kind::pending);
  ChunkStream& stream = *bench.runs.at(0);
  stream.append(ChunkKind::reasoning, "hm");
  stream.append(ChunkKind::text, "a");
  bench.run_all();
  stream.append(ChunkKind::text, "\"b");
  stream.append(ChunkKind::tool_call, "{}");
  bench.run_all();
  EXPECT_TRUE(caller.channel().replies.empty());
  stream.finish(R"("finish_reason":"stop")");
  bench.run_all();
  ASSERT_EQ(caller.channel().replies.size(), 1U);
  EXPECT_EQ(caller.channel().replies[0],
            result_text(R"({"status":"completed","text":"a\"b","reasoning":"hm",)"
                        R"("tool_calls":[{}],"finish_reason":"stop"})"));
  EXPECT_EQ(bench.managers[0]->counters().open, 0U);
}

TEST_F(RunTest, AWholeTextMayBeginWhileItIsStarted) {
  bench.definition.stream_methods.at(0).handler =
      [this](const json::object& /*params*/, const MethodCaller& /*caller*/,
             const std::shared_ptr<ChunkStream>& stream) -> Result<void> {
    bench.runs.push_back(stream);
    stream->append(ChunkKind::text, "a");
    return {};
  };
  bench.request("run", R"("prompt":"p")", caller);
  bench.runs.at(0)->append(ChunkKind::text, "b");
  bench.run_all();
  bench.runs.at(0)->finish(R"("finish_reason":"stop")");
  bench.run_all();
  EXPECT_EQ(caller.channel().replies.at(0),
            result_text(R"({"status":"completed","text":"ab","finish_reason":"stop"})"));
}

TEST_F(RunTest, WholeTextsThatEndTogetherAreAnsweredInTurns) {
  constexpr std::size_t kRuns = 12;
  for (std::size_t i = 0; i < kRuns; ++i) bench.request("run", R"("prompt":"p")", caller);
  bench.run_all();
  for (const auto& run : bench.runs) {
    for (int i = 0; i < 6; ++i) {
      run->append(ChunkKind::text, std::string(100'000, 'x'));
      bench.run_all();
    }
  }
  struct Watch final : Executor::TurnHook {
    void on_turn_end() override {
      std::size_t now = 0;
      for (const auto& channel : caller->channels) now += channel->replies.size();
      most = std::max(most, now - before);
      before = now;
      if (before < kRuns) loop->at_turn_end(*this);
    }
    ManualExecutor* loop = nullptr;
    const RecordingCaller* caller = nullptr;
    std::size_t before = 0;
    std::size_t most = 0;
  } watch;
  watch.loop = &bench.executors[0];
  watch.caller = &caller;
  watch.loop->at_turn_end(watch);
  for (const auto& run : bench.runs) run->finish();
  bench.run_all();
  EXPECT_EQ(watch.before, kRuns);
  EXPECT_LE(watch.most, 2U);
}

TEST_F(RunTest, AWholeTextHasALimit) {
  bench.request("run", R"("prompt":"p")", caller);
  bench.run_all();
  for (int i = 0; i < 90; ++i) {
    bench.runs.at(0)->append(ChunkKind::text, std::string(100'000, 'x'));
    bench.run_all();
    EXPECT_EQ(caller.channel().replies.size(), i < 83 ? 0U : 1U);
  }
  EXPECT_EQ(error_code(caller.channel().replies.at(0)), kLimitReached);
  EXPECT_EQ(bench.managers[0]->counters().open, 0U);
}

TEST_F(RunTest, KeepsAWholeTextOnItsClientsMemory) {
  bench.request("run", R"("prompt":"p")", caller);
  const std::size_t before = bench.policy.budget.used();
  for (int i = 0; i < 100; ++i) {
    bench.runs.at(0)->append(ChunkKind::text, std::string(10000, 'a'));
    bench.run_all();
  }
  EXPECT_GE(bench.policy.budget.used(), before + 1'000'000);
  EXPECT_TRUE(caller.channel().replies.empty());
  // The client's other requests leave it no more memory.
  const std::shared_ptr<MemoryShare> share = bench.managers[0]->memory_of("alice");
  std::size_t taken = 0;
  while (share->try_acquire(100'000)) taken += 100'000;
  CountingStreamProducer producer;
  bench.runs.at(0)->set_producer(&producer);
  for (int i = 0; i < 200 && caller.channel().replies.empty(); ++i) {
    bench.runs.at(0)->append(ChunkKind::text, std::string(10000, 'a'));
    bench.run_all();
  }
  share->release(taken);
  ASSERT_EQ(caller.channel().replies.size(), 1U);
  EXPECT_EQ(error_code(caller.channel().replies[0]), kLimitReached);
  EXPECT_EQ(producer.cancels, 1);
  EXPECT_EQ(bench.managers[0]->counters().open, 0U);
  EXPECT_LE(bench.policy.budget.used(), before);
}

TEST_F(RunTest, OfWholeTextsThatWaitForEachOthersMemoryOneFails) {
  bench.request("run", R"("prompt":"p")", caller);
  bench.request("run", R"("prompt":"p")", caller);
  const std::shared_ptr<MemoryShare> share = bench.managers[0]->memory_of("alice");
  // Each holds the memory it needs so far, and little is left.
  for (const std::size_t size : {2'000'000U, 1'000'000U}) {
    for (const auto& run : bench.runs) run->append(ChunkKind::text, std::string(size, 'a'));
    bench.run_all();
  }
  std::size_t taken = 0;
  while (!share->is_short(1000) && share->try_acquire(1000)) taken += 1000;
  for (const auto& run : bench.runs) run->append(ChunkKind::text, std::string(2000, 'a'));
  bench.run_all();
  EXPECT_TRUE(bench.runs[0]->paused());
  EXPECT_TRUE(bench.runs[1]->paused());
  bench.executors[0].advance(std::chrono::milliseconds(999));
  EXPECT_EQ(caller.channels[0]->replies.size() + caller.channels[1]->replies.size(), 0U);
  bench.executors[0].advance(std::chrono::milliseconds(100));
  ASSERT_EQ(caller.channels[0]->replies.size() + caller.channels[1]->replies.size(), 1U);
  EXPECT_EQ(error_code(caller.channels[0]->replies.at(0)), kLimitReached);
  EXPECT_FALSE(bench.runs[1]->paused());
  bench.runs[1]->finish();
  bench.run_all();
  EXPECT_EQ(caller.channels[1]->replies.size(), 1U);
  share->release(taken);
}

TEST_F(RunTest, AFailedStreamIsAnError) {
  bench.request("run", R"("prompt":"p")", caller);
  bench.runs.at(0)->append(ChunkKind::text, "a");
  bench.runs.at(0)->fail({-32603, "broken", {}});
  bench.run_all();
  ASSERT_EQ(caller.channel().replies.size(), 1U);
  EXPECT_EQ(caller.channel().replies[0],
            R"({"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"broken"}})");
}

TEST_F(RunTest, IsCancelledWithItsCaller) {
  bench.request("run", R"("prompt":"p")", caller);
  CountingStreamProducer producer;
  bench.runs.at(0)->set_producer(&producer);
  bench.run_all();
  caller.channel().close();
  bench.run_all();
  EXPECT_EQ(producer.cancels, 1);
  EXPECT_TRUE(caller.channel().replies.empty());
  EXPECT_EQ(bench.managers[0]->counters().open, 0U);
}

TEST_F(RunTest, LeavesNothingWhenItIsRefused) {
  EXPECT_EQ(error_code(bench.request("run", R"("refuse":1,"stream":true)", caller)), -32602);
  EXPECT_EQ(error_code(bench.request("run", R"("refuse":1)", caller)), -32602);
  EXPECT_EQ(error_code(bench.request("run", R"("stream":1)", caller)), -32602);
  caller.full = true;
  EXPECT_EQ(error_code(bench.request("run", R"("prompt":"p")", caller)), kBusy);
  EXPECT_EQ(bench.managers[0]->counters().open, 0U);
}

TEST_F(RunTest, PushingIsForWebSockets) {
  EXPECT_EQ(error_code(bench.request("subscribe", R"("stream_id":"a")", caller)), -32600);
  EXPECT_EQ(error_code(bench.request("unsubscribe", R"("stream_id":"a")", caller)), -32600);
}

}  // namespace
}  // namespace sluice
