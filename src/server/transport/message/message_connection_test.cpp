#include "server/transport/message/message_connection.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rpc/error_codes.hpp"
#include "server/dispatch/server_test_support.hpp"

namespace sluice {
namespace {

struct RecordingOutput final : MessageOutput {
  bool send(std::string message) override { return send_framed(message); }
  bool send_framed(std::string_view block) override {
    messages.emplace_back(block);
    return writable;
  }
  bool send_framed(const Bytes& block) override { return send_framed(block.view()); }
  void flush() override {}
  bool push_framed(std::string_view block) override { return send_framed(block); }
  std::vector<std::string> messages;
  bool writable = true;
};

class MessageConnectionTest : public ::testing::Test {
 protected:
  MessageConnectionTest() { connection->attach(output); }
  /// Whether the message is handled at once. `handled` counts those that are handled later.
  bool say(std::string_view text) {
    Executor::Task task = [this] { ++handled; };
    return connection->on_message(text, task);
  }

  ServerBench bench;
  const AccessPolicy access{{}};
  Service service{bench.catalog,
                  access,
                  bench.sessions,
                  bench.quota,
                  *bench.changes,
                  *bench.tasks,
                  {{&bench.executors[0], bench.managers[0].get()}},
                  0};
  const PushedChunkEncoder encoder{line_framing()};
  RecordingOutput output;
  std::shared_ptr<MessageConnection> connection =
      std::make_shared<MessageConnection>(service, Principal{.id = "alice"}, encoder);
  int handled = 0;
};

// The tests of the transports cover all the rest.
TEST_F(MessageConnectionTest, ItsSessionEndsWithIt) {
  say(R"({"jsonrpc":"2.0","id":1,"method":"initialize","params":)"
      R"({"protocolVersion":"2025-11-25","capabilities":{}}})");
  ASSERT_EQ(output.messages.size(), 1U);
  const std::shared_ptr<Session> session = connection->session().value();
  ASSERT_NE(session, nullptr);
  EXPECT_FALSE(session->ended());
  connection->on_close();
  EXPECT_TRUE(session->ended());
}

TEST_F(MessageConnectionTest, ItsSessionIsNotBegunAnewWhileCallsAreUnderWay) {
  const std::string initialize = R"({"jsonrpc":"2.0","id":1,"method":"initialize","params":)"
                                 R"({"protocolVersion":"2025-11-25","capabilities":{"roots":{}}}})";
  bench.definition.middleware.push_back([](Request& request) -> Task<> {
    co_await request.sleep(std::chrono::seconds(1));
    co_await request.next();
  });
  bench.serve();
  service.dispatcher.take(bench.catalog);
  const auto begin = [&] {
    say(initialize);
    bench.executors[0].advance(std::chrono::seconds(1));
    return error_code(output.messages.back());
  };
  EXPECT_EQ(begin(), 0);
  say(R"({"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"later"}})");
  EXPECT_EQ(begin(), kInvalidRequest) << "it has not asked yet";
  ASSERT_EQ(bench.calls.size(), 1U);
  std::string heard;
  bench.calls[0]->ask({{"roots", "roots/list", {}}},
                      [&](const Result<std::vector<json::value>>& answers) {
                        heard = answers ? to_json(answers->front()) : answers.error().message;
                      });
  bench.run_all();
  EXPECT_THAT(output.messages.back(), ::testing::HasSubstr("roots/list"));
  EXPECT_EQ(begin(), kInvalidRequest);
  say(R"({"jsonrpc":"2.0","id":1,"result":{"roots":[]}})");
  bench.run_all();
  EXPECT_EQ(heard, R"({"roots":[]})");
  EXPECT_EQ(begin(), kInvalidRequest) << "it may ask again";
  bench.calls[0]->complete({.text = "done"});
  bench.calls.clear();
  bench.run_all();
  EXPECT_EQ(begin(), 0);
}

TEST_F(MessageConnectionTest, ItsSessionIsNotBegunAnewWhileATaskOfItRuns) {
  bench.definition.tools[1].task_support = TaskSupport::optional;
  bench.serve();
  service.dispatcher.take(bench.catalog);
  const auto begin = [&] {
    say(R"({"jsonrpc":"2.0","id":1,"method":"initialize","params":)"
        R"({"protocolVersion":"2025-11-25","capabilities":{}}})");
    return error_code(output.messages.back());
  };
  EXPECT_EQ(begin(), 0);
  say(R"({"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"later","task":{}}})");
  bench.run_all();
  ASSERT_EQ(bench.calls.size(), 1U);
  EXPECT_EQ(begin(), kInvalidRequest);
  bench.calls[0]->complete({.text = "done"});
  bench.run_all();
  EXPECT_THAT(output.messages.back(), ::testing::HasSubstr(R"("status":"completed")"));
  EXPECT_EQ(begin(), 0);
}

