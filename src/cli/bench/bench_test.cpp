#include <chrono>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <map>
#include <string>

#include "cli/bench/bench_load.hpp"
#include "cli/bench/bench_results.hpp"
#include "core/manual_executor.hpp"
#include "json/json.hpp"

namespace sluice {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::Not;

/// A server that takes the time `service` for each unit, and serves the units of one place one
/// after the other.
class BenchLoadTest : public ::testing::Test {
 protected:
  void run(BenchPlan plan, Duration service, Duration for_time) {
    load = std::make_unique<BenchLoad>(
        loop, plan, [this, service](std::uint32_t slot, AnswerSink& sink) {
          busy = std::max(busy, ++under_way);
          (void)slot;
          loop.schedule_at(loop.clock().now() + service, [this, &sink] {
            --under_way;
            const std::string text =
                R"({"n":0,"t_ns":)" +
                std::to_string((loop.clock().now() - 3ms).time_since_epoch().count()) + "}\n";
            sink.on_delta({AnswerDelta::Kind::text, text});
            AnswerEnd end;
            if (fail_all) {
              end.outcome = outcome;
              end.error.message = "no";
            }
            sink.on_end(end);
          });
        });
    load->start([this] { ++done; });
    loop.advance(for_time);
  }

  ManualExecutor loop;
  std::unique_ptr<BenchLoad> load;
  int under_way = 0;
  int busy = 0;
  int done = 0;
  bool fail_all = false;
  AnswerEnd::Outcome outcome = AnswerEnd::Outcome::failed;  // if fail_all
};

TEST_F(BenchLoadTest, WithoutARateEveryPlaceIsKeptBusy) {
  run({.slots = 4, .duration = 1s}, 10ms, 2s);
  EXPECT_EQ(done, 1);
  EXPECT_EQ(busy, 4);
  EXPECT_EQ(load->results().completed, 400U);
  EXPECT_EQ(load->results().failed, 0U);
  EXPECT_EQ(load->results().late, 0U);
  EXPECT_EQ(load->results().complete.max(), 10'000'000U);
  EXPECT_EQ(load->results().elapsed, Duration(1s));
}

TEST_F(BenchLoadTest, AFastServerKeepsTheRate) {
  run({.slots = 8, .rate = 100, .duration = 2s}, 5ms, 3s);
  EXPECT_EQ(load->results().started, 200U);
  EXPECT_EQ(load->results().completed, 200U);
  EXPECT_EQ(load->results().late, 0U);
  EXPECT_EQ(busy, 1);
  EXPECT_EQ(load->results().complete.percentile(99.9), 5'000'000U);
}

TEST_F(BenchLoadTest, ASlowServersQueueCountsAsLatency) {
  // 100 units are due in one second, but only 50 can be served: the last one served was due about
  // half a second earlier.
  run({.slots = 1, .rate = 100, .duration = 1s}, 20ms, 3s);
  EXPECT_EQ(load->results().completed, 50U);
  EXPECT_EQ(load->results().late, 50U);
  EXPECT_NEAR(static_cast<double>(load->results().complete.max()), 510e6, 1e6);
  EXPECT_NEAR(static_cast<double>(load->results().complete.percentile(50)), 265e6, 10e6);
}

TEST_F(BenchLoadTest, TheGraceIsTheEndOfWaiting) {
  run({.slots = 2, .duration = 1s, .grace = 500ms}, 10s, 1400ms);
  EXPECT_EQ(done, 0);
  loop.advance(200ms);
  EXPECT_EQ(done, 1);
  EXPECT_EQ(load->results().completed, 0U);
  EXPECT_EQ(load->results().elapsed, Duration(1500ms));
  loop.advance(20s);  // what ends after that is not counted
  EXPECT_EQ(load->results().completed, 0U);
  EXPECT_EQ(done, 1);
}

TEST_F(BenchLoadTest, StopReportsAtOnce) {
  run({.slots = 1, .duration = 10s}, 10ms, 105ms);
  load->stop();
  EXPECT_EQ(done, 1);
  EXPECT_EQ(load->results().completed, 10U);
  loop.advance(1s);
  EXPECT_EQ(load->results().started, 11U);
}

TEST_F(BenchLoadTest, AddedLatencyNeedsASharedClock) {
  run({.slots = 1, .duration = 100ms, .clock_is_shared = true}, 10ms, 1s);
  EXPECT_EQ(load->results().added.count(), 10U);
  EXPECT_EQ(load->results().added.max(), 3'000'000U);
  under_way = 0;
  run({.slots = 1, .duration = 100ms}, 10ms, 1s);
  EXPECT_EQ(load->results().added.count(), 0U);
}

TEST_F(BenchLoadTest, FailuresAreCountedByReason) {
  fail_all = true;
  run({.slots = 1, .duration = 100ms}, 10ms, 1s);
  EXPECT_EQ(load->results().failed, 10U);
  EXPECT_EQ(load->results().errors.at("no"), 10U);
  EXPECT_EQ(load->results().complete.count(), 0U);
}

TEST_F(BenchLoadTest, AServerThatIsGoneIsNotAskedAgainAtOnce) {
  fail_all = true;
  outcome = AnswerEnd::Outcome::unreachable;
  run({.slots = 2, .duration = 1s}, 1ms, 2s);
  EXPECT_EQ(load->results().unreachable, 20U);
  EXPECT_EQ(done, 1);
}

TEST(BenchResults, KeepsABoundedNumberOfDifferentErrors) {
  BenchResults results;
  for (int i = 0; i < 100; ++i) results.count_error("error " + std::to_string(i));
  EXPECT_EQ(results.failed, 100U);
  EXPECT_EQ(results.errors.size(), BenchResults::kMaxErrors);
}

TEST(BenchResults, ReadsTheTimeOfASyntheticChunk) {
  EXPECT_EQ(chunk_time("{\"n\":17,\"t_ns\":123456789}\n"), 123456789U);
  EXPECT_EQ(chunk_time("hello"), 0U);
  EXPECT_EQ(chunk_time("\"t_ns\":"), 0U);
}

BenchResults example() {
  BenchResults results;
  results.started = 1234;
  results.completed = 1234;
  results.chunks = 1234567;
  results.bytes = 5;
  results.elapsed = 2s;
  results.first.record(1'500'000);
  results.complete.record(2'000'000'000);
  return results;
}

const BenchSubject kSubject{
    .url = "http://h:1", .mode = "sse", .streams = 3, .connections = 3, .rate = 50};

TEST(BenchResults, ReportsForPeople) {
  BenchResults results = example();
  const std::string text = text_report(kSubject, results);
  EXPECT_THAT(text, HasSubstr("streams at http://h:1, 3 at a time over 3 connections, "
                              "50 due per second, 2.0 s"));
  EXPECT_THAT(text, HasSubstr("1,234,567       617,284/s"));
  EXPECT_THAT(text, HasSubstr("first chunk         1.50 ms"));
  EXPECT_THAT(text, HasSubstr("2.00 s"));
  EXPECT_THAT(text, Not(HasSubstr("added latency")));
  EXPECT_THAT(text, Not(HasSubstr("failed")));
  results.count_error("boom");
  results.late = 7;
  EXPECT_THAT(text_report(kSubject, results), HasSubstr("1  boom"));
  results.count_error("\x1b[31mred\nsluice: done");
  EXPECT_THAT(text_report(kSubject, results), HasSubstr("1  [31mred sluice: done\n"));
  EXPECT_THAT(text_report(kSubject, results), HasSubstr("7 streams were due"));
}

TEST(BenchResults, ReportsForScripts) {
  const auto parsed = parse_json(json_report(kSubject, example()));
  ASSERT_TRUE(parsed);
  EXPECT_EQ(parsed->at("mode"), "sse");
  EXPECT_EQ(parsed->at("completed"), 1234);
  EXPECT_EQ(parsed->at("completed_per_s").to_number<double>(), 617);
  EXPECT_EQ(parsed->at("first_ms").at("p99").to_number<double>(), 1.5);
  EXPECT_FALSE(parsed->as_object().contains("added_ms"));
}

}  // namespace
}  // namespace sluice
