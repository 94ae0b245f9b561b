#include "server/dispatch/batch.hpp"

#include <algorithm>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "server/dispatch/server_test_support.hpp"

namespace sluice {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string call_later(std::string_view id) {
  return R"({"jsonrpc":"2.0","id":)" + std::string(id) +
         R"(,"method":"tools/call","params":{"name":"later","_meta":{"progressToken":"t"}}})";
}
std::string array(const std::vector<std::string>& messages) {
  std::string text = "[";
  for (const std::string& message : messages) text.append(text.size() > 1 ? "," : "") += message;
  return text + "]";
}

class BatchTest : public ::testing::Test {
 protected:
  BatchTest() {
    service.emplace(bench.catalog, access, bench.sessions, bench.quota, *bench.changes,
                    *bench.tasks,
                    std::vector<StreamShard>{{&bench.executors[0], bench.managers[0].get()}}, 0,
                    nullptr, nullptr, nullptr, &clients);
  }
  ~BatchTest() override {
    bench.calls.clear();
    bench.run_all();
  }

  /// The immediate answer to a caller of `revision`.
  std::string send(std::string_view text, std::string_view revision = "2025-03-26",
                   SharedReply::Form form = SharedReply::Form::array_or_messages,
                   LongMessage* parsed = nullptr) {
    const MirroredHeaders headers{.protocol_version = revision, .method = {}, .name = {}};
    std::string out;
    Executor::Task task = [this] { is_handled = true; };
    outcome = handle_batch(
        text, parsed, &headers, *service, caller, form,
        [this, headers](const Message& message, const MirroredHeaders*, Caller& each,
                        std::string& response) {
          ++dispatched;
          return service->dispatcher.dispatch(message, &headers, each, response);
        },
        task, out);
    is_handled = static_cast<bool>(task);
    return out;
  }