TEST_F(MessageConnectionTest, WhatComesBehindABatchThatTakesTurnsWaits) {
  say(R"({"jsonrpc":"2.0","id":1,"method":"initialize","params":)"
      R"({"protocolVersion":"2025-03-26","capabilities":{}}})");
  const auto stream = bench.start(0);
  stream->append(ChunkKind::text, std::string(200'000, 'x'));
  const std::string poll =
      R"("method":"run","params":{"stream_id":")" + std::string(stream->id()) + R"("}})";
  const std::string batch = R"([{"jsonrpc":"2.0","id":1,)" + poll + R"(,{"jsonrpc":"2.0","id":2,)" +
                            poll + R"(,{"jsonrpc":"2.0","id":3,)" + poll + "]";
  EXPECT_FALSE(say(batch));
  EXPECT_EQ(output.messages.size(), 1U);
  EXPECT_EQ(handled, 0);
  bench.run_all();
  EXPECT_EQ(handled, 1);
  ASSERT_EQ(output.messages.size(), 2U);
  EXPECT_EQ(parse_json(output.messages[1]).value().as_array().size(), 3U);
  EXPECT_TRUE(say(ping("4")));

  // With HTTP with SSE, batches may come on several connections at once.
  EXPECT_FALSE(say(batch));
  EXPECT_FALSE(say(batch));
  bench.run_all();
  EXPECT_EQ(handled, 3);
  EXPECT_EQ(output.messages.size(), 5U);

  // If the peer goes in the meantime, `handled` does not run.
  EXPECT_FALSE(say(batch));
  connection->on_close();
  bench.run_all();
  EXPECT_EQ(handled, 3);
}

// A slow reader that reads steadily gets of each stream, and the answers to what it asks.
TEST_F(MessageConnectionTest, StreamsAndAnswersThatWaitForRoomTakeTurns) {
  constexpr int kPushed = 3;
  for (int id = 0; id < kPushed; ++id) {
    say(R"({"jsonrpc":"2.0","id":)" + std::to_string(id) +
        R"(,"method":"run","params":{"prompt":"p","stream":true}})");
  }
  say(R"({"jsonrpc":"2.0","id":"call","method":"tools/call","params":{"name":"later"}})");
  bench.run_all();
  ASSERT_EQ(bench.runs.size(), kPushed);
  output.messages.clear();
  output.writable = false;
  const auto append_all = [&](char label) {
    for (const auto& run : bench.runs) run->append(ChunkKind::text, std::string(10'000, label));
    bench.run_all();
  };
  append_all('a');
  output.messages.clear();
  append_all('b');
  bench.calls[0]->complete({.text = std::string(1000, 'y')});
  bench.calls.clear();
  bench.run_all();
  EXPECT_TRUE(output.messages.empty());
  std::map<std::string, int> delivered;
  bool is_answered = false;
  for (int drains = 0; drains < 2 * (kPushed + 2); ++drains) {
    connection->on_drain();
    // As fast as it is read.
    append_all('c');
    for (const std::string& message : std::exchange(output.messages, {})) {
      if (message.contains(R"("id":"call")")) {
        is_answered = true;
      } else {
        ++delivered[std::string(message.substr(message.find("stream_id"), 30))];
      }
    }
  }
  EXPECT_TRUE(is_answered);
  EXPECT_EQ(delivered.size(), kPushed);
  for (const auto& [stream, count] : delivered) EXPECT_GE(count, 2) << stream;
}

TEST_F(MessageConnectionTest, NoChunkOvertakesTheReplyToASubscribe) {
  const auto stream = bench.start(0);
  stream->append(ChunkKind::text, "x");
  output.writable = false;
  say(ping("1"));
  say(R"({"jsonrpc":"2.0","id":2,"method":"subscribe","params":{"stream_id":")" +
      std::string(stream->id()) + R"("}})");
  bench.run_all();
  EXPECT_EQ(output.messages.size(), 1U);
  output.writable = true;
  connection->on_drain();
  bench.run_all();
  ASSERT_EQ(output.messages.size(), 3U);
  EXPECT_THAT(output.messages[1], ::testing::HasSubstr(R"("status":"subscribed")"));
  EXPECT_THAT(output.messages[2], ::testing::HasSubstr(R"("delta":"x")"));
}

TEST_F(MessageConnectionTest, WhatFollowsASubscribeFindsItsStream) {
  ServerBench both(2);
  Service on_first(
      both.catalog, access, both.sessions, both.quota, *both.changes, *both.tasks,
      {{&both.executors[0], both.managers[0].get()}, {&both.executors[1], both.managers[1].get()}},
      0);
  connection = std::make_shared<MessageConnection>(on_first, Principal{.id = "alice"}, encoder);
  connection->attach(output);
  const auto stream = both.start(1);
  const std::string params = R"("params":{"stream_id":")" + std::string(stream->id()) + R"("}})";
  EXPECT_FALSE(say(R"({"jsonrpc":"2.0","id":1,"method":"subscribe",)" + params));
  EXPECT_EQ(handled, 0);
  both.run_all();
  EXPECT_EQ(handled, 1);
  EXPECT_TRUE(say(R"({"jsonrpc":"2.0","id":2,"method":"unsubscribe",)" + params));
  stream->append(ChunkKind::text, "x");
  both.run_all();
  ASSERT_EQ(output.messages.size(), 2U);
  EXPECT_THAT(output.messages[1], ::testing::HasSubstr(R"("status":"unsubscribed")"));
  connection->on_close();
  connection = nullptr;
}

TEST_F(MessageConnectionTest, PollsWaitForRoom) {
  const auto stream = bench.start(0);
  stream->append(ChunkKind::text, std::string(1000, 'x'));
  const auto poll = [&](int id) {
    return R"({"jsonrpc":"2.0","id":)" + std::to_string(id) +
           R"(,"method":"run","params":{"stream_id":")" + std::string(stream->id()) + R"("}})";
  };
  TurnWork& work = bench.managers[0]->work();
  work.worked(TurnWork::kTurn);
  output.writable = false;
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(say(poll(i)));
  EXPECT_EQ(service.streams.waiting_answers(), 3U);
  bench.run_all();
  EXPECT_EQ(output.messages.size(), 1U);
  EXPECT_EQ(work.under_way(), 0U) << "they wait for their reader";
  EXPECT_EQ(service.streams.waiting_answers(), 2U);
  EXPECT_TRUE(say(poll(3))) << "though there is work left";
  EXPECT_EQ(output.messages.size(), 1U);
  connection->on_drain();
  bench.run_all();
  EXPECT_EQ(output.messages.size(), 2U);

  // A cancelled poll makes way for the next one.
  say(R"({"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}})");
  output.writable = true;
  connection->on_drain();
  bench.run_all();
  ASSERT_EQ(output.messages.size(), 3U);
  EXPECT_THAT(output.messages[2], ::testing::HasSubstr(R"("id":3)"));
  EXPECT_EQ(service.streams.waiting_answers(), 0U);
  EXPECT_TRUE(say(poll(4)));
  EXPECT_EQ(output.messages.size(), 4U) << "at once";
}

