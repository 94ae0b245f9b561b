#include "server/calls/pending_request.hpp"

#include <chrono>
#include <cmath>
#include <cstdint>
#include <future>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "protocol/error_codes.hpp"
#include "rpc/error_codes.hpp"
#include "server/calls/long_result.hpp"
#include "server/calls/session_questions.hpp"
#include "server/dispatch/server_test_support.hpp"
#include "server/notifications/message_events.hpp"
#include "server/workers/worker_pool.hpp"
#include "sluice/call.hpp"
#include "stream/stream_test_support.hpp"

namespace sluice {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr std::string_view kAsksForName =
    R"({"message":"Who?","requestedSchema":{"type":"object","properties":{"name":{"type":"string"}}}})";

/// Calls of the tool `later`, from clients of both eras.
class PendingRequestTest : public ::testing::Test {
 protected:
  PendingRequest& call() { return *bench.calls.back(); }
  RecordingChannel& channel() { return caller.channel(); }

  /// A client of 2025-11-25 initializes and calls.
  void call_in_session(std::string_view capabilities = "{}", std::string_view meta = "") {
    bench.request("initialize",
                  R"("protocolVersion":"2025-11-25","capabilities":)" + std::string(capabilities),
                  caller);
    bench.request("tools/call", R"("name":"later","_meta":{)" + std::string(meta) + "}", caller);
    ASSERT_FALSE(bench.calls.empty());
  }

  /// A client of 2026-07-28 calls. `more` are further members of the parameters.
  std::string call_modern(std::string_view capabilities = "{}", std::string_view more = "",
                          std::string_view meta = "") {
    return bench.request(
        "tools/call",
        R"("name":"later","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",)"
        R"("io.modelcontextprotocol/clientCapabilities":)" +
            std::string(capabilities) + std::string(meta) + "}" + std::string(more),
        caller);
  }

  /// Asks the client for a name and its roots. `heard` gets the answers or the error.
  void ask_for_name_and_roots() {
    heard.clear();
    call().ask({{"name", "elicitation/create", parse_json(kAsksForName)->get_object()},
                {"roots", "roots/list", {}}},
               [this](const Result<std::vector<json::value>>& answers) {
                 if (!answers) {
                   heard = std::to_string(answers.error().code) + " " + answers.error().data;
                   return;
                 }
                 for (const json::value& answer : *answers) heard += to_json(answer);
               });
    bench.run_all();
  }

  void respond(const std::string& id, const std::string& outcome) {
    MessageParser parser;
    const std::string text = R"({"jsonrpc":"2.0","id":)" + id + "," + outcome + "}";
    const auto message = parser.parse(text);
    ASSERT_TRUE(message);
    caller.agreed->on_response(*message);
    bench.run_all();
  }
  /// The id of the last request of `method` to the client.
  std::string asked_id(const std::string& method) {
    const std::string& written = channel().written;
    const std::size_t at = written.rfind(R"(,"method":")" + method);
    const std::size_t from = written.rfind("\"id\":", at) + 5;
    return written.substr(from, at - from);
  }

