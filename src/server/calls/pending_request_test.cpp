#include "server/calls/pending_request.hpp"

#include "server/calls/pending_request_test_support.hpp"

namespace sluice {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

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

}  // namespace
}  // namespace sluice