TEST_F(MessageConnectionTest, PollsThatWaitForChunksAreAnsweredAsThereIsRoom) {
  const auto stream = bench.start(0);
  constexpr int kPolls = 20;
  for (int id = 1; id <= kPolls; ++id) {
    EXPECT_TRUE(say(R"({"jsonrpc":"2.0","id":)" + std::to_string(id) +
                    R"(,"method":"run","params":{"stream_id":")" + std::string(stream->id()) +
                    R"(","wait_ms":10000}})"));
    bench.run_all();
  }
  EXPECT_EQ(service.streams.waiting_answers(), kPolls);
  output.writable = false;
  stream->append(ChunkKind::text, std::string(200'000, 'x'));
  bench.run_all();
  EXPECT_EQ(output.messages.size(), 1U) << "the rest waits, and is not there yet";
  for (std::size_t drains = 2; drains <= 5; ++drains) {
    connection->on_drain();
    bench.run_all();
    EXPECT_EQ(output.messages.size(), drains);
  }
  output.writable = true;
  connection->on_drain();
  bench.run_all();
  EXPECT_EQ(output.messages.size(), kPolls);
  EXPECT_EQ(service.streams.waiting_answers(), 0U);
}

TEST_F(MessageConnectionTest, APollThatWaitsForChunksIsAnsweredWhenItsTimeIsOver) {
  const auto stream = bench.start(0);
  const std::string poll = R"(,"method":"run","params":{"stream_id":")" +
                           std::string(stream->id()) + R"(","wait_ms":50}})";
  say(R"({"jsonrpc":"2.0","id":1)" + poll);
  bench.executors[0].advance(std::chrono::milliseconds(49));
  EXPECT_TRUE(output.messages.empty());
  bench.executors[0].advance(std::chrono::milliseconds(1));
  bench.run_all();
  ASSERT_EQ(output.messages.size(), 1U);
  EXPECT_THAT(output.messages[0], ::testing::HasSubstr(R"("chunks":[],"has_more":true)"));
}

