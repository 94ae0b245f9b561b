#include "engine/synthetic_engine.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "core/manual_executor.hpp"
#include "json/json.hpp"

namespace sluice {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

struct RecordingSink final : GenerationSink {
  bool on_delta(Delta delta) override {
    EXPECT_FALSE(completion) << "a delta after the end";
    deltas.push_back(std::move(delta));
    if (after_delta) after_delta();
    return room == 0 || deltas.size() % room != 0;
  }
  void on_complete(Completion end) override {
    EXPECT_FALSE(completion) << "completed twice";
    completion = std::move(end);
  }
  std::vector<Delta> deltas;
  std::optional<Completion> completion;
  std::size_t room = 0;  // is full after each this many deltas; 0: never
  std::function<void()> after_delta;
};

GenerationRequest request(std::optional<std::int64_t> count,
                          std::optional<std::int64_t> interval_us = {}) {
  GenerationRequest request;
  request.count = count;
  request.interval_us = interval_us;
  return request;
}

class SyntheticEngineTest : public testing::Test {
 protected:
  std::unique_ptr<Generation> start(GenerationRequest wanted) {
    auto generation = engine_.start(std::move(wanted), sink_, loop_);
    EXPECT_TRUE(generation) << generation.error().message;
    return std::move(*generation);
  }

