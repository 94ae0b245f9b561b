// Answers in the session of another client, which are read on from where that has left them.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "client/link/http_link_test_support.hpp"
#include "client/session/contract/stream_position.hpp"

namespace sluice {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

using test::HttpLinkTest;
using test::kEvents;
using test::kJson;

/// A call whose positions are kept.
class TakenUpAnswerTest : public HttpLinkTest {
 protected:
  RequestCallbacks callbacks() {
    return {.on_progress =
                [this](const json::object& params) {
                  said.push_back("progress " + to_json(params.at("progress")));
                },
            .on_position =
                [this](std::string position) {
                  positions.push_back(std::move(position));
                  said.push_back("position");
                },
            .on_answer =
                [this](Result<json::object> outcome) {
                  said.push_back(outcome ? to_json(*outcome)
                                         : std::to_string(outcome.error().code) + " " +
                                               outcome.error().message);
                }};
  }
  /// Leaves a call behind its first progress.
  void leave_call() {
    open_legacy();
    const auto number = session->begin("tools/call", {{"name", "tool"}}, {}, callbacks());
    Asked post = next();
    post.reply->start(200, kEvents);
    post.reply->write(std::string_view(event("e1", "") + event("e2", progress(2, 1))));
    post.reply->flush();
    ASSERT_TRUE(hears(3));
    EXPECT_THAT(said, ElementsAre("position", "progress 1", "position"));
    said.clear();
    session->leave(number);
  }
  /// Takes it up, and returns the request for that.
  Asked take_up() {
    const auto from = parse_stream_position(positions.back());
    EXPECT_TRUE(from);
    taken_up = session->take_up(*from, {}, callbacks());
    Asked get = next();
    EXPECT_EQ(get.method, "GET");
    EXPECT_EQ(get.session, "s-1");
    EXPECT_EQ(get.version, "2025-11-25");
    EXPECT_EQ(get.last_event, "e2");
    return get;
  }
  void TearDown() override {
    taken_up = nullptr;
    HttpLinkTest::TearDown();
  }

  std::vector<std::string> positions;
  std::shared_ptr<ClientSession> taken_up;
};

TEST_F(TakenUpAnswerTest, ComesFromWhereItWasLeft) {
  leave_call();
  take_up().reply->reply(409, {}, {});  // the server has not noticed that the first reader is gone
  Asked get = next();
  EXPECT_EQ(get.last_event, "e2");
  get.reply->start(200, kEvents);
  get.reply->write(
      std::string_view(event("e3", progress(2, 2)) + event("e4", answer(2, R"({"n":1})"))));
  get.reply->finish();
  ASSERT_TRUE(hears(3));
  EXPECT_THAT(said, ElementsAre("progress 2", "position", R"({"n":1})"));
  // Neither ends the session, and nothing is cancelled.
  taken_up = nullptr;
  session = nullptr;
  settle();
  EXPECT_THAT(asked, IsEmpty());
}

TEST_F(TakenUpAnswerTest, FollowsTheOutputSchemaOfItsTool) {
  leave_call();
  session->begin("tools/list", {}, {}, callbacks());
  next().reply->reply(200, kJson, answer(3, R"({"tools":[{"name":"tool","inputSchema":{},
      "outputSchema":{"type":"object","properties":{"n":{"type":"integer"}}}}]})"));
  ASSERT_TRUE(hears(1));
  said.clear();
  Asked get = take_up();
  get.reply->start(200, kEvents);
  get.reply->write(std::string_view(
      event("e3", answer(2, R"({"content":[],"structuredContent":{"n":"none"}})"))));
  get.reply->finish();
  ASSERT_TRUE(hears(1));
  EXPECT_THAT(said, ElementsAre(AllOf(HasSubstr("-32602"), HasSubstr("breaks its outputSchema"))));
}

TEST_F(TakenUpAnswerTest, IsCancelledInItsSession) {
  leave_call();
  Asked get = take_up();
  taken_up->cancel(ClientSession::kTakenUp);
  Asked cancelled = next();
  EXPECT_EQ(cancelled.session, "s-1");
  EXPECT_THAT(cancelled.body, HasSubstr("notifications/cancelled"));
  EXPECT_THAT(cancelled.body, HasSubstr(R"("requestId":2)"));
}

TEST_F(TakenUpAnswerTest, IsNotKnownToAServerThatHasForgottenTheSession) {
  leave_call();
  take_up().reply->reply(404, kJson, R"({"jsonrpc":"2.0","id":null,"error":{"code":-32001}})");
  ASSERT_TRUE(hears(1));
  EXPECT_THAT(said, ElementsAre("502 The stream broke off and cannot be resumed: HTTP 404"));
  settle();
  EXPECT_THAT(asked, IsEmpty()) << "no other session is begun for it";
}