TEST_F(MessageConnectionTest, WhileManyPollsWaitNothingElseIsTaken) {
  const auto stream = bench.start(0);
  stream->append(ChunkKind::text, "x");
  bench.managers[0]->work().worked(TurnWork::kTurn);
  int id = 0;
  const auto poll = [&] {
    return say(R"({"jsonrpc":"2.0","id":)" + std::to_string(++id) +
               R"(,"method":"run","params":{"stream_id":")" + std::string(stream->id()) + R"("}})");
  };
  while (poll()) ASSERT_LT(id, 1000);
  EXPECT_EQ(handled, 0);
  bench.run_all();
  EXPECT_EQ(handled, 1);
  EXPECT_EQ(output.messages.size(), static_cast<std::size_t>(id));

  // Nothing is left waiting when the peer goes.
  bench.managers[0]->work().worked(TurnWork::kTurn);
  while (poll()) ASSERT_LT(id, 1000);
  connection->on_close();
  bench.run_all();
  EXPECT_EQ(handled, 1);
  EXPECT_EQ(service.streams.waiting_answers(), 0U);
}

TEST_F(MessageConnectionTest, APollThatWaitsForChunksHoldsUpNoOther) {
  const auto empty = bench.start(0);
  const auto stream = bench.start(0);
  stream->append(ChunkKind::text, "x");
  bench.managers[0]->work().worked(TurnWork::kTurn);
  say(R"({"jsonrpc":"2.0","id":1,"method":"run","params":{"from_seq":0,"wait_ms":1000,)"
      R"("stream_id":")" +
      std::string(empty->id()) + R"("}})");
  say(R"({"jsonrpc":"2.0","id":2,"method":"run","params":{"stream_id":")" +
      std::string(stream->id()) + R"("}})");
  bench.run_all();
  ASSERT_EQ(output.messages.size(), 1U);
  EXPECT_THAT(output.messages[0], ::testing::HasSubstr(R"("id":2)"));
  empty->append(ChunkKind::text, "late");
  bench.run_all();
  ASSERT_EQ(output.messages.size(), 2U);
  EXPECT_THAT(output.messages[1], ::testing::HasSubstr("late"));
}

TEST_F(MessageConnectionTest, TheAnswerToABatchWaitsForRoom) {
  say(R"({"jsonrpc":"2.0","id":1,"method":"initialize","params":)"
      R"({"protocolVersion":"2025-03-26","capabilities":{}}})");
  output.writable = false;
  say(ping("2"));
  bench.managers[0]->work().worked(TurnWork::kTurn);
  EXPECT_FALSE(say("[" + ping("3") + "]"));
  bench.run_all();
  EXPECT_EQ(output.messages.size(), 2U);
  EXPECT_EQ(service.streams.waiting_answers(), 1U) << "a shutdown waits for its reader";
  connection->on_drain();
  bench.run_all();
  EXPECT_EQ(output.messages.size(), 3U);
  EXPECT_EQ(service.streams.waiting_answers(), 0U);
}