  ServerBench bench;
  AccessPolicy access{{}};
  MemoryBudget memory{std::size_t{1} << 20U};
  ClientMemory clients{memory};
  std::optional<Service> service;
  RecordingCaller caller;
  Outcome outcome;
  int dispatched = 0;
  bool is_handled = false;  // the whole of the last batch
};

/// Records the largest number of messages that are dispatched in one turn of the loop, until `all`
/// of them are.
struct DispatchWatch final : Executor::TurnHook {
  DispatchWatch(ManualExecutor& its_loop, const int& dispatched, int those)
      : loop(&its_loop), now(&dispatched), all(those) {
    loop->at_turn_end(*this);
  }
  void on_turn_end() override {
    most = std::max(most, *now - before);
    before = *now;
    if (before < all) loop->at_turn_end(*this);
  }
  ManualExecutor* loop;
  const int* now;
  int all;
  int before = 0;
  int most = 0;
};

TEST_F(BatchTest, IsAnsweredWithOneArray) {
  EXPECT_EQ(send(array({ping("1"), R"({"jsonrpc":"2.0","method":"notifications/initialized"})",
                        ping("\"b\""), ping("12345678901234567890123")})),
            array({std::string(kPong), R"({"jsonrpc":"2.0","id":"b","result":{}})",
                   R"({"jsonrpc":"2.0","id":12345678901234567890123,"result":{}})"}));
  EXPECT_EQ(outcome.kind, Outcome::Kind::answered);
  EXPECT_EQ(outcome.http_status, 200);
}

TEST_F(BatchTest, OfNotificationsAndResponsesIsAccepted) {
  EXPECT_EQ(send(R"([{"jsonrpc":"2.0","method":"notifications/initialized"},)"
                 R"({"jsonrpc":"2.0","id":1,"result":{}}])"),
            "");
  EXPECT_EQ(outcome.kind, Outcome::Kind::accepted);
}

TEST_F(BatchTest, ExistsInOneRevisionOnly) {
  for (const Revision& revision : revisions()) {
    const std::string answer = send(array({ping("1")}), revision.name);
    if (revision.batches) {
      EXPECT_EQ(revision.name, "2025-03-26");
      EXPECT_EQ(answer, array({std::string(kPong)}));
    } else {
      EXPECT_EQ(error_code(answer), -32600) << revision.name;
      EXPECT_THAT(answer, HasSubstr("batches are not part of this protocol revision"));
      EXPECT_EQ(outcome.http_status, 400);
    }
  }
  // With a session, its revision decides.
  caller.agreed =
      std::make_shared<Session>("", "alice", *find_revision("2025-06-18"), ClientDescription());
  EXPECT_EQ(error_code(send(array({ping("1")}), {})), -32600);
  caller.agreed =
      std::make_shared<Session>("", "alice", *find_revision("2025-03-26"), ClientDescription());
  EXPECT_EQ(send(array({ping("1")}), {}), array({std::string(kPong)}));
}

TEST_F(BatchTest, ContainsNoOther) {
  EXPECT_THAT(send("[" + array({ping("1")}) + "," + ping("2") + "]"),
              AllOf(HasSubstr("must not contain another"), HasSubstr(R"("id":2,"result")")));
}

TEST_F(BatchTest, ALongOneIsRefusedWithoutBeingReadAgain) {
  const auto send_long = [this](const std::string& text) {
    const std::unique_ptr<LongMessage> parsed = service->long_messages.parse(text, [] {}, "alice");
    bench.run_all();
    // If this text were parsed, the error would be that it is not JSON.
    return send("[?]", "2025-11-25", SharedReply::Form::array_or_messages, parsed.get());
  };
  const std::string more_than_a_batch = "[" + std::string(LongMessages::kLong, ' ') + "0]";
  for (const std::string& text : {more_than_a_batch, array({ping("1")}), std::string("[]")}) {
    const std::string answer = send_long(text);
    EXPECT_EQ(error_code(answer), -32600);
    EXPECT_THAT(answer, HasSubstr("batches are not part of this protocol revision"));
    EXPECT_EQ(outcome.http_status, 400);
  }
  EXPECT_THAT(send_long("[1,2"), AllOf(HasSubstr("-32700"), HasSubstr("at byte")));
}

TEST_F(BatchTest, IsBounded) {
  EXPECT_THAT(send("[]"), HasSubstr("the batch is empty"));
  EXPECT_EQ(error_code(send("[{]")), -32700);
  const std::vector<std::string> most(kMaxBatch, ping("1"));
  EXPECT_EQ(send(array(most)), array(std::vector<std::string>(kMaxBatch, std::string(kPong))));
  std::vector<std::string> more = most;
  more.push_back(ping("1"));
  EXPECT_EQ(error_code(send(array(more))), -32600);
}

TEST_F(BatchTest, AWrongMessageSpoilsNoOther) {
  const Result<json::value> answer = parse_json(
      send(array({"7", ping("1"), R"({"jsonrpc":"2.0","id":2})",
                  R"({"jsonrpc":"2.0","id":3,"method":"initialize","params":)"
                  R"({"protocolVersion":"2025-03-26","capabilities":{}}})",
                  R"({"jsonrpc":"2.0","id":4,"method":"server/discover","params":{"_meta":)"
                  R"({"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}})"})));
  ASSERT_TRUE(answer);
  const json::array& responses = answer->as_array();
  ASSERT_EQ(responses.size(), 5U);
  EXPECT_EQ(responses[1].as_object().contains("result"), true);
  for (const std::size_t wrong : {0U, 2U, 3U, 4U}) {
    EXPECT_EQ(responses[wrong].at("error").at("code").as_int64(), -32600) << wrong;
  }
  EXPECT_THAT(to_json(responses[3]), HasSubstr("initialize must not be part of a batch"));
  EXPECT_THAT(to_json(responses[4]), HasSubstr("has no batches"));
  EXPECT_EQ(caller.agreed, nullptr);
}

TEST_F(BatchTest, WaitsForItsLastResponse) {
  EXPECT_EQ(send(array({call_later("1"), ping("2"), call_later("3")})), "");
  EXPECT_EQ(outcome.kind, Outcome::Kind::pending);
  ASSERT_EQ(caller.channels.size(), 1U);
  EXPECT_EQ(caller.ids[0], "");
  bench.calls[1]->complete({.text = "third"});
  bench.run_all();
  EXPECT_TRUE(caller.channel().replies.empty());
  bench.calls[0]->complete({.text = "first"});
  bench.run_all();
  ASSERT_EQ(caller.channel().replies.size(), 1U);
  const Result<json::value> answer = parse_json(caller.channel().replies[0]);
  ASSERT_TRUE(answer && answer->is_array());
  EXPECT_EQ(answer->as_array().size(), 3U);
  EXPECT_THAT(to_json(*answer), HasSubstr("first"));
  EXPECT_THAT(to_json(*answer), HasSubstr("third"));
  EXPECT_TRUE(caller.channel().written.empty());
}

TEST_F(BatchTest, OnceSomethingGoesBeforeAResponseEachGoesByItself) {
  send(array({ping("1"), call_later("2"), call_later("3")}));
  bench.calls[0]->emit("half");
  bench.calls[0]->complete({.text = "second"});
  bench.run_all();
  const std::string& written = caller.channel().written;
  EXPECT_TRUE(written.starts_with("data: " + std::string(kPong) + "\n\ndata: ")) << written;
  EXPECT_LT(written.find("\"half\""), written.find("\"second\""));
  EXPECT_EQ(caller.channel().finishes, 0);
  bench.calls[1]->complete({.text = "third"});
  bench.run_all();
  EXPECT_THAT(written, HasSubstr("\"third\""));
  EXPECT_EQ(caller.channel().finishes, 1);
  EXPECT_TRUE(caller.channel().replies.empty());
}

TEST_F(BatchTest, OrAllInOneArrayBehindWhatGoesBefore) {
  send(array({ping("1"), call_later("2")}), "2025-03-26", SharedReply::Form::array);
  bench.calls[0]->emit("half");
  bench.calls[0]->complete({.text = "second"});
  bench.run_all();
  EXPECT_THAT(caller.channel().written, HasSubstr("\"half\""));
  EXPECT_THAT(caller.channel().written, ::testing::Not(HasSubstr("\"second\"")));
  ASSERT_EQ(caller.channel().replies.size(), 1U);
  EXPECT_TRUE(caller.channel().replies[0].starts_with("[" + std::string(kPong) + ","));
  EXPECT_THAT(caller.channel().replies[0], HasSubstr("\"second\""));
}

TEST_F(BatchTest, ARequestIsCancelledByItsIdAndAllByTheirCallersGoing) {
  caller.agreed =
      std::make_shared<Session>("s", "alice", *find_revision("2025-03-26"), ClientDescription());
  send(array({call_later("1"), call_later("2")}), {});
  caller.agreed->cancel_call("1");
  bench.run_all();
  EXPECT_TRUE(bench.calls[0]->over());
  EXPECT_FALSE(bench.calls[1]->over());
  bench.calls[1]->complete({.text = "second"});
  bench.run_all();
  ASSERT_EQ(caller.channel().replies.size(), 1U);
  EXPECT_TRUE(caller.channel().replies[0].starts_with(R"([{"jsonrpc":"2.0","id":2,)"));

  send(array({call_later("1"), call_later("2")}), {});
  caller.agreed->cancel_call("1");
  caller.agreed->cancel_call("2");
  bench.run_all();
  EXPECT_EQ(caller.channel().finishes, 1);
  EXPECT_EQ(caller.channel().blocks, 1) << "an event stream without a response";
  EXPECT_TRUE(caller.channel().replies.empty());

  caller.streams = false;
  send(array({call_later("1")}), {});
  caller.agreed->cancel_call("1");
  bench.run_all();
  EXPECT_EQ(caller.channel().finishes, 1);
  EXPECT_EQ(caller.channel().blocks, 0);
  caller.streams = true;

  // Even in a session, because the messages of several streams could not be resumed.
  send(array({call_later("1"), call_later("2")}), {});
  bench.calls[4]->emit("half");
  caller.channel().close();
  bench.run_all();
  EXPECT_TRUE(bench.calls[4]->over());
  EXPECT_TRUE(bench.calls[5]->over());
}

TEST_F(BatchTest, ACallThatItsHandlerDropsIsAnsweredBesideTheOthers) {
  send(array({ping("1"), call_later("2")}));
  bench.calls.clear();
  bench.run_all();
  ASSERT_EQ(caller.channel().replies.size(), 1U);
  EXPECT_THAT(caller.channel().replies[0],
              AllOf(HasSubstr(kPong), HasSubstr(R"("id":2,"error":{"code":-32603)")));
}

TEST_F(BatchTest, AFullChannelHoldsUpEveryCall) {
  send(array({call_later("1"), call_later("2")}));
  CountingStreamProducer first;
  bench.calls[0]->set_producer(&first);
  caller.channel().writable = false;
  bench.calls[0]->emit("a");
  bench.run_all();
  bench.calls[0]->emit("b");
  bench.run_all();
  EXPECT_THAT(caller.channel().written, ::testing::Not(HasSubstr("\"b\"")));
  caller.channel().drain();
  bench.run_all();
  EXPECT_THAT(caller.channel().written, HasSubstr("\"b\""));
  bench.calls[0]->set_producer(nullptr);
}

TEST_F(BatchTest, AnswersThatWaitForOthersDrawOnTheMemoryOfTheirClient) {
  const std::string long_text(100'000, 'x');
  const std::string echo =
      R"("method":"tools/call","params":{"name":"echo","arguments":{"text":")" + long_text +
      R"("}}})";
  std::vector<std::string> messages;
  for (int id = 1; id <= 6; ++id) {
    messages.push_back(R"({"jsonrpc":"2.0","id":)" + std::to_string(id) + "," + echo);
  }
  messages.push_back(ping("7"));
  messages.push_back(call_later("8"));
  const auto send_all = [&] {
    std::string now = send(array(messages), "2025-03-26", SharedReply::Form::array);
    bench.run_all();
    return now;
  };
  const auto refused_of = [](const RecordingChannel& channel) {
    std::vector<std::int64_t> ids;
    const json::value answer = parse_json(channel.replies.at(0)).value();
    EXPECT_EQ(answer.as_array().size(), 8U);
    for (const json::value& each : answer.as_array()) {
      if (!each.as_object().contains("error")) continue;
      EXPECT_EQ(each.at("error").at("code").as_int64(), kBusy);
      ids.push_back(each.at("id").as_int64());
    }
    return ids;
  };
  EXPECT_EQ(send_all(), "");
  const auto first = caller.channels.back();
  EXPECT_GT(memory.used(), 500'000U);
  // One client gets about half of the memory. The rest is left for others.
  EXPECT_EQ(error_code(send_all()), kBusy);
  EXPECT_LT(memory.used(), 600'000U);
  caller = RecordingCaller("bob");
  EXPECT_EQ(send_all(), "");
  EXPECT_LT(memory.used(), memory.limit());
  for (const auto& call : bench.calls) call->complete({.text = "done"});
  bench.run_all();
  // Short responses fit in the reserved memory, so they are kept in any case.
  EXPECT_EQ(refused_of(*first), (std::vector<std::int64_t>{6}));
  EXPECT_EQ(refused_of(caller.channel()), (std::vector<std::int64_t>{3, 4, 5, 6}));
  EXPECT_EQ(memory.used(), 0U);
}

TEST(SharedReply, AnArrayHasALimit) {
  ManualExecutor loop;
  const auto reply = std::make_shared<SharedReply>(SharedReply::Form::array, loop);
  const std::string result =
      R"(,"result":{"text":")" + std::string(SharedReply::kMost / 3, 'x') + R"("}})";
  for (int id = 1; id <= 4; ++id) {
    const std::string name = std::to_string(id);
    reply->respond(R"({"jsonrpc":"2.0","id":)" + name + result, name);
  }
  reply->respond(ping("5"), "5");
  EXPECT_FALSE(reply->complete());
  const json::value answer = parse_json(reply->take_responses()).value();
  ASSERT_EQ(answer.as_array().size(), 5U);
  for (std::size_t i = 0; i < 5; ++i) {
    const json::object& each = answer.as_array()[i].as_object();
    EXPECT_EQ(each.at("id").as_int64(), static_cast<std::int64_t>(i + 1));
    EXPECT_EQ(each.contains("error"), i == 2 || i == 3);
  }
  EXPECT_THAT(to_json(answer.as_array()[3]),
              AllOf(HasSubstr("-31000"), HasSubstr(std::to_string(SharedReply::kMost))));
}

TEST(SharedReply, ResponsesThatGoByThemselvesWaitForRoom) {
  ManualExecutor loop;
  MemoryBudget budget{std::size_t{1} << 20U};
  ClientMemory memory{budget};
  const auto reply =
      std::make_shared<SharedReply>(SharedReply::Form::messages, loop, memory.of("alice"));
  const auto output = std::make_shared<RecordingChannel>();
  output->writable = false;
  reply->attach(output);
  const auto answer = [&](int id) {
    const std::string name = std::to_string(id);
    reply->open(name, nullptr)
        .value()
        ->reply(200, R"({"jsonrpc":"2.0","id":)" + name + R"(,"result":{"text":")" +
                         std::string(100'000, 'x') + R"("}})");
  };
  for (int id = 1; id <= 8; ++id) answer(id);
  EXPECT_LT(output->written.size(), 150'000U);
  EXPECT_GT(budget.used(), 300'000U);
  reply->complete();
  EXPECT_EQ(output->finishes, 0);
  output->drain();
  EXPECT_THAT(output->written, AllOf(HasSubstr(R"("id":8)"), HasSubstr("-31000")));
  EXPECT_EQ(output->finishes, 1);
  EXPECT_EQ(budget.used(), 0U);
}

TEST_F(BatchTest, WhatWaitsGivesItsMemoryBackWhenItsCallerGoes) {
  send(array({R"({"jsonrpc":"2.0","id":1,"method":"tools/list"})", call_later("2")}));
  EXPECT_GT(memory.used(), 0U);
  caller.channel().close();
  bench.calls.clear();
  bench.run_all();
  EXPECT_EQ(memory.used(), 0U);
  // A batch does not start if there is not even memory to refuse its requests.
  memory.acquire_beyond_limit(memory.limit());
  EXPECT_EQ(error_code(send(array({ping("1")}))), kBusy);
  EXPECT_EQ(outcome.http_status, 503);
  memory.release(memory.limit());
}

TEST_F(BatchTest, LetsOthersGoOnBetweenItsParts) {
  const auto stream = bench.start(0);
  stream->append(ChunkKind::text, std::string(200'000, 'x'));
  std::vector<std::string> messages;
  for (int id = 1; id <= 40; ++id) {
    messages.push_back(R"({"jsonrpc":"2.0","id":)" + std::to_string(id) +
                       R"(,"method":"run","params":{"stream_id":")" + std::string(stream->id()) +
                       R"("}})");
  }
  DispatchWatch watch(bench.executors[0], dispatched, 40);
  {
    const std::string text = array(messages);
    EXPECT_EQ(send(text), "");
  }
  EXPECT_EQ(outcome.kind, Outcome::Kind::pending);
  EXPECT_EQ(dispatched, 2) << "two polls are more than the part of a batch";
  EXPECT_FALSE(is_handled);
  bench.run_all();
  EXPECT_TRUE(is_handled);
  EXPECT_EQ(dispatched, 40);
  EXPECT_LE(watch.most, 6);
  ASSERT_EQ(caller.channel().replies.size(), 1U);
  const json::value answers = parse_json(caller.channel().replies[0]).value();
  ASSERT_EQ(answers.as_array().size(), 40U);
  for (std::size_t i = 0; i < 40; ++i) {
    EXPECT_EQ(answers.as_array()[i].at("id").as_int64(), static_cast<std::int64_t>(i) + 1);
  }
  EXPECT_EQ(memory.used(), 0U);
}

TEST_F(BatchTest, ComparesFewUrisWithTemplatesInATurn) {
  constexpr std::string_view kTemplate = "x:{+a}/{+b}/{+c}/{+d}";
  bench.definition.resource_templates.push_back({.uri = UriTemplate::parse(kTemplate).value(),
                                                 .uri_template = std::string(kTemplate),
                                                 .name = "x",
                                                 .description = "",
                                                 .mime_type = "",
                                                 .read = {}});
  bench.serve();
  service->dispatcher.take(bench.catalog);
  // The last value is no UTF-8, so the whole URI is compared and none matches.
  const std::string uri = "x:a/b/" + std::string(7000, 'c') + "/%FF";
  const std::vector<std::string> reads(
      40,
      R"({"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":")" + uri + R"("}})");
  DispatchWatch watch(bench.executors[0], dispatched, 40);
  EXPECT_EQ(send(array(reads)), "");
  bench.run_all();
  EXPECT_EQ(dispatched, 40);
  EXPECT_LE(watch.most, TurnWork::kTurn / (3 * uri.size()));
}

TEST_F(BatchTest, GoesOnNoMoreForACallerThatHasGone) {
  const std::vector<std::string> calls(40,
                                       R"({"jsonrpc":"2.0","id":1,"method":"tools/call","params":{)"
                                       R"("name":"echo","arguments":{"text":")" +
                                           std::string(20'000, 'x') + R"("}}})");
  EXPECT_EQ(send(array(calls)), "");
  EXPECT_LT(dispatched, 40);
  const int before = dispatched;
  caller.channel().close();
  bench.run_all();
  EXPECT_EQ(dispatched, before);
  EXPECT_FALSE(is_handled);
  EXPECT_EQ(memory.used(), 0U);
}

TEST_F(BatchTest, WithoutAWayToAnswerLaterTheRestIsRefused) {
  const std::vector<std::string> calls(40,
                                       R"({"jsonrpc":"2.0","id":1,"method":"tools/call","params":{)"
                                       R"("name":"echo","arguments":{"text":")" +
                                           std::string(20'000, 'x') + R"("}}})");
  caller.full = true;
  const json::value answers = parse_json(send(array(calls))).value();
  EXPECT_LT(dispatched, 40);
  ASSERT_EQ(answers.as_array().size(), 40U);
  EXPECT_TRUE(answers.as_array().front().as_object().contains("result"));
  EXPECT_EQ(answers.as_array().back().at("error").at("code").as_int64(), kBusy);
}

TEST_F(BatchTest, ItsRequestsWaitInTheMiddlewareEachForItself) {
  bool refuses = false;
  bench.definition.middleware.push_back([&refuses](Request& request) -> Task<> {
    if (request.method() != "ping") co_await request.sleep(std::chrono::seconds(1));
    if (refuses) throw Error{403, "no"};
    co_await request.next();
  });
  bench.serve();
  service->dispatcher.take(bench.catalog);
  const std::string list = R"({"jsonrpc":"2.0","id":1,"method":"tools/list"})";
  const std::string initialize = R"({"jsonrpc":"2.0","id":4,"method":"initialize","params":)"
                                 R"({"protocolVersion":"2025-03-26","capabilities":{}}})";
  EXPECT_EQ(send(array({list, ping("2"), call_later("3"), initialize})), "");
  EXPECT_EQ(outcome.kind, Outcome::Kind::pending);
  EXPECT_EQ(bench.quota.in_use(), 3U);
  bench.executors[0].advance(std::chrono::seconds(1));
  ASSERT_EQ(bench.calls.size(), 1U);
  EXPECT_TRUE(caller.channel().replies.empty());
  bench.calls[0]->complete({.text = "third"});
  bench.run_all();
  ASSERT_EQ(caller.channel().replies.size(), 1U);
  EXPECT_EQ(parse_json(caller.channel().replies[0]).value().as_array().size(), 4U);
  EXPECT_THAT(caller.channel().replies[0], HasSubstr("initialize must not be part of a batch"));
  refuses = true;
  send(array({list, call_later("2")}));
  bench.executors[0].advance(std::chrono::seconds(1));
  EXPECT_THAT(caller.channel().replies.at(0), AllOf(HasSubstr(R"("id":1,"error":{"code":403)"),
                                                    HasSubstr(R"("id":2,"error":{"code":403)")));
  refuses = false;
  send(array({list, call_later("2")}));
  caller.channel().close();
  bench.executors[0].advance(std::chrono::seconds(1));
  EXPECT_EQ(bench.calls.size(), 1U);
  EXPECT_EQ(bench.quota.in_use(), 0U);
}

}  // namespace
}  // namespace sluice
