#include "server/streams/stream_service.hpp"

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

using namespace std::chrono_literals;

std::string with_id(const ChunkStream& stream, std::string_view more = "") {
  return R"("stream_id":")" + std::string(stream.id()) + "\"" + std::string(more);
}

/// The tests run twice: with the stream on the loop that is asked, and on another.
class StreamServiceTest : public ::testing::TestWithParam<std::size_t> {
 protected:
  /// The response to a request of the caller, sent at once or through its channel.
  std::string ask(std::string_view method, std::string_view params) {
    const std::string now = bench.request(method, params, caller);
    if (bench.outcome.kind == Outcome::Kind::answered) return now;
    bench.run_all();
    return answer();
  }
  /// What has come through the last channel.
  std::string answer() {
    RecordingChannel& channel = caller.channel();
    EXPECT_LE(channel.replies.size(), 1U);
    return channel.replies.empty() ? "" : channel.replies[0];
  }
  std::string expected(std::string_view members) const {
    return result_text("{" + with_id(*stream) + std::string(members) + "}");
  }
  ManualExecutor& loop() { return bench.executors[GetParam()]; }

  ServerBench bench{2};
  RecordingCaller caller;
  std::shared_ptr<ChunkStream> stream = bench.start(GetParam());
};

INSTANTIATE_TEST_SUITE_P(Loops, StreamServiceTest, ::testing::Values(0, 1),
                         [](const auto& test) { return test.param == 0 ? "Same" : "Other"; });

TEST_P(StreamServiceTest, PollsReadAndAcknowledge) {
  stream->append(ChunkKind::text, "a");
  stream->append(ChunkKind::text, "b");
  EXPECT_EQ(ask("run", with_id(*stream)),
            expected(R"(,"chunks":[{"seq":0,"delta":"a","end":false},)"
                     R"({"seq":1,"delta":"b","end":false}],"has_more":true)"));
  EXPECT_EQ(stream->first(), 0U);
  EXPECT_EQ(ask("run", with_id(*stream, R"(,"from_seq":1)")),
            expected(R"(,"chunks":[{"seq":1,"delta":"b","end":false}],"has_more":true)"));
  EXPECT_EQ(ask("run", with_id(*stream, R"(,"from_seq":2)")),
            expected(R"(,"chunks":[],"has_more":true)"));
  stream->finish(R"("status":"finished")");
  EXPECT_EQ(
      ask("run", with_id(*stream, R"(,"from_seq":2)")),
      expected(
          R"(,"chunks":[{"seq":2,"delta":"","end":true,"status":"finished"}],"has_more":false)"));
  EXPECT_TRUE(stream->delivered());
  EXPECT_EQ(error_code(ask("run", with_id(*stream, R"(,"from_seq":4)"))), -32006);
}

TEST_P(StreamServiceTest, APollTakesNoMoreChunksThanItAskedFor) {
  for (const char* const text : {"a", "b", "c"}) stream->append(ChunkKind::text, text);
  stream->finish({});
  const auto poll = [&](int from) {
    return ask("run", with_id(*stream, R"(,"max_chunks":2,"from_seq":)" + std::to_string(from)));
  };
  EXPECT_EQ(poll(0), expected(R"(,"chunks":[{"seq":0,"delta":"a","end":false},)"
                              R"({"seq":1,"delta":"b","end":false}],"has_more":true)"));
  EXPECT_FALSE(stream->delivered());
  EXPECT_EQ(poll(2), expected(R"(,"chunks":[{"seq":2,"delta":"c","end":false},)"
                              R"({"seq":3,"delta":"","end":true}],"has_more":false)"));
  EXPECT_TRUE(stream->delivered());
}