TEST_F(MessageConnectionTest, AnswersThatComeTogetherWaitForRoom) {
  const std::string run = R"(,"method":"run","params":{"prompt":"p"}})";
  const std::string call = R"(,"method":"tools/call","params":{"name":"later"}})";
  constexpr std::size_t kEach = 10;
  for (std::size_t i = 0; i < kEach; ++i) {
    say(R"({"jsonrpc":"2.0","id":)" + std::to_string(i) + run);
    say(R"({"jsonrpc":"2.0","id":"c)" + std::to_string(i) + "\"" + call);
  }
  bench.run_all();
  ASSERT_EQ(bench.runs.size(), kEach);
  ASSERT_EQ(bench.calls.size(), kEach);
  bool is_idle = false;
  connection->when_idle([&] { is_idle = true; });
  output.writable = false;
  for (std::size_t i = 0; i < kEach; ++i) {
    bench.runs[i]->append(ChunkKind::text, std::string(100'000, 'x'));
    bench.runs[i]->finish();
    bench.calls[i]->complete({.text = std::string(100'000, 'y')});
  }
  bench.run_all();
  for (std::size_t drains = 1; drains < 2 * kEach; ++drains) {
    EXPECT_EQ(output.messages.size(), drains);
    EXPECT_GT(service.streams.waiting_answers(), 0U) << "a shutdown waits for its reader";
    EXPECT_FALSE(is_idle);
    connection->on_drain();
    bench.run_all();
  }
  EXPECT_EQ(output.messages.size(), 2 * kEach);
  EXPECT_EQ(service.streams.waiting_answers(), 0U);
  EXPECT_TRUE(is_idle);
  bench.calls.clear();
}

TEST_F(MessageConnectionTest, AnswersThatWaitForRoomDrawOnTheMemoryOfTheirClient) {
  MemoryBudget memory{std::size_t{1} << 20U};
  ClientMemory clients{memory};
  Service counted(bench.catalog, access, bench.sessions, bench.quota, *bench.changes, *bench.tasks,
                  {{&bench.executors[0], bench.managers[0].get()}}, 0, nullptr, nullptr, nullptr,
                  &clients);
  connection = std::make_shared<MessageConnection>(counted, Principal{.id = "alice"}, encoder);
  connection->attach(output);
  const auto answer_all = [&] {
    for (int id = 0; id < 10; ++id) {
      say(R"({"jsonrpc":"2.0","id":)" + std::to_string(id) +
          R"(,"method":"tools/call","params":{"name":"later"}})");
    }
    bench.run_all();
    for (const auto& call : bench.calls) call->complete({.text = std::string(100'000, 'x')});
    bench.calls.clear();
    bench.run_all();
  };
  output.writable = false;
  answer_all();
  EXPECT_EQ(output.messages.size(), 1U);
  EXPECT_GT(memory.used(), 300'000U);
  EXPECT_LT(memory.used(), 700'000U);
  output.writable = true;
  connection->on_drain();
  ASSERT_EQ(output.messages.size(), 10U) << "each is answered";
  EXPECT_EQ(error_code(output.messages[1]), 0);
  EXPECT_EQ(error_code(output.messages[9]), kBusy);
  EXPECT_EQ(memory.used(), 0U);
  // Answers of a peer that goes hold no memory.
  output.writable = false;
  answer_all();
  EXPECT_GT(memory.used(), 0U);
  connection->on_close();
  EXPECT_EQ(memory.used(), 0U);
  connection = nullptr;
}

TEST_F(MessageConnectionTest, RequestsThatWaitDrawOnTheMemoryOfTheirClient) {
  MemoryBudget memory{std::size_t{1} << 20U};
  ClientMemory clients{memory};
  Service counted(bench.catalog, access, bench.sessions, bench.quota, *bench.changes, *bench.tasks,
                  {{&bench.executors[0], bench.managers[0].get()}}, 0, nullptr, nullptr, nullptr,
                  &clients);
  connection = std::make_shared<MessageConnection>(counted, Principal{.id = "alice"}, encoder);
  connection->attach(output);
  const std::string padding(4000, 'i');
  int asked = 0;
  while (output.messages.empty() && asked < 1000) {
    say(R"({"jsonrpc":"2.0","id":")" + padding + std::to_string(asked++) +
        R"(","method":"tools/call","params":{"name":"later"}})");
  }
  EXPECT_LT(asked, 60) << "half of the memory, 17 KB each";
  ASSERT_EQ(output.messages.size(), 1U);
  EXPECT_EQ(error_code(output.messages[0]), kBusy);
  EXPECT_GT(memory.used(), 300'000U);
  connection->on_close();
  bench.calls.clear();
  EXPECT_EQ(memory.used(), 0U);
  connection = nullptr;
}

TEST_F(MessageConnectionTest, SubscriptionsDrawOnTheMemoryOfTheirClient) {
  const MemoryBudget& memory = bench.policy.budget;
  const std::size_t before = memory.used();
  say(R"({"jsonrpc":"2.0","id":1,"method":"run","params":{"stream":true,"prompt":"x","count":1}})");
  bench.run_all();
  EXPECT_GE(memory.used(), before + 1024);
  connection->on_close();
  EXPECT_LT(memory.used(), before + 1024);
}

TEST_F(MessageConnectionTest, TheEndOfASubscriptionLeavesTheNextOneOfItsStream) {
  const std::shared_ptr<ChunkStream> stream = bench.start(0);
  stream->append(ChunkKind::text, "a");
  stream->append(ChunkKind::text, "b");
  stream->finish();
  const std::string subscribe = R"(,"method":"subscribe","params":{"stream_id":")" +
                                std::string(stream->id()) + R"(","from_seq":0)";
  say(R"({"jsonrpc":"2.0","id":1)" + subscribe + "}}");
  say(R"({"jsonrpc":"2.0","id":2)" + subscribe + R"(,"window":1}})");
  bench.run_all();
  output.messages.clear();
  say(R"({"jsonrpc":"2.0","method":"ack","params":{"stream_id":")" + std::string(stream->id()) +
      R"(","seq":1}})");
  bench.run_all();
  ASSERT_EQ(output.messages.size(), 1U);
  EXPECT_THAT(output.messages[0], ::testing::HasSubstr(R"("delta":"b")"));
}

TEST_F(MessageConnectionTest, OneWhoDoesNotKeepUpHearsOfTheLastState) {
  say(R"({"jsonrpc":"2.0","id":1,"method":"initialize","params":)"
      R"({"protocolVersion":"2025-11-25","capabilities":{}}})");
  const std::shared_ptr<Session> session = connection->session().value();
  const auto tell = [&](const char* state_of, const char* text) {
    bench.changes->send(session, state_of, std::make_shared<const std::string>(text));
    bench.run_all();
  };
  output.messages.clear();
  output.writable = false;
  tell("", "the last that fits");
  tell("", "missed");
  tell("task", "old");
  tell("task", "new");
  for (int i = 0; i < 2; ++i) {
    bench.changes->publish({.kind = Change::Kind::tools});
    bench.changes->publish({.kind = Change::Kind::prompts});
  }
  bench.run_all();
  EXPECT_EQ(output.messages, (std::vector<std::string>{"the last that fits"}));
  // There is room for one message each time.
  for (std::size_t told = 2; told <= 4; ++told) {
    connection->on_drain();
    EXPECT_EQ(output.messages.size(), told);
  }
  connection->on_drain();
  EXPECT_THAT(output.messages,
              ::testing::ElementsAre(::testing::_, ::testing::HasSubstr("tools/list_changed"),
                                     ::testing::HasSubstr("prompts/list_changed"), "new"));
}

TEST_F(MessageConnectionTest, MiddlewareStandsAroundWhatItServesItself) {
  std::vector<std::string> heard;
  bool waits = false;
  bool refuses = true;
  bench.definition.middleware.push_back([&](Request& request) -> Task<> {
    if (waits) co_await request.sleep(std::chrono::seconds(1));
    if (refuses) throw Error{403, "no"};
    const RequestEnd end = co_await request.next();
    heard.push_back(request.method() + " " + std::to_string(end.error.value_or(0)));
  });
  bench.serve();
  service.dispatcher.take(bench.catalog);
  for (const bool waiting : {false, true}) {
    waits = waiting;
    for (const bool refusing : {true, false}) {
      refuses = refusing;
      for (const char* method : {"subscribe", "unsubscribe", "ack", "run"}) {
        output.messages.clear();
        say(R"({"jsonrpc":"2.0","id":1,"method":")" + std::string(method) + R"(","params":{)" +
            (method == std::string_view("run") ? R"("stream":true)"
                                               : R"("stream_id":"0123456789abcdef","seq":0)") +
            "}}");
        if (waits) {
          EXPECT_TRUE(output.messages.empty());
          bench.executors[0].advance(std::chrono::seconds(1));
        }
        bench.run_all();
        ASSERT_EQ(output.messages.size(), 1U) << method;
        EXPECT_EQ(error_code(output.messages[0]),
                  refuses ? 403 : (method == std::string_view("run") ? 0 : -32001));
      }
      EXPECT_EQ(heard, refuses ? std::vector<std::string>{}
                               : (std::vector<std::string>{"subscribe -32001", "unsubscribe -32001",
                                                           "ack -32001", "run 0"}));
      heard.clear();
    }
    ASSERT_EQ(bench.runs.size(), waits ? 2U : 1U);
    bench.runs.back()->append(ChunkKind::text, "a");
    bench.run_all();
    EXPECT_EQ(output.messages.size(), 2U) << "it is pushed";
  }
  EXPECT_EQ(bench.quota.in_use(), 0U);
}

TEST_F(MessageConnectionTest, WhatComesBehindAnInitializeWaitsForItsSession) {
  bool refuses = false;
  bench.definition.middleware.push_back([&](Request& request) -> Task<> {
    if (request.method() == "initialize") co_await request.sleep(std::chrono::seconds(1));
    if (refuses) throw Error{403, "no"};
    co_await request.next();
  });
  bench.serve();
  service.dispatcher.take(bench.catalog);
  static constexpr const char* kInitialize =
      R"({"jsonrpc":"2.0","id":1,"method":"initialize","params":)"
      R"({"protocolVersion":"2024-11-05","capabilities":{}}})";
  EXPECT_FALSE(say(kInitialize));
  bench.run_all();
  EXPECT_EQ(handled, 0);
  bench.executors[0].advance(std::chrono::seconds(1));
  EXPECT_EQ(output.messages.size(), 1U);
  EXPECT_EQ(handled, 1);
  EXPECT_EQ(connection->session().value()->revision().name, "2024-11-05");
  refuses = true;
  EXPECT_FALSE(say(kInitialize));
  bench.executors[0].advance(std::chrono::seconds(1));
  EXPECT_EQ(error_code(output.messages.back()), 403);
  EXPECT_EQ(handled, 2);
  // A peer that has gone is sent nothing more.
  EXPECT_FALSE(say(kInitialize));
  connection->on_close();
  bench.executors[0].advance(std::chrono::seconds(2));
  EXPECT_EQ(output.messages.size(), 2U);
  EXPECT_EQ(handled, 2);
  EXPECT_EQ(bench.executors[0].timers(), 0U);
}

TEST_F(MessageConnectionTest, IsNotPushedToAfterItsEnd) {
  const std::shared_ptr<ChunkStream> stream = bench.start(0);
  say(R"({"jsonrpc":"2.0","id":1,"method":"subscribe","params":{"stream_id":")" +
      std::string(std::string_view(stream->id())) + "\"}}");
  bench.run_all();
  stream->append(ChunkKind::text, "a");
  bench.run_all();
  ASSERT_EQ(output.messages.size(), 2U);
  stream->append(ChunkKind::text, "b");
  connection->on_close();
  connection = nullptr;
  bench.run_all();
  EXPECT_EQ(output.messages.size(), 2U) << "nobody reads any more";
}

TEST_F(MessageConnectionTest, HandlesALongMessageLater) {
  const std::string ping = R"({"jsonrpc":"2.0","id":1,"method":"ping"})";
  EXPECT_TRUE(say(ping));
  EXPECT_EQ(output.messages.size(), 1U);
  EXPECT_FALSE(say(ping + std::string(LongMessages::kLong, ' ')));
  EXPECT_FALSE(say("{" + std::string(LongMessages::kLong, ' ')));
  bool is_idle = false;
  connection->when_idle([&] { is_idle = true; });
  EXPECT_EQ(output.messages.size(), 1U);
  EXPECT_FALSE(is_idle);
  bench.run_all();
  ASSERT_EQ(output.messages.size(), 3U);
  EXPECT_EQ(output.messages[1], output.messages[0]);
  EXPECT_THAT(output.messages[2], ::testing::HasSubstr("-32700"));
  EXPECT_EQ(handled, 2);
  EXPECT_TRUE(is_idle);
}

TEST_F(MessageConnectionTest, ALongMessageOfAPeerThatHasGoneIsDropped) {
  EXPECT_FALSE(say(R"({"jsonrpc":"2.0","id":1,"method":"ping"})" + std::string(100'000, ' ')));
  connection->on_close();
  bench.run_all();
  EXPECT_TRUE(output.messages.empty());
  EXPECT_EQ(handled, 0);
}

}  // namespace
}  // namespace sluice