TEST_F(TakenUpAnswerTest, HasAnUnknownEndIfTheServerRefusesToGoOn) {
  constexpr std::string_view kUnknown =
      R"({"jsonrpc":"2.0","id":null,"error":{"code":-32001,"message":"No such event"}})";
  leave_call();
  Asked get = take_up();
  get.reply->start(200, kEvents);
  get.reply->write(std::string_view(event("", kUnknown)));
  get.reply->finish();
  next().reply->reply(404, {}, {});  // the answer might have followed
  ASSERT_TRUE(hears(1));
  EXPECT_THAT(said, ElementsAre("502 The stream broke off and cannot be resumed: No such event"));
  said.clear();
  take_up().reply->reply(200, kJson, std::string(kUnknown));
  ASSERT_TRUE(hears(1));
  EXPECT_THAT(said, ElementsAre("502 The stream broke off and cannot be resumed: No such event"));
  said.clear();
  take_up().reply->reply(401, {}, {});
  ASSERT_TRUE(hears(1));
  EXPECT_THAT(said, ElementsAre(HasSubstr("502 The stream broke off and cannot be resumed")));
}

TEST_F(TakenUpAnswerTest, IsLeftBehindAllThatAnEventHasSaid) {
  open_legacy(false, "2025-03-26");
  session->begin("tools/call", {{"name", "tool"}}, {}, callbacks());
  Asked post = next();
  post.reply->start(200, kEvents);
  post.reply->write(std::string_view(
      event("e1", "[" + progress(2, 1) + "," + progress(2, 2) + "]") +
      event("e2", R"({"jsonrpc":"2.0","method":"notifications/message","params":{}})") +
      event(" e3", progress(2, 3)) + "id: e4\n\n"));
  post.reply->flush();
  ASSERT_TRUE(hears(7));
  EXPECT_THAT(said, ElementsAre("progress 1", "progress 2", "position", "notifications/message",
                                "position", "progress 3", "position"));
  std::vector<std::string> events;
  for (const std::string& each : positions) {
    events.push_back(parse_stream_position(each).value().last_event);
  }
  EXPECT_THAT(events, ElementsAre("e1", "e2", "e4"));
}

TEST_F(TakenUpAnswerTest, IsLeftBeforeAnEventWithoutAnId) {
  open_legacy();
  session->begin("tools/call", {{"name", "tool"}}, {}, callbacks());
  Asked post = next();
  post.reply->start(200, kEvents);
  post.reply->write(std::string_view("id: e1\n\n" + event("", progress(2, 1))));
  post.reply->flush();
  ASSERT_TRUE(hears(2));
  EXPECT_THAT(said, ElementsAre("position", "progress 1"));
}

TEST_F(TakenUpAnswerTest, FailsAsTheServerHasSaidFirst) {
  open_legacy();
  session->begin("tools/call", {{"name", "tool"}}, {}, callbacks());
  Asked post = next();
  post.reply->start(200, kEvents);
  post.reply->write(std::string_view(
      event("e1", R"({"jsonrpc":"2.0","id":null,"error":{"code":-32602,"message":"Wrong"}})")));
  post.reply->finish();
  next().reply->reply(401, {}, {});
  ASSERT_TRUE(hears(2));
  EXPECT_THAT(said, ElementsAre("position", "-32602 Wrong"));
}

TEST_F(TakenUpAnswerTest, IsNotAskedForWithWhatIsNoPosition) {
  leave_call();
  EXPECT_FALSE(parse_stream_position("{}"));
  EXPECT_FALSE(parse_stream_position(
      R"({"revision":"2026-07-28","session":"s","request":"2","event":"e"})"));
  StreamPosition from = parse_stream_position(positions.back()).value();
  from.server += "other";
  EXPECT_EQ(session->take_up(from, {}, {}), nullptr);
  from.server = parse_stream_position(positions.back()).value().server;
  from.last_event = "e\r\nX: y";
  EXPECT_EQ(session->take_up(from, {}, {}), nullptr);
  from.last_event = "e";
  from.session = "a b";
  EXPECT_EQ(session->take_up(from, {}, {}), nullptr);
  from.session = "s";
  from.request = "\"two\"";
  EXPECT_EQ(session->take_up(from, {}, {}), nullptr);
}

}  // namespace
}  // namespace sluice