  ServerBench bench;
  RecordingCaller caller;
  std::string heard;
};

constexpr const char* kAsksAll = R"({"elicitation":{},"roots":{}})";

TEST_F(PendingRequestTest, ACallOutlivesEachOfItsConnectionsForTheWholeResumeWindow) {
  constexpr Duration kWindow = std::chrono::seconds(10);
  caller.agreed = std::make_shared<Session>("s", "alice", *find_revision("2025-11-25"),
                                            ClientDescription(), kWindow);
  bench.request("tools/call", R"("name":"later")", caller);
  const std::string id =
      channel().written.substr(channel().written.find("id: ") + 4, StreamId::kLength);
  channel().close();
  std::unique_ptr<Subscription> reader;
  const auto come_back = [&] {
    bench.services[0]->subscribe(id, caller.agreed->stream_principal(), 0, 0, message_events(),
                                 false,
                                 std::make_unique<RecordingSink>(std::make_shared<Written>()),
                                 [&](Result<std::unique_ptr<Subscription>> subscribed) {
                                   reader = std::move(subscribed).value();
                                 });
    bench.run_all();
    ASSERT_NE(reader, nullptr);
  };
  ManualExecutor& loop = bench.executors[0];
  for (int i = 0; i < 3; ++i) {
    loop.advance(kWindow * 3 / 4);
    ASSERT_FALSE(call().over());
    come_back();
    loop.advance(kWindow / 5);
    reader = nullptr;
  }
  come_back();
  loop.advance(kWindow * 3);
  EXPECT_FALSE(call().over());
  reader = nullptr;
  loop.advance(kWindow);
  EXPECT_TRUE(call().over());
}

TEST_F(PendingRequestTest, ACallThatIsCancelledWhileItsConnectionBreaksIsCancelled) {
  for (const bool is_first : {true, false}) {
    caller.agreed = std::make_shared<Session>("s", "alice", *find_revision("2025-11-25"),
                                              ClientDescription(), std::chrono::seconds(10));
    bench.request("tools/call", R"("name":"later")", caller);
    const std::string id(call().id());
    // As the channel of HTTP does: while its connection is there, it cancels the call.
    channel().entry = Session::add_call(caller.agreed, id, bench.executors[0], [this] {
                        channel().close(DisconnectReason::cancelled);
                      }).value();
    if (is_first) caller.agreed->cancel_call(id);
    channel().close();
    if (!is_first) caller.agreed->cancel_call(id);
    EXPECT_FALSE(call().over());
    bench.run_all();
    EXPECT_TRUE(call().over()) << is_first;
    EXPECT_TRUE(caller.agreed->idle_since());
  }
}

TEST_F(PendingRequestTest, ASessionsClientIsAskedWhileTheCallWaits) {
  call_in_session(kAsksAll);
  ask_for_name_and_roots();
  EXPECT_THAT(channel().written,
              HasSubstr(R"("method":"elicitation/create","params":{"message":)"));
  EXPECT_THAT(channel().written, HasSubstr(R"("method":"roots/list"})"));
  respond(asked_id("roots/list"), R"("result":{"roots":[]})");
  EXPECT_EQ(heard, "");
  respond(asked_id("elicitation/create"), R"("result":{"action":"decline"})");
  EXPECT_EQ(heard, R"({"action":"decline"}{"roots":[]})");
  // It may ask again.
  ask_for_name_and_roots();
  respond(asked_id("elicitation/create"), R"("error":{"code":-1,"message":"No"})");
  EXPECT_EQ(heard, R"(-32603 {"code":-1,"message":"No"})");
  call().complete({.text = "done"});
  bench.run_all();
  EXPECT_THAT(channel().written, HasSubstr("\"done\""));
}

TEST_F(PendingRequestTest, AClientsErrorDoesNotPassForOneOfTheServer) {
  call_in_session(kAsksAll);
  call().ask({{"roots", "roots/list", {}}}, [&](const Result<std::vector<json::value>>& answers) {
    call().fail(answers.error());
  });
  bench.run_all();
  respond(asked_id("roots/list"),
          R"("error":{"code":-32042,"message":"Open it","data":{"elicitations":[]}})");
  EXPECT_THAT(channel().written,
              HasSubstr(R"("error":{"code":-32603,"message":"The client answered )"
                        R"(roots/list with error -32042: Open it")"));
}

TEST_F(PendingRequestTest, ThatAPageMustBeOpenedIsAnErrorOfOneRevision) {
  const Error error = url_elicitation_required({{"Sign in", "https://example.com/", "1"}});
  call_in_session();
  call().fail(error);
  EXPECT_EQ(error_code(channel().replies.back()), kUrlElicitationRequired);
  call_modern();
  call().fail(error);
  EXPECT_EQ(error_code(channel().replies.back()), kInvalidRequest);
  EXPECT_THAT(channel().replies.back(), HasSubstr(R"("url":"https://example.com/")"));
}

TEST_F(PendingRequestTest, SeveralQuestionsMayBeOpenAtOnce) {
  call_in_session(kAsksAll);
  std::vector<std::string> heard_of(2);
  for (std::string& each : heard_of) {
    call().ask({{"roots", "roots/list", {}}},
               [&each](const Result<std::vector<json::value>>& answers) {
                 each = answers ? to_json(answers->front()) : "error";
               });
    bench.run_all();
  }
  const std::string second = asked_id("roots/list");
  const std::string first = std::to_string(std::stoi(second) - 1);
  respond(second, R"("result":{"roots":[]})");
  EXPECT_EQ(heard_of[0], "");
  EXPECT_EQ(heard_of[1], R"({"roots":[]})");
  respond(first, R"("result":{"roots":[{"uri":"file:///a"}]})");
  EXPECT_EQ(heard_of[0], R"({"roots":[{"uri":"file:///a"}]})");
}

TEST_F(PendingRequestTest, WhoAsksNothingIsAnsweredAtOnce) {
  const auto ask_nothing = [this] {
    heard.clear();
    call().ask({}, [this](const Result<std::vector<json::value>>& answers) {
      heard = answers ? std::to_string(answers->size()) + " answers" : answers.error().message;
    });
    return heard;
  };
  call_in_session(kAsksAll);
  EXPECT_EQ(ask_nothing(), "0 answers");
  call_in_session();
  EXPECT_EQ(ask_nothing(), "0 answers") << "no capability is needed";
  call_modern();
  EXPECT_EQ(ask_nothing(), "0 answers");
}

TEST_F(PendingRequestTest, AClientThatDoesNotAnswerIsGivenUp) {
  call_in_session(kAsksAll);
  ask_for_name_and_roots();
  const std::string id = asked_id("roots/list");
  bench.executors[0].advance(SessionQuestions::kAnswerTime);
  bench.run_all();
  EXPECT_THAT(heard, HasSubstr("-31001"));
  EXPECT_THAT(channel().written,
              HasSubstr(R"("method":"notifications/cancelled","params":{"requestId":)" + id));
}

TEST_F(PendingRequestTest, QuestionsAreTakenBackWithACancelledCall) {
  call_in_session(kAsksAll);
  ask_for_name_and_roots();
  const std::string id = asked_id("roots/list");
  channel().close(DisconnectReason::cancelled);
  EXPECT_TRUE(call().over());
  EXPECT_THAT(channel().written,
              HasSubstr(R"("method":"notifications/cancelled","params":{"requestId":)" + id));
  EXPECT_EQ(heard, "");
}

TEST_F(PendingRequestTest, QuestionsAreTakenBackWhenTheCallEndsWithoutTheirAnswer) {
  call_in_session(kAsksAll);
  ask_for_name_and_roots();
  const std::string answered = asked_id("elicitation/create");
  const std::string open = asked_id("roots/list");
  respond(answered, R"("result":{"action":"decline"})");
  call().complete({.text = "done"});
  bench.run_all();
  const std::string& written = channel().written;
  const std::string taken_back =
      R"("method":"notifications/cancelled","params":{"requestId":)" + open + "}";
  EXPECT_THAT(written, ContainsRegex("requestId\":" + open + "}.*\n.*\n.*\"done\""));
  EXPECT_EQ(written.find("notifications/cancelled"), written.rfind("notifications/cancelled"))
      << "the other one has its answer";
  EXPECT_THAT(written, HasSubstr(taken_back));
}

TEST_F(PendingRequestTest, AnAskerThatDoesNotWaitAnyMoreTakesItsQuestionsBack) {
  call_in_session(kAsksAll);
  PendingRequest::Withdraw withdraw = call().ask(
      {{"roots", "roots/list", {}}}, [&](const auto&) { heard = "it is called all the same"; });
  bench.run_all();
  const std::string id = asked_id("roots/list");
  withdraw();
  bench.run_all();
  EXPECT_THAT(channel().written,
              HasSubstr(R"("method":"notifications/cancelled","params":{"requestId":)" + id + "}"));
  respond(id, R"("result":{"roots":[]})");
  EXPECT_EQ(heard, "");
  EXPECT_FALSE(call().over());
}

TEST_F(PendingRequestTest, OfMoreQuestionsThanMayBeOpenNoneIsSent) {
  call_in_session(kAsksAll);
  std::vector<InputRequest> many;
  for (int i = 0; i < 1001; ++i) many.push_back({"roots" + std::to_string(i), "roots/list", {}});
  call().ask(std::move(many), [](const auto&) {});
  bench.run_all();
  EXPECT_THAT(channel().written, Not(HasSubstr("roots/list")));
  EXPECT_EQ(error_code(channel().replies.back()), kLimitReached);
}

TEST_F(PendingRequestTest, WhoeverWaitsForAnAnswerIsForgottenWithTheCall) {
  call_in_session(kAsksAll);
  ask_for_name_and_roots();
  const std::string id = asked_id("roots/list");
  channel().close();
  EXPECT_TRUE(call().over());
  respond(id, R"("result":{"roots":[]})");
  EXPECT_EQ(heard, "");
}

TEST_F(PendingRequestTest, AModernClientComesBackWithTheAnswers) {
  call_modern(kAsksAll);
  ask_for_name_and_roots();
  EXPECT_EQ(heard, "");
  EXPECT_TRUE(call().over());
  ASSERT_EQ(channel().replies.size(), 1U);
  const json::object result = parse_json(channel().replies[0])->at("result").as_object();
  EXPECT_EQ(result.at("resultType"), "input_required");
  EXPECT_EQ(to_json(result.at("inputRequests")),
            R"({"name":{"method":"elicitation/create","params":)" + std::string(kAsksForName) +
                R"(},"roots":{"method":"roots/list"}})");
  // Only one of the answers is there yet, so the client is asked for the other.
  call_modern(kAsksAll, R"(,"inputResponses":{"roots":{"roots":[]}},"requestState":)" +
                            to_json(result.at("requestState")));
  ask_for_name_and_roots();
  const json::object second = parse_json(channel().replies[0])->at("result").as_object();
  EXPECT_EQ(
      to_json(second.at("inputRequests")),
      R"({"name":{"method":"elicitation/create","params":)" + std::string(kAsksForName) + "}}");
  call_modern(kAsksAll, R"(,"inputResponses":{"name":{"action":"accept"}},"requestState":)" +
                            to_json(second.at("requestState")));
  ask_for_name_and_roots();
  EXPECT_EQ(heard, R"({"action":"accept"}{"roots":[]})");
  EXPECT_FALSE(call().over());
  call().complete({.text = "done"});
  EXPECT_THAT(channel().replies[0], HasSubstr(R"("resultType":"complete")"));
}

TEST_F(PendingRequestTest, AnswersThatDoNotFitAreErrorsInBothEras) {
  call_in_session(kAsksAll);
  ask_for_name_and_roots();
  respond(asked_id("roots/list"), R"("result":{"roots":[{"uri":"http://a.example"}]})");
  EXPECT_EQ(heard, "-32602 ");
  EXPECT_FALSE(call().over());
  // The other answer is late.
  respond(asked_id("elicitation/create"), R"("result":{"action":"decline"})");
  EXPECT_EQ(heard, "-32602 ");

  call_modern(kAsksAll);
  ask_for_name_and_roots();
  const json::value first = parse_json(channel().replies[0]).value();
  // The client is not even asked again for what is missing: a wrong answer is not sealed.
  call_modern(kAsksAll, R"(,"inputResponses":{"name":{"action":"accept","content":{"name":7}}},)"
                        R"("requestState":)" +
                            to_json(first.at("result").at("requestState")));
  ask_for_name_and_roots();
  EXPECT_EQ(heard, "-32602 ");
  EXPECT_FALSE(call().over());
}

TEST_F(PendingRequestTest, AResultThatBreaksTheOutputSchemaIsAnError) {
  bench.definition.tools.back().output_schema = R"({"type":"object","required":["n"]})";
  bench.serve();
  for (const bool fits : {true, false}) {
    call_modern();
    ::testing::internal::CaptureStderr();
    call().complete({.structured_text = fits ? R"({"n":1})" : "{}"});
    EXPECT_EQ(::testing::internal::GetCapturedStderr().empty(), fits);
    ASSERT_EQ(channel().replies.size(), 1U);
    EXPECT_EQ(error_code(channel().replies[0]), fits ? 0 : kInternalError);
    EXPECT_TRUE(call().over());
  }
}

/// With a worker that checks and writes long results.
class LongResultTest : public PendingRequestTest {
 protected:
  LongResultTest() {
    for (Tool& tool : bench.definition.tools) {
      tool.output_schema = R"({"type":"object","required":["n"]})";
    }
    bench.definition.tools.push_back(
        {.name = "long",
         .description = "",
         .input_schema = R"({"type":"object"})",
         .handler = Tool::Immediate([](const json::object&) -> Result<ToolResult> {
           return ToolResult{.structured_text = long_json(true)};
         })});
    bench.serve();
    bench.dispatcher.emplace(bench.catalog, *bench.services[0], bench.quota, *bench.changes,
                             *bench.tasks, bench.long_messages, bench.checks, &workers);
    occupy_worker();
  }
  ~LongResultTest() override {
    if (!is_free) free_worker();
    bench.calls.clear();
    bench.dispatcher.reset();
  }

  static std::string long_json(bool fits) {
    return R"({"text":")" + std::string(LongResult::kLong, 'x') + (fits ? R"(","n":1})" : "\"}");
  }
  /// Keeps the worker busy until free_worker(). Returns once it is busy.
  void occupy_worker() {
    is_free = false;
    go_on = {};
    std::promise<void> begun;
    workers.run(workers.new_id(), "other", [&begun, until = go_on.get_future().share()] {
      begun.set_value();
      until.wait();
    });
    begun.get_future().wait();
  }
  void free_worker() {
    is_free = true;
    go_on.set_value();
    std::promise<void> done;
    // This runs after the job of alice.
    workers.run(workers.new_id(), "bob", [&] { done.set_value(); });
    done.get_future().wait();
    bench.run_all();
  }

  std::promise<void> go_on;
  bool is_free = false;
  WorkerPool workers{1, SIZE_MAX};
};

TEST_F(LongResultTest, AreCheckedAndWrittenByAWorker) {
  for (const bool fits : {true, false}) {
    call_modern();
    call().complete({.structured_text = long_json(fits)});
    call().complete({.text = "again"});
    call().fail({kInternalError, "again", {}});
    bench.calls.clear();
    bench.run_all();
    EXPECT_TRUE(channel().replies.empty()) << "the loop has not done it";
    free_worker();
    ASSERT_EQ(channel().replies.size(), 1U);
    if (fits) {
      EXPECT_THAT(channel().replies.front(),
                  HasSubstr(R"("structuredContent":)" + long_json(true)));
      EXPECT_THAT(channel().replies.front(), HasSubstr(R"("text":"{\"text\":\"xxx)"));
    } else {
      EXPECT_EQ(error_code(channel().replies.front()), kInternalError);
    }
    occupy_worker();
  }
}

TEST_F(LongResultTest, MayBeNoTextYet) {
  call_modern();
  call().complete(
      {.value = std::make_shared<const json::value>(parse_json(long_json(true)).value())});
  bench.run_all();
  EXPECT_TRUE(channel().replies.empty());
  free_worker();
  ASSERT_EQ(channel().replies.size(), 1U);
  EXPECT_THAT(channel().replies.front(), HasSubstr(R"("structuredContent":)" + long_json(true)));
  EXPECT_THAT(channel().replies.front(), HasSubstr(R"("text":"{\"text\":\"xxx)"));
  // The same goes for a short result.
  for (const bool fits : {true, false}) {
    call_modern();
    call().complete(
        {.value = std::make_shared<const json::value>(json::object{{fits ? "n" : "m", 1}})});
    EXPECT_EQ(error_code(channel().replies.back()), fits ? 0 : kInternalError);
  }
}

TEST_F(LongResultTest, HaveASizeThatIsKnownFromAPart) {
  json::array texts;
  while (texts.size() < 100'000) texts.emplace_back(std::string(100, 'x'));
  const std::size_t bytes = texts.size() * (sizeof(json::value) + 100);
  const ToolResult result{.value = std::make_shared<const json::value>(std::move(texts))};
  EXPECT_TRUE(LongResult::is_long(result));
  EXPECT_GT(LongResult::size_of(result), bytes * 9 / 10);
  EXPECT_LT(LongResult::size_of(result), bytes * 11 / 10);
  const ToolResult blocks{.content = {Content::text(std::string(LongResult::kLong + 1, 'x'))}};
  EXPECT_TRUE(LongResult::is_long(blocks));
}

TEST_F(LongResultTest, AreKnownToBeJsonByAWorker) {
  for (const bool fits : {true, false}) {
    call_modern();
    call().complete({.structured_text = "{\n" + long_json(true).substr(1) + (fits ? "" : "}")});
    bench.run_all();
    EXPECT_TRUE(channel().replies.empty());
    ::testing::internal::CaptureStderr();
    free_worker();
    const std::string logged = ::testing::internal::GetCapturedStderr();
    ASSERT_EQ(channel().replies.size(), 1U);
    EXPECT_EQ(error_code(channel().replies[0]), fits ? 0 : kInternalError);
    EXPECT_THAT(channel().replies[0], Not(HasSubstr("\n")));
    EXPECT_EQ(logged.contains("no JSON"), !fits) << logged;
    occupy_worker();
  }
}

TEST_F(LongResultTest, MayBeResourcesAndPrompts) {
  const auto contents = [] {
    return ResourceResult{
        .contents = {{.uri = "note://long", .data = std::string(LongResult::kLong + 1, 'x')}}};
  };
  const auto messages = [] {
    return PromptResult{.messages = {{.content = Content::text(long_json(true))}}};
  };
  using Read = Resource::Read;
  using Get = Prompt::Get;
  // What answers later does so at once here.
  const auto later = [](auto make) {
    return [make](const auto& /*in*/, std::shared_ptr<PendingRequest> request,
                  const auto& then) -> Result<void> {
      then(*request, make());
      return {};
    };
  };
  for (const bool at_once : {true, false}) {
    bench.definition.resources = {resource_at("note://long")};
    bench.definition.prompts = {
        {.name = "long", .description = "", .arguments = {}, .get = Get::Immediate()}};
    if (at_once) {
      bench.definition.resources[0].read = [=](const std::string&) { return contents(); };
      bench.definition.prompts[0].get = [=](const UriTemplate::Variables&) { return messages(); };
    } else {
      bench.definition.resources[0].read = Read(Read::Deferred(later(contents)));
      bench.definition.prompts[0].get = Get(Get::Deferred(later(messages)));
    }
    bench.serve();
    bench.dispatcher.emplace(bench.catalog, *bench.services[0], bench.quota, *bench.changes,
                             *bench.tasks, bench.long_messages, bench.checks, &workers);
    call_in_session();
    for (const bool is_resource : {true, false}) {
      EXPECT_EQ(is_resource ? bench.request("resources/read", R"("uri":"note://long")", caller)
                            : bench.request("prompts/get", R"("name":"long")", caller),
                "");
      bench.run_all();
      EXPECT_TRUE(channel().replies.empty()) << "the loop has not done it";
      free_worker();
      ASSERT_EQ(channel().replies.size(), 1U);
      EXPECT_THAT(channel().replies[0],
                  HasSubstr(is_resource ? R"("text":"xxx)" : R"("text":"{\"text\":\"xxx)"));
      occupy_worker();
    }
    caller.full = true;
    const std::string now = bench.request("resources/read", R"("uri":"note://long")", caller);
    caller.full = false;
    if (at_once) {
      EXPECT_THAT(now, HasSubstr("xxx")) << "who may have no more calls";
    }
  }
}

TEST_F(LongResultTest, OfAToolThatAnswersAtOnceAreTheSame) {
  call_in_session();
  EXPECT_EQ(bench.request("tools/call", R"("name":"long")", caller), "");
  EXPECT_EQ(bench.outcome.kind, Outcome::Kind::pending);
  bench.run_all();
  EXPECT_TRUE(channel().replies.empty());
  free_worker();
  ASSERT_EQ(channel().replies.size(), 1U);
  EXPECT_THAT(channel().replies.front(), HasSubstr(R"(,"n":1})"));
}

TEST_F(LongResultTest, AreAnsweredAtOnceByWhoMayHaveNoMoreCalls) {
  call_in_session();
  caller.full = true;
  EXPECT_THAT(bench.request("tools/call", R"("name":"long")", caller), HasSubstr(R"(,"n":1})"));
}

TEST_F(LongResultTest, GoWithACallThatIsOverMeanwhile) {
  std::weak_ptr<PendingRequest> left;
  for (const bool is_cancelled : {true, false}) {
    call_modern();
    left = bench.calls.back();
    call().complete({.structured_text = long_json(true)});
    bench.calls.clear();
    bench.run_all();
    EXPECT_FALSE(left.expired());
    if (is_cancelled) {
      channel().close();
    } else {
      bench.dispatcher->end_calls({kBusy, "The server is shutting down", {}});
    }
    bench.run_all();
    EXPECT_TRUE(left.expired());
    EXPECT_EQ(channel().replies.size(), is_cancelled ? 0U : 1U);
  }
  free_worker();
  EXPECT_EQ(channel().replies.size(), 1U);
}

TEST_F(PendingRequestTest, AModernClientIsToldWhichCapabilityItLacks) {
  call_modern(R"({"roots":{}})");
  ask_for_name_and_roots();
  EXPECT_EQ(heard, R"(-32021 {"requiredCapabilities":{"elicitation":{"form":{}}}})");
  call_modern();
  ask_for_name_and_roots();
  EXPECT_THAT(heard, HasSubstr("-32021"));
}

TEST_F(PendingRequestTest, AStateThatWasChangedIsRefused) {
  const std::string out = call_modern(kAsksAll, R"(,"requestState":"AAAA")");
  EXPECT_THAT(out, HasSubstr("-32602"));
  EXPECT_THAT(out, HasSubstr("requestState"));
  EXPECT_TRUE(bench.calls.empty());
}

TEST_F(PendingRequestTest, WithoutASessionALegacyClientCannotBeAsked) {
  bench.request("tools/call", R"("name":"later")", caller);
  ask_for_name_and_roots();
  EXPECT_THAT(heard, HasSubstr("-32600"));
}

TEST_F(PendingRequestTest, LogMessagesFollowTheLevelOfTheSession) {
  call_in_session();
  call().log(LoggingLevel::debug, "", R"("everything, if nothing is said")");
  bench.request("logging/setLevel", R"("level":"warning")", caller);
  call().log(LoggingLevel::notice, "", R"("unseen")");
  call().log(LoggingLevel::error, "db", R"({"rows":0})");
  bench.run_all();
  EXPECT_THAT(caller.channels[0]->written, HasSubstr("everything"));
  EXPECT_THAT(caller.channels[0]->written, Not(HasSubstr("unseen")));
  EXPECT_THAT(caller.channels[0]->written,
              HasSubstr(R"("method":"notifications/message","params":{"level":"error",)"
                        R"("logger":"db","data":{"rows":0}}})"));
}

TEST_F(PendingRequestTest, LogMessagesOfAModernRequestAreThoseItAskedFor) {
  call_modern();
  call().log(LoggingLevel::emergency, "", R"("unseen")");
  call().complete({.text = "done"});
  EXPECT_EQ(channel().written, "");
  call_modern("{}", "", R"(,"io.modelcontextprotocol/logLevel":"info")");
  call().log(LoggingLevel::debug, "", R"("unseen")");
  call().log(LoggingLevel::info, "", R"("seen")");
  bench.run_all();
  EXPECT_THAT(channel().written, Not(HasSubstr("unseen")));
  EXPECT_THAT(channel().written, HasSubstr("\"seen\""));
  EXPECT_THAT(call_modern("{}", "", R"(,"io.modelcontextprotocol/logLevel":"loud")"),
              HasSubstr("-32602"));
}

TEST_F(PendingRequestTest, HandlersKnowTheTraceOfTheRequest) {
  call_modern("{}", "",
              R"(,"traceparent":"00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-00")");
  ASSERT_NE(call().context().trace, nullptr);
  EXPECT_EQ(call().context().trace->parent_id(), "00f067aa0ba902b7");
  call_modern();
  EXPECT_EQ(call().context().trace, nullptr);
}

TEST_F(PendingRequestTest, ProgressHasANumberATotalAndAMessage) {
  call_modern("{}", "", R"(,"progressToken":7)");
  call().progress(0.5, 1, "half");
  call().progress(1, std::nullopt, "");
  bench.run_all();
  EXPECT_THAT(
      channel().written,
      HasSubstr(R"("params":{"progressToken":7,"progress":0.5,"total":1,"message":"half"}})"));
  EXPECT_THAT(channel().written, HasSubstr(R"("params":{"progressToken":7,"progress":1}})"));
}

TEST_F(PendingRequestTest, ProgressHasNoTotalThatIsNotFinite) {
  call_modern("{}", "", R"(,"progressToken":7)");
  call().progress(0.5, INFINITY, "");
  call().progress(1, NAN, "");
  bench.run_all();
  EXPECT_THAT(channel().written, HasSubstr(R"("params":{"progressToken":7,"progress":0.5}})"));
  EXPECT_THAT(channel().written, HasSubstr(R"("params":{"progressToken":7,"progress":1}})"));
}

TEST_F(PendingRequestTest, ProgressRisesHoweverItIsMixedWithText) {
  for (const bool in_session : {false, true}) {
    if (in_session) {
      call_in_session("{}", R"("progressToken":7)");
    } else {
      call_modern("{}", "", R"(,"progressToken":7)");
    }
    call().emit("a");
    call().emit("b");
    call().progress(0.5, 10, "");
    call().emit("c");
    call().progress(4, 10, "");
    call().emit("d");
    call().progress(3, 10, "");
    call().progress(std::numeric_limits<double>::quiet_NaN(), 10, "");
    call().progress(5, 10, "");
    bench.run_all();
    const std::string& written = channel().written;
    double last = 0;
    std::vector<double> whole;
    for (std::size_t at = 0; (at = written.find("\"progress\":", at)) != std::string::npos;) {
      at += 11;
      const double now = std::stod(written.substr(at));
      EXPECT_GT(now, last) << written;
      last = now;
      if (now == std::floor(now)) whole.push_back(now);
    }
    EXPECT_THAT(whole, ::testing::ElementsAre(1, 2, 4, 5)) << "what rises is sent as it is";
  }
}

TEST_F(PendingRequestTest, WhatIsLongOfARequestIsOnItsClientsMemory) {
  const std::size_t before = bench.policy.budget.used();
  const std::string text(std::size_t{4} << 20U, 'x');
  const std::string parameters = R"("name":"later","arguments":{"text":")" + text + R"("})";
  bench.request("tools/call", R"("name":"later","arguments":{"text":"short"})", caller);
  EXPECT_EQ(bench.policy.budget.used(), before);
  std::string refused;
  for (int i = 0; i < 20 && refused.empty(); ++i) {
    refused = bench.request("tools/call", parameters, caller);
  }
  EXPECT_EQ(error_code(refused), kLimitReached) << refused.substr(0, 300);
  EXPECT_THAT(refused, HasSubstr("streams.max_total_bytes"));
  const std::size_t held = bench.policy.budget.used();
  EXPECT_GT(held, before + (std::size_t{24} << 20U));
  EXPECT_LT(held, bench.policy.budget.limit() / 2 + 8192);
  // Other clients still find memory, and calls that are over release theirs.
  RecordingCaller bob("bob");
  EXPECT_EQ(bench.request("tools/call", parameters, bob), "");
  for (const auto& each : bench.calls) each->complete({.text = "done"});
  EXPECT_EQ(bench.policy.budget.used(), before);
  EXPECT_EQ(bench.request("tools/call", parameters, caller), "");
  call().cancel();
  EXPECT_EQ(bench.policy.budget.used(), before);
}

TEST_F(PendingRequestTest, ManyShortValuesTakeMoreMemoryThanTheirText) {
  const std::size_t before = bench.policy.budget.used();
  std::string list;
  for (int i = 0; i < 10'000; ++i) list.append("[],");
  list.back() = ']';
  bench.request("tools/call", R"("name":"later","arguments":{},"_meta":{"z":[)" + list + "}",
                caller);
  EXPECT_GE(bench.policy.budget.used(), before + list.size() + 10'000 * sizeof(json::value));
  call().cancel();
  EXPECT_EQ(bench.policy.budget.used(), before);
}

TEST_F(PendingRequestTest, LongAnswersAreOnTheMemoryOfTheirClientUntilTheCallIsOver) {
  call_in_session(R"({"elicitation":{}})");
  const std::size_t before = bench.policy.budget.used();
  const std::string text(std::size_t{1} << 20U, 'x');
  const auto ask = [&] {
    std::string outcome;
    call().ask({{"name", "elicitation/create", parse_json(kAsksForName)->get_object()}},
               [&](const Result<std::vector<json::value>>& answers) {
                 outcome = answers ? "answered" : answers.error().message;
               });
    bench.run_all();
    respond(asked_id("elicitation/create"),
            R"("result":{"action":"accept","content":{"name":")" + text + R"("}})");
    return outcome;
  };
  EXPECT_EQ(ask(), "answered");
  EXPECT_GE(bench.policy.budget.used(), before + text.size());
  EXPECT_EQ(ask(), "answered");
  EXPECT_GE(bench.policy.budget.used(), before + 2 * text.size());
  EXPECT_LT(bench.policy.budget.used(), before + 3 * text.size());
  // Others hold all the rest of the memory.
  const std::size_t rest = bench.policy.budget.limit() - bench.policy.budget.used();
  ASSERT_TRUE(bench.policy.budget.try_acquire(rest));
  EXPECT_THAT(ask(), HasSubstr("streams.max_total_bytes"));
  bench.policy.budget.release(rest);
  call().complete({.text = "done"});
  EXPECT_LT(bench.policy.budget.used(), before + 4096);
}

TEST_F(PendingRequestTest, LongQuestionsAreOnTheMemoryOfTheirClient) {
  call_in_session(R"({"elicitation":{}})");
  const std::size_t before = bench.policy.budget.used();
  json::object params = parse_json(kAsksForName)->get_object();
  params["message"] = std::string(std::size_t{4} << 20U, 'x');
  std::optional<Error> refused;
  std::vector<PendingRequest::Withdraw> asked;
  for (int i = 0; i < 20 && !refused; ++i) {
    asked.push_back(call().ask({{"name", "elicitation/create", params}},
                               [&](const Result<std::vector<json::value>>& answers) {
                                 if (!answers) refused = answers.error();
                               }));
  }
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->code, kLimitReached);
  EXPECT_THAT(refused->message, HasSubstr("streams.max_total_bytes"));
  EXPECT_GT(bench.policy.budget.used(), before + (std::size_t{24} << 20U));
  EXPECT_FALSE(call().over()) << "its handler decides what becomes of it";
  for (PendingRequest::Withdraw& withdraw : asked) {
    if (withdraw) withdraw();
  }
  EXPECT_LT(bench.policy.budget.used(), before + 4096);
}

}  // namespace
}  // namespace sluice