TEST_P(StreamServiceTest, PollsOfMuchAreSpreadOverTurns) {
  constexpr int kPolls = 20;
  for (int i = 0; i <= kPolls; ++i) stream->append(ChunkKind::text, std::string(40'000, 'x'));
  // Each poll acknowledges a chunk and is given the next six.
  struct Watch final : Executor::TurnHook {
    void on_turn_end() override {
      most = std::max(most, stream->first() - before);
      before = stream->first();
      if (before < kPolls) loop->at_turn_end(*this);
    }
    ManualExecutor* loop = nullptr;
    const ChunkStream* stream = nullptr;
    Seq before = 0;
    Seq most = 0;
  } watch;
  watch.loop = &loop();
  watch.stream = stream.get();
  loop().at_turn_end(watch);
  for (int i = 1; i <= kPolls; ++i) {
    bench.request(
        "run",
        R"("stream_id":")" + std::string(stream->id()) + R"(","from_seq":)" + std::to_string(i),
        caller);
  }
  bench.run_all();
  EXPECT_EQ(stream->first(), static_cast<Seq>(kPolls));
  EXPECT_LE(watch.most, 6U);
  std::size_t answered = 0;
  for (const auto& channel : caller.channels) {
    answered += channel->replies.size();
    EXPECT_FALSE(channel->waits_for_close());
  }
  EXPECT_EQ(answered, caller.channels.size());
  EXPECT_GE(answered, static_cast<std::size_t>(kPolls) - 6);
}

TEST_P(StreamServiceTest, APollThatWaitsForItsTurnIsGivenUpWithItsCaller) {
  stream->append(ChunkKind::text, "abc");
  bench.managers[GetParam()]->work().worked(TurnWork::kTurn);
  EXPECT_EQ(bench.request("run", with_id(*stream, R"(,"from_seq":1)"), caller), "");
  caller.channel().close();
  bench.executors[0].run();
  bench.run_all();
  EXPECT_TRUE(caller.channel().replies.empty());
  EXPECT_EQ(loop().timers(), 1U) << "no poll waits beside the sweep of the streams";
}

TEST_P(StreamServiceTest, APollWaitsForChunks) {
  const std::string poll = with_id(*stream, R"(,"from_seq":0,"wait_ms":1000)");
  EXPECT_EQ(ask("run", poll), "");
  stream->append(ChunkKind::text, "a");
  bench.run_all();
  EXPECT_EQ(answer(), expected(R"(,"chunks":[{"seq":0,"delta":"a","end":false}],"has_more":true)"));
  EXPECT_FALSE(caller.channel().waits_for_close());
}

TEST_P(StreamServiceTest, APollThatWaitsTakesMemoryOfItsClient) {
  const std::string poll = with_id(*stream, R"(,"from_seq":0,"wait_ms":1000)");
  const std::size_t before = bench.policy.budget.used();
  EXPECT_EQ(ask("run", poll), "");
  EXPECT_GE(bench.policy.budget.used(), before + 1000);
  // Others hold all the rest.
  const std::size_t rest = bench.policy.budget.limit() - bench.policy.budget.used();
  ASSERT_TRUE(bench.policy.budget.try_acquire(rest));
  EXPECT_EQ(ask("run", poll), expected(R"(,"chunks":[],"has_more":true)")) << "without waiting";
  bench.policy.budget.release(rest);
  loop().advance(1s);
  bench.run_all();
  EXPECT_EQ(bench.policy.budget.used(), before);
}

TEST_P(StreamServiceTest, ManyPollsThatWaitAreAnsweredInSeveralTurns) {
  constexpr std::size_t kPolls = 3000;
  std::vector<RecordingCaller> callers(kPolls);
  for (RecordingCaller& each : callers) {
    bench.request("run", with_id(*stream, R"(,"from_seq":0,"wait_ms":1000)"), each);
  }
  bench.run_all();
  stream->append(ChunkKind::text, "a");
  const auto answered = [&] {
    return std::ranges::count_if(callers,
                                 [](auto& each) { return !each.channel().replies.empty(); });
  };
  std::ptrdiff_t answered_before = -1;
  bench.managers[GetParam()]->work().worked(TurnWork::kTurn);
  bench.managers[GetParam()]->work().wait("another client", [&] { answered_before = answered(); });
  bench.run_all();
  EXPECT_LE(answered_before, 2000);
  EXPECT_EQ(answered(), kPolls);
}

TEST_P(StreamServiceTest, APollWithoutAPlaceAcknowledgesNothingThoughItWaits) {
  struct Reader final : Cursor {
    using Cursor::Cursor;
    void on_chunks() override {
      pass(stream()->next());
      acknowledge(stream()->next());
    }
    void on_dropped(const Error& /*error*/) override {}
  } reader(stream, 0);
  EXPECT_EQ(ask("run", with_id(*stream, R"(,"wait_ms":1000)")), "");
  for (int i = 0; i < 50; ++i) {
    stream->append(ChunkKind::text, std::string(10'000, 'x'));
    bench.run_all();
  }
  EXPECT_NE(answer(), "");
  EXPECT_GT(stream->first(), 0U) << "it reads no more";
}

TEST_P(StreamServiceTest, APollThatIsWokenSaysWhyItsStreamHasGone) {
  EXPECT_EQ(ask("run", with_id(*stream, R"(,"wait_ms":1000)")), "");
  stream->append(ChunkKind::text, "a");
  // Runs after the poll is woken and before its answer is made.
  loop().post([this] { bench.managers[GetParam()]->discard(*stream); });
  bench.run_all();
  EXPECT_EQ(error_code(answer()), kStreamExpired);
}

TEST_P(StreamServiceTest, APollWaitsNoLongerThanItSays) {
  EXPECT_EQ(ask("run", with_id(*stream, R"(,"from_seq":0,"wait_ms":1000)")), "");
  loop().advance(999ms);
  bench.run_all();
  EXPECT_EQ(answer(), "");
  loop().advance(1ms);
  bench.run_all();
  EXPECT_EQ(answer(), expected(R"(,"chunks":[],"has_more":true)"));
}

TEST_P(StreamServiceTest, AWaitingPollEndsWithItsCaller) {
  EXPECT_EQ(ask("run", with_id(*stream, R"(,"from_seq":0,"wait_ms":1000)")), "");
  const std::size_t timers = loop().timers();
  const std::weak_ptr<RecordingChannel> channel = caller.channels.back();
  caller.channel().close();
  bench.run_all();
  EXPECT_LT(loop().timers(), timers);
  stream->append(ChunkKind::text, "a");
  loop().advance(2s);
  bench.run_all();
  EXPECT_EQ(answer(), "");
  caller.channels.clear();
  EXPECT_TRUE(channel.expired());
}

TEST_P(StreamServiceTest, AWaitingPollSeesTheStreamGo) {
  EXPECT_EQ(ask("run", with_id(*stream, R"(,"from_seq":0,"wait_ms":1000)")), "");
  stream->fail({-32603, "broken", {}}, R"("usage":{})");
  bench.run_all();
  EXPECT_EQ(
      answer(),
      expected(R"(,"chunks":[{"seq":0,"delta":"","end":true,)"
               R"("error":{"code":-32603,"message":"broken"},"usage":{}}],"has_more":false)"));
  EXPECT_EQ(ask("run", with_id(*stream, R"(,"from_seq":1,"wait_ms":1000)")),
            expected(R"(,"chunks":[],"has_more":false)"));
}

TEST_P(StreamServiceTest, StreamsOfOthersDoNotExist) {
  RecordingCaller bob("bob");
  for (const std::string_view method : {"run", "abort", "is_running", "ack"}) {
    const std::string now = bench.request(method, with_id(*stream, R"(,"seq":0)"), bob);
    bench.run_all();
    EXPECT_EQ(error_code(now.empty() ? bob.channel().replies.at(0) : now), -32001) << method;
    EXPECT_EQ(error_code(ask(method, R"("stream_id":"no such stream","seq":0)")), -32001) << method;
    EXPECT_EQ(error_code(ask(method, R"("stream_id":7)")), -32602) << method;
  }
  EXPECT_FALSE(stream->ended());
}

TEST_P(StreamServiceTest, AbortStopsTheProducer) {
  CountingStreamProducer producer;
  stream->set_producer(&producer);
  EXPECT_EQ(ask("abort", with_id(*stream)), expected(R"(,"status":"aborted")"));
  EXPECT_EQ(producer.cancels, 1);
  stream->finish();
  stream->set_producer(nullptr);
  EXPECT_EQ(ask("cancel", with_id(*stream)), expected(R"(,"status":"finished")"));
}

TEST_P(StreamServiceTest, IsRunningTellsHowFarItIs) {
  EXPECT_EQ(ask("is_running", with_id(*stream)),
            expected(R"(,"status":"running","state":"initializing","next_seq":0,)"
                     R"("queue_position":3)"));
  stream->append(ChunkKind::text, "a");
  stream->finish();
  EXPECT_EQ(ask("is_running", with_id(*stream)),
            expected(R"(,"status":"idle","state":"finished","next_seq":2)"));
}

TEST_P(StreamServiceTest, AckFreesChunks) {
  stream->append(ChunkKind::text, "a");
  stream->append(ChunkKind::text, "b");
  EXPECT_EQ(ask("ack", with_id(*stream, R"(,"seq":1)")), expected(R"(,"status":"acknowledged")"));
  EXPECT_EQ(stream->first(), 1U);
  EXPECT_EQ(error_code(ask("ack", with_id(*stream, R"(,"seq":0)"))), -32006);
  EXPECT_EQ(error_code(ask("ack", with_id(*stream, R"(,"seq":3)"))), -32006);
}

TEST_P(StreamServiceTest, NotificationsActAndAreNotAnswered) {
  const auto notify = [&](std::string_view method, std::string_view params) {
    EXPECT_EQ(bench.send(R"({"jsonrpc":"2.0","method":")" + std::string(method) +
                             R"(","params":{)" + std::string(params) + "}}",
                         caller),
              "");
    EXPECT_EQ(bench.outcome.kind, Outcome::Kind::accepted);
    bench.run_all();
  };
  CountingStreamProducer producer;
  stream->set_producer(&producer);
  stream->append(ChunkKind::text, "a");
  notify("ack", with_id(*stream, R"(,"seq":1)"));
  EXPECT_EQ(stream->first(), 1U);
  notify("ack", with_id(*stream, R"(,"seq":9)"));
  notify("abort", R"("stream_id":7)");
  notify("abort", R"("stream_id":"no such stream")");
  notify("run", with_id(*stream));
  EXPECT_EQ(producer.cancels, 0);
  notify("abort", with_id(*stream));
  EXPECT_EQ(producer.cancels, 1);
  EXPECT_TRUE(caller.channels.empty());
}

TEST_P(StreamServiceTest, ListsTheStreamsOfAllLoops) {
  const std::shared_ptr<ChunkStream> other = bench.start(1 - GetParam());
  other->append(ChunkKind::text, "a");
  const std::string list = ask("streams", "");
  for (const auto& [each, state] :
       {std::pair(stream, R"("state":"initializing","priority":0,"oldest_seq":0,"next_seq":0})"),
        std::pair(other, R"("state":"active","priority":0,"oldest_seq":0,"next_seq":1})")}) {
    EXPECT_NE(list.find("{" + with_id(*each, R"(,"method":"run",)") + state), std::string::npos)
        << list;
  }
  RecordingCaller bob("bob");
  bench.request("streams", "", bob);
  bench.run_all();
  EXPECT_EQ(bob.channel().replies.at(0), result_text(R"({"streams":[]})"));
}

TEST_P(StreamServiceTest, ListsNothingForWhoeverSharesItsName) {
  RecordingCaller alice("alice", false);
  EXPECT_EQ(bench.request("streams", "", alice), result_text(R"({"streams":[]})"));
  EXPECT_EQ(error_code(bench.request("is_running", with_id(*stream), alice)), 0);
}

TEST_P(StreamServiceTest, WithoutAnIdAllRunsOfTheCallerAreMeant) {
  bench.definition.stream_aliases = {{"rkllm.abort", "abort"}};
  CountingStreamProducer producer;
  stream->set_producer(&producer);
  const std::shared_ptr<ChunkStream> other = bench.start(1 - GetParam());
  other->finish();
  RecordingCaller bob("bob");
  bench.request("abort", "", bob);
  bench.run_all();
  EXPECT_EQ(bob.channel().replies.at(0), result_text(R"({"status":"idle","streams":0})"));
  EXPECT_EQ(ask("is_running", ""), result_text(R"({"status":"running","streams":1})"));
  EXPECT_EQ(ask("rkllm.abort", ""), result_text(R"({"status":"aborted","streams":1})"));
  EXPECT_EQ(producer.cancels, 1);
  EXPECT_EQ(error_code(ask("abort", R"("streamId":"x")")), -32602) << "it names something";
  stream->set_producer(nullptr);
  const std::shared_ptr<ChunkStream> noted = bench.start(GetParam());
  CountingStreamProducer noted_producer;
  noted->set_producer(&noted_producer);
  bench.send(R"({"jsonrpc":"2.0","method":"abort"})", caller);
  bench.run_all();
  EXPECT_EQ(noted_producer.cancels, 1) << "notifications act too";
  noted->set_producer(nullptr);
  // One that has begun since is not meant, as it is on the caller's loop.
  bench.request("rkllm.abort", "", caller);
  const std::shared_ptr<ChunkStream> later = bench.start(0);
  CountingStreamProducer later_producer;
  later->set_producer(&later_producer);
  bench.run_all();
  EXPECT_EQ(later_producer.cancels, 0);
  later->set_producer(nullptr);
  RecordingCaller alice("alice", false);
  EXPECT_EQ(error_code(bench.request("abort", "", alice)), -32602)
      << "others may have that principal";
}

TEST_P(StreamServiceTest, AListIsAWholeResultWhereItsRevisionSaysSo) {
  const std::string_view modern =
      R"("_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",)"
      R"("io.modelcontextprotocol/clientCapabilities":{}})";
  RecordingCaller someone("192.0.2.1", false);
  EXPECT_EQ(bench.request("streams", modern, someone),
            result_text(R"({"streams":[],"resultType":"complete"})"));
}

TEST_P(StreamServiceTest, AnswersLaterOnlyWhenThereIsRoom) {
  caller.full = true;
  EXPECT_EQ(error_code(ask("run", with_id(*stream, R"(,"from_seq":0,"wait_ms":1000)"))), kBusy);
  EXPECT_EQ(error_code(ask("streams", "")), kBusy);
  bench.run_all();
}

/// A reader's subscription by StreamService::subscribe.
class SubscribeTest : public StreamServiceTest {
 protected:
  Error subscribe(std::optional<Seq> from, std::size_t window,
                  const std::string& principal = "alice") {
    Error error;
    bench.services[0]->subscribe(std::string(stream->id()), principal, from, window, encoder, false,
                                 std::make_unique<RecordingSink>(written),
                                 [&](Result<std::unique_ptr<Subscription>> subscribed) {
                                   if (subscribed) {
                                     subscription = std::move(*subscribed);
                                   } else {
                                     error = subscribed.error();
                                   }
                                 });
    bench.run_all();
    return error;
  }
  int acknowledge(Seq seq) {
    int code = 1;
    subscription->acknowledge(
        seq, [&code](const Result<void>& result) { code = result ? 0 : result.error().code; });
    bench.run_all();
    return code;
  }

  PlainEncoder encoder;
  std::shared_ptr<Written> written = std::make_shared<Written>();
  std::unique_ptr<Subscription> subscription;
};

INSTANTIATE_TEST_SUITE_P(Loops, SubscribeTest, ::testing::Values(0, 1),
                         [](const auto& test) { return test.param == 0 ? "Same" : "Other"; });

TEST_P(SubscribeTest, DeliversFromThereToTheEnd) {
  stream->append(ChunkKind::text, "a");
  stream->append(ChunkKind::text, "b");
  EXPECT_EQ(subscribe(1, 0).code, 0);
  ASSERT_NE(subscription, nullptr);
  EXPECT_EQ(written->text, "");
  subscription->resume();
  bench.run_all();
  EXPECT_EQ(written->text, "[1]b");
  stream->append(ChunkKind::text, "c");
  stream->finish();
  bench.run_all();
  EXPECT_EQ(written->text, "[1]b[2]c[3]$");
  EXPECT_EQ(written->finishes, 1);
}

TEST_P(SubscribeTest, RefusesPlacesAndStreamsThatAreNotThere) {
  EXPECT_EQ(subscribe(1, 0).code, -32006);
  EXPECT_EQ(subscribe(std::nullopt, 0, "bob").code, -32001);
  EXPECT_EQ(subscription, nullptr);
}

TEST_P(SubscribeTest, AWindowWaitsForAcknowledgements) {
  for (int i = 0; i < 4; ++i) stream->append(ChunkKind::text, "x");
  EXPECT_EQ(subscribe(std::nullopt, 2).code, 0);
  subscription->resume();
  bench.run_all();
  EXPECT_EQ(written->text, "[0]x[1]x");
  EXPECT_EQ(acknowledge(1), 0);
  EXPECT_EQ(written->text, "[0]x[1]x[2]x");
  EXPECT_EQ(acknowledge(4), -32006);
  EXPECT_EQ(acknowledge(3), 0);
  EXPECT_EQ(written->text, "[0]x[1]x[2]x[3]x");
}

TEST_P(SubscribeTest, AReaderThatMustWaitGetsNothingMore) {
  written->credit = 1;
  EXPECT_EQ(subscribe(std::nullopt, 0).code, 0);
  subscription->resume();
  for (int i = 0; i < 5; ++i) {
    stream->append(ChunkKind::text, "x");
    bench.run_all();
  }
  stream->finish();
  bench.run_all();
  EXPECT_EQ(written->text, "[0]x");
  EXPECT_EQ(written->finishes, 0);
  while (written->finishes == 0) {
    written->credit = 1;
    const std::size_t blocks = written->blocks.size();
    subscription->resume();
    bench.run_all();
    ASSERT_LE(written->blocks.size(), blocks + 1);  // a block at a time
    ASSERT_LT(blocks, 10U);
  }
  EXPECT_EQ(written->text, "[0]x[1]x[2]x[3]x[4]x[5]$");
}

TEST_P(SubscribeTest, AnAcknowledgementByRequestHoldsNothing) {
  ASSERT_EQ(subscribe(std::nullopt, 0).code, 0);
  subscription->resume();
  for (int i = 0; i < 3; ++i) stream->append(ChunkKind::text, "x");
  bench.run_all();
  EXPECT_EQ(error_code(ask("ack", with_id(*stream, R"(,"seq":1)"))), 0);
  // Otherwise, the stream would fill up for somebody who does not read.
  bool wrote_all = true;
  for (int i = 0; i < 2000; ++i) {
    wrote_all = stream->append(ChunkKind::text, std::string(1000, 'x')) && wrote_all;
    bench.run_all();
  }
  EXPECT_TRUE(wrote_all);
}

TEST_P(SubscribeTest, ASlowReaderHoldsUpTheProducer) {
  CountingStreamProducer producer;
  stream->set_producer(&producer);
  written->credit = 1;
  EXPECT_EQ(subscribe(std::nullopt, 0).code, 0);
  subscription->resume();
  bench.run_all();
  std::size_t appended = 1;
  while (stream->append(ChunkKind::text, std::string(1000, 'x'))) {
    ++appended;
    ASSERT_LT(appended, 100000U);
    bench.run_all();
  }
  bench.run_all();
  // What is on its way between loops is bounded too.
  EXPECT_LT(written->text.size(), std::size_t{200} << 10U);
  EXPECT_EQ(producer.writable_calls, 0);
  written->credit = 1U << 30U;
  subscription->resume();
  bench.run_all();
  EXPECT_GE(written->text.size(), appended * 1000);
  EXPECT_EQ(producer.writable_calls, 1);
  stream->set_producer(nullptr);
  stream->finish();
  bench.run_all();
  EXPECT_TRUE(written->text.ends_with("]$"));
  EXPECT_EQ(written->finishes, 1);
}

TEST_P(SubscribeTest, NothingIsWrittenToAReaderThatLeft) {
  EXPECT_EQ(subscribe(std::nullopt, 0).code, 0);
  subscription->resume();
  bench.run_all();
  stream->append(ChunkKind::text, "a");
  stream->flush();
  const std::string text = written->text;
  subscription = nullptr;
  bench.run_all();
  stream->append(ChunkKind::text, "b");
  stream->finish();
  bench.run_all();
  EXPECT_EQ(written->text, text);
  EXPECT_EQ(written->finishes, 0);
}

TEST_P(SubscribeTest, AnAcknowledgementIsAnsweredThoughTheReaderLeaves) {
  stream->append(ChunkKind::text, "a");
  EXPECT_EQ(subscribe(std::nullopt, 1).code, 0);
  subscription->resume();
  bench.run_all();
  int answers = 0;
  subscription->acknowledge(1, [&answers](const Result<void>& result) {
    EXPECT_TRUE(result);
    ++answers;
  });
  subscription = nullptr;
  bench.run_all();
  EXPECT_EQ(answers, 1);
}

TEST_P(SubscribeTest, AReaderIsToldWhenTheStreamLetsItGo) {
  EXPECT_EQ(subscribe(std::nullopt, 0).code, 0);
  subscription->resume();
  bench.run_all();
  bench.managers[GetParam()]->discard(*stream);
  bench.run_all();
  EXPECT_EQ(written->drops, 1);
  EXPECT_EQ(written->drop_error.code, -32005);
  EXPECT_EQ(written->finishes, 0);
}

TEST_P(SubscribeTest, AMessageOfAPrivateStreamGoesToOneReaderOnly) {
  stream = bench.managers[GetParam()]->start_private("alice", "", "alice");
  EXPECT_EQ(subscribe(kUndelivered, 0).code, 0);
  subscription->resume();
  bench.run_all();
  stream->append(ChunkKind::message, "a");
  bench.run_all();
  stream->append(ChunkKind::message, "b");
  stream->flush();
  const std::unique_ptr<Subscription> before = std::move(subscription);
  const auto continued = std::make_shared<Written>();
  bench.services[0]->subscribe(
      std::string(stream->id()), "alice", kUndelivered, 0, encoder, false,
      std::make_unique<RecordingSink>(continued),
      [&](Result<std::unique_ptr<Subscription>> other) { subscription = *std::move(other); });
  // The stream's loop has heard of the new reader, and the loop of the readers not of its place.
  loop().run();
  stream->append(ChunkKind::message, "c");
  loop().run();
  bench.run_all();
  EXPECT_EQ(written->text, "[0]a[1]b");
  EXPECT_EQ(written->finishes, 1);
  ASSERT_NE(subscription, nullptr);
  subscription->resume();
  bench.run_all();
  EXPECT_EQ(continued->text, "[2]c");
  stream->append(ChunkKind::message, "d");
  bench.run_all();
  EXPECT_EQ(continued->text, "[2]c[3]d");
  EXPECT_EQ(written->text, "[0]a[1]b");
}

TEST_P(SubscribeTest, AReaderStaysWhenAnotherIsRefused) {
  stream = bench.managers[GetParam()]->start_private("alice", "", "alice");
  EXPECT_EQ(subscribe(kUndelivered, 0).code, 0);
  const std::unique_ptr<Subscription> before = std::move(subscription);
  EXPECT_EQ(subscribe(7, 0).code, -32006);
  before->resume();
  stream->append(ChunkKind::message, "a");
  bench.run_all();
  EXPECT_EQ(written->text, "[0]a");
  EXPECT_EQ(written->finishes, 0);
}

TEST_P(SubscribeTest, AReaderWhoseStreamIsNotPrivateStaysWhenAnotherComes) {
  EXPECT_EQ(subscribe(std::nullopt, 0).code, 0);
  const std::unique_ptr<Subscription> before = std::move(subscription);
  EXPECT_EQ(subscribe(std::nullopt, 0).code, 0);
  EXPECT_EQ(written->finishes, 0);
}

}  // namespace
}  // namespace sluice