  ManualExecutor loop_;
  SyntheticEngine engine_;
  std::shared_ptr<RecordingSink> sink_ = std::make_shared<RecordingSink>();
};

TEST_F(SyntheticEngineTest, EmitsSixteenNumberedChunksWhenNotToldOtherwise) {
  loop_.advance(5ns);
  const auto generation = start(request({}));
  EXPECT_TRUE(sink_->deltas.empty()) << "start() must not call the sink";
  loop_.run();
  ASSERT_EQ(sink_->deltas.size(), 16U);
  EXPECT_EQ(sink_->deltas[0].text, "{\"n\":0,\"t_ns\":5}\n");
  EXPECT_EQ(sink_->deltas[15].text, "{\"n\":15,\"t_ns\":5}\n");
  EXPECT_FALSE(sink_->deltas[0].flush);
  ASSERT_TRUE(sink_->completion);
  EXPECT_EQ(sink_->completion->reason, Completion::Reason::stop);
  EXPECT_EQ(sink_->completion->usage.completion_tokens, 16U);
  EXPECT_EQ(generation->status().phase, GenerationStatus::Phase::done);
}

TEST_F(SyntheticEngineTest, ReturnsToTheLoopBetweenBatches) {
  const auto generation = start(request(200));
  std::vector<std::size_t> seen;
  const std::function<void()> watch = [&] {
    seen.push_back(sink_->deltas.size());
    if (!sink_->completion) loop_.post([&] { watch(); });
  };
  loop_.post([&] { watch(); });
  loop_.run();
  EXPECT_THAT(seen, testing::ElementsAre(64, 128, 192, 200));
}

TEST_F(SyntheticEngineTest, FlushesEachChunkAtMinusOne) {
  const auto generation = start(request(3, -1));
  loop_.run();
  ASSERT_EQ(sink_->deltas.size(), 3U);
  for (const Delta& delta : sink_->deltas) EXPECT_TRUE(delta.flush);
}

TEST_F(SyntheticEngineTest, PacesByAnAbsoluteSchedule) {
  const auto generation = start(request(4, 1000));
  loop_.run();
  EXPECT_EQ(sink_->deltas.size(), 1U);
  EXPECT_EQ(loop_.timers(), 1U);
  loop_.advance(999us);
  EXPECT_EQ(sink_->deltas.size(), 1U);
  loop_.advance(1us);
  EXPECT_EQ(sink_->deltas.size(), 2U);
  EXPECT_THAT(sink_->deltas[1].text, HasSubstr("\"t_ns\":1000000}"));
  loop_.advance(2ms);
  EXPECT_TRUE(sink_->completion);
  EXPECT_EQ(sink_->completion->timings.decode, 3ms);
  EXPECT_EQ(loop_.timers(), 0U);
}

TEST_F(SyntheticEngineTest, CatchesUpWithTheScheduleAfterAPause) {
  sink_->room = 1;
  const auto generation = start(request(10, 1000));
  loop_.run();
  loop_.advance(5ms);  // chunks 1 to 5 fall due while the sink is full
  EXPECT_EQ(sink_->deltas.size(), 1U);
  sink_->room = 0;
  generation->resume();
  loop_.run();
  EXPECT_EQ(sink_->deltas.size(), 6U);
  loop_.advance(1ms);
  ASSERT_EQ(sink_->deltas.size(), 7U);
  std::vector<bool> flushed;
  for (const Delta& delta : sink_->deltas) flushed.push_back(delta.flush);
  EXPECT_THAT(flushed, testing::ElementsAre(true, false, false, false, false, true, true))
      << "late chunks are flushed together";
}

TEST_F(SyntheticEngineTest, PausesWhileTheSinkIsFull) {
  sink_->room = 2;
  const auto generation = start(request(5));
  generation->resume();  // has no effect before there was a pause
  loop_.run();
  EXPECT_EQ(sink_->deltas.size(), 2U);
  generation->resume();
  loop_.run();
  EXPECT_EQ(sink_->deltas.size(), 4U);
  generation->resume();
  loop_.run();
  EXPECT_EQ(sink_->deltas.size(), 5U);
  EXPECT_TRUE(sink_->completion);
}

TEST_F(SyntheticEngineTest, ResumeInsideTheSinkIsNotLost) {
  sink_->room = 1;
  std::unique_ptr<Generation> generation = start(request(5));
  sink_->after_delta = [&] { generation->resume(); };
  loop_.run();
  EXPECT_EQ(sink_->deltas.size(), 5U);
  EXPECT_TRUE(sink_->completion);
}

TEST_F(SyntheticEngineTest, CompletesAFullSinkAfterTheLastChunk) {
  sink_->room = 3;
  const auto generation = start(request(3));
  loop_.run();
  EXPECT_TRUE(sink_->completion);
}

TEST_F(SyntheticEngineTest, CancelEndsItWithoutAnotherChunk) {
  const auto generation = start(request(10, 1000));
  loop_.advance(3ms);
  const std::size_t before = sink_->deltas.size();
  generation->cancel();
  generation->cancel();
  loop_.advance(20ms);
  EXPECT_EQ(sink_->deltas.size(), before);
  ASSERT_TRUE(sink_->completion);
  EXPECT_EQ(sink_->completion->reason, Completion::Reason::cancelled);
  EXPECT_EQ(loop_.timers(), 0U);
  EXPECT_EQ(engine_.stats().cancelled, 1U);
}

TEST_F(SyntheticEngineTest, CancelFromTheSinkStopsAtThatChunk) {
  std::unique_ptr<Generation> generation = start(request(10));
  sink_->after_delta = [&] {
    if (sink_->deltas.size() == 3) generation.reset();
  };
  loop_.run();
  EXPECT_EQ(sink_->deltas.size(), 3U);
  ASSERT_TRUE(sink_->completion);
  EXPECT_EQ(sink_->completion->reason, Completion::Reason::cancelled);
}

TEST_F(SyntheticEngineTest, DestroyingTheHandleCancelsAlsoBeforeTheFirstChunk) {
  start(request(10)).reset();
  loop_.run();
  EXPECT_TRUE(sink_->deltas.empty());
  EXPECT_TRUE(sink_->completion);
}

TEST_F(SyntheticEngineTest, RefusesWhatIsOutOfRangeAndNamesIt) {
  for (const auto& [wanted, text] : std::vector<std::pair<GenerationRequest, std::string>>{
           {request(-1), "count must be from 0 to 100000000"},
           {request(100'000'001), "count must be from 0 to 100000000"},
           {request(1, -2), "interval_us must be from -1 to 60000000"},
           {request(1, 60'000'001), "interval_us must be from -1 to 60000000"}}) {
    const auto generation = engine_.start(wanted, sink_, loop_);
    ASSERT_FALSE(generation);
    EXPECT_EQ(generation.error().code, -32602);
    EXPECT_EQ(generation.error().message, text);
  }
}

TEST_F(SyntheticEngineTest, TheLargestScheduleDoesNotOverflow) {
  const auto generation = start(request(SyntheticEngine::kMaxCount, kMaxIntervalUs));
  loop_.advance(61s);
  EXPECT_EQ(sink_->deltas.size(), 2U);
}

TEST_F(SyntheticEngineTest, BoundsHowManyRun) {
  SyntheticEngine small(1);
  auto first = small.start(request(1), sink_, loop_);
  ASSERT_TRUE(first);
  const auto other = std::make_shared<RecordingSink>();
  const auto second = small.start(request(1), other, loop_);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, kBusy);
  loop_.run();
  EXPECT_TRUE(small.start(request(1), other, loop_));
  loop_.run();
}

TEST_F(SyntheticEngineTest, ShutdownEndsEverySinkAndRefusesMore) {
  const auto generation = start(request(10, 1000));
  loop_.run();
  engine_.shutdown();
  ASSERT_TRUE(sink_->completion);
  EXPECT_EQ(sink_->completion->reason, Completion::Reason::cancelled);
  loop_.advance(10ms);
  EXPECT_EQ(sink_->deltas.size(), 1U);
  EXPECT_FALSE(engine_.start(request(1), sink_, loop_));
}

TEST_F(SyntheticEngineTest, CountsWhatItDoes) {
  const auto generation = start(request(3));
  EXPECT_EQ(engine_.stats().slots_busy, 1U);
  loop_.run();
  EXPECT_EQ(engine_.stats().slots_busy, 0U);
  EXPECT_EQ(engine_.stats().requests, 1U);
  EXPECT_EQ(engine_.stats().completion_tokens, 3U);
  EXPECT_EQ(engine_.info().engine, "synthetic");
}

}  // namespace
}  // namespace sluice
