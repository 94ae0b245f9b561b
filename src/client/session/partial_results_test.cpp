// Parts of a tool's result that come before it (draft SEP-2998).

#include <chrono>
#include <cstdint>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>
#include <string_view>

#include "client/session/client_session.hpp"
#include "client/session/client_session_test_support.hpp"
#include "json/members.hpp"

namespace sluice {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class PartialResultsTest : public test::ClientSessionTest {
 protected:
  ClientSession::Number call_for_parts(const RequestOptions& with = {}) {
    return session->begin(
        "tools/call", {{"name", "tool"}}, with,
        {.on_partial_result =
             [this](const json::object& params, std::uint64_t missing) {
               said.push_back("part " + to_json(params.at("seq")) +
                              (missing == 0 ? "" : ", missing " + std::to_string(missing)));
             },
         .on_answer =
             [this](Result<json::object> answer) {
               said.push_back(answer ? to_json(*answer) : answer.error().message);
             }});
  }
  static std::string part(std::string_view token, std::string_view members) {
    return R"({"jsonrpc":"2.0","method":"notifications/tools/partial_result","params":)"
           R"({"partialResultToken":)" +
           std::string(token) + "," + std::string(members) + "}}";
  }
  void receive_part(std::string_view token, std::string_view members) {
    receive(part(token, members));
  }
};

TEST_F(PartialResultsTest, ACallAsksForThemByATokenAndACapability) {
  open_modern();
  call_for_parts();
  EXPECT_THAT(take(), AllOf(HasSubstr(R"("progressToken":2,"partialResultToken":"2")"),
                            HasSubstr(R"("roots":{},"partialResults":{}})")));
  call();
  EXPECT_THAT(take(), AllOf(Not(HasSubstr("partialResult"))));
}

TEST_F(PartialResultsTest, BeforeTheModernEraTheTokenAsks) {
  open_legacy();
  call_for_parts();
  EXPECT_THAT(take(), HasSubstr(R"("_meta":{"progressToken":2,"partialResultToken":"2"}})"));
  receive_part(R"("2")", R"("seq":0)");
  EXPECT_THAT(said, ElementsAre("part 0"));
}

TEST_F(PartialResultsTest, GapsAreCountedAndWhatWasSeenIsDropped) {
  open_modern();
  call_for_parts();
  for (const char* const seq : {"0", "1", "4", "4", "2", "0", "5", "7.0"}) {
    receive_part(R"("2")",
                 R"("content":[],"structuredContent":{},"final":false,"seq":)" + std::string(seq));
  }
  receive(R"({"jsonrpc":"2.0","id":2,"result":{"a":1}})");
  receive_part(R"("2")", R"("seq":8)");
  EXPECT_THAT(said, ElementsAre("part 0", "part 1", "part 4, missing 2", "part 5",
                                "part 7, missing 1", R"({"a":1})"));
  EXPECT_EQ(loop.timers(), 0U);
}

TEST_F(PartialResultsTest, TheyBelongToCallsThatHaveAskedForThem) {
  open_modern();
  call_for_parts();
  call();
  call_for_parts();
  receive_part(R"("4")", R"("seq":0)");
  EXPECT_THAT(said, ElementsAre("part 0")) << "each call counts by itself";
  for (const char* const token :
       {R"("3")", R"("1")", R"("77")", R"("02")", R"("2 ")", R"("")", R"("prt")", "2", "null"}) {
    receive_part(token, R"("seq":1)");
    wire.owner->on_reply("2", part(token, R"("seq":1)"));
  }
  EXPECT_THAT(said, ElementsAre("part 0"));
  EXPECT_THAT(notified, IsEmpty()) << "nobody else hears of them";
  wire.owner->on_reply("2", part(R"("2")", R"("seq":0)"));
  EXPECT_THAT(said, ElementsAre("part 0", "part 0"));
}

TEST_F(PartialResultsTest, WhatIsNotWhatTheDraftSaysIsIgnored) {
  open_modern();
  call_for_parts();
  for (const char* const members :
       {R"("seq":-1)", R"("seq":"0")", R"("seq":0.5)", R"("seq":null)", R"("final":true)",
        R"("seq":9007199254740992)", R"("seq":18446744073709551615)", R"("seq":1e300)",
        R"("seq":0,"content":{})", R"("seq":0,"content":null)", R"("seq":0,"structuredContent":[])",
        R"("seq":0,"final":"no")"}) {
    receive_part(R"("2")", members);
  }
  receive(R"({"jsonrpc":"2.0","method":"notifications/tools/partial_result"})");
  EXPECT_THAT(said, IsEmpty());
  EXPECT_THAT(notified, IsEmpty());
  receive_part(R"("2")", R"("seq":9007199254740991)");
  EXPECT_THAT(said, ElementsAre("part 9007199254740991, missing 9007199254740991"));
}

TEST_F(PartialResultsTest, EachRoundHasItsOwnToken) {
  open_modern();
  call_for_parts();
  receive_part(R"("2")", R"("seq":0)");
  receive(R"({"jsonrpc":"2.0","id":2,"result":{"resultType":"input_required",)"
          R"("requestState":"s"}})");
  receive_part(R"("2")", R"("seq":1)");
  receive_part(R"("3")", R"("seq":0)");
  EXPECT_THAT(said, ElementsAre("part 0", "part 0"));
}

TEST_F(PartialResultsTest, ARoundThatIsSentAgainGoesOnWithThem) {
  open_modern();
  session->begin("tools/list", {}, {}, {});
  reply(R"("result":{"tools":[{"name":"tool","annotations":{"readOnlyHint":true}}]})");
  session->begin(
      "tools/call", {{"name", "tool"}}, {},
      {.on_partial_result =
           [this](const json::object& params, std::uint64_t missing) {
             said.push_back(to_json(params.at("seq")) + ", missing " + std::to_string(missing));
           },
       .on_reissued = [] {}});
  receive_part(R"("3")", R"("seq":0)");
  receive_part(R"("3")", R"("seq":1)");
  wire.owner->on_broken_off("3", {502, "The stream ended before the answer came", {}});
  loop.advance(1s);
  for (const char* const seq : {"0", "1", "2"}) {
    receive_part(R"("4")", R"("seq":)" + std::string(seq));
  }
  EXPECT_THAT(said, ElementsAre("0, missing 0", "1, missing 0", "2, missing 0"));
}

TEST_F(PartialResultsTest, TheyPutOffTheIdleTimeout) {
  open_modern();
  call_for_parts({.idle_timeout = 10s});
  for (const char* const seq : {"0", "1"}) {
    loop.advance(9s);
    receive_part(R"("2")", R"("seq":)" + std::string(seq));
  }
  loop.advance(9s);
  receive_part(R"("2")", R"("seq":1)");
  loop.advance(1s);
  EXPECT_THAT(said, ElementsAre("part 0", "part 1", HasSubstr("silent too long")));
}

TEST_F(PartialResultsTest, ACallbackMayEndItsCall) {
  open_modern();
  ClientSession::Number number = 0;
  number = session->begin("tools/call", {{"name", "tool"}}, {},
                          {.on_partial_result = [&](const json::object&, std::uint64_t) {
                            said.emplace_back("part");
                            session->cancel(number);
                          }});
  receive_part(R"("2")", R"("seq":0)");
  receive_part(R"("2")", R"("seq":1)");
  EXPECT_THAT(said, ElementsAre("part"));
  EXPECT_EQ(session->unanswered(), 0U);
}

}  // namespace
}  // namespace sluice
