#include <algorithm>
#include <chrono>
#include <cstddef>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "client/link/http_link_test_support.hpp"
#include "client/link/last_words.hpp"

namespace sluice {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

using test::HttpLinkTest;
using test::kEvents;
using test::kJson;

TEST_F(HttpLinkTest, NothingOvertakesTheNotificationThatTheClientIsReady) {
  open({.revision = "2025-11-25"});
  next().reply->reply(200, kJson,
                      answer(1, R"({"protocolVersion":"2025-11-25","capabilities":{}})"));
  ASSERT_TRUE(until([this] { return connected.has_value(); }));
  call();
  const ClientSession::Number dropped = call("dropped");
  Asked initialized = next();
  EXPECT_THAT(initialized.body, HasSubstr("notifications/initialized"));
  settle();
  EXPECT_THAT(asked, IsEmpty());
  session->cancel(dropped);
  initialized.reply->reply(202, {}, {});
  Asked first = next();
  Asked second = next();
  EXPECT_EQ(first.method, "GET");
  EXPECT_THAT(second.body, HasSubstr(R"("name":"tool")"));
  settle();
  EXPECT_THAT(asked, IsEmpty());
}

TEST_F(HttpLinkTest, AForgottenSessionIsBegunAnew) {
  open_legacy();
  call();
  next().reply->reply(404, kJson, R"({"jsonrpc":"2.0","error":{"code":-32600,"message":"gone"}})");
  Asked initialize = next();
  EXPECT_THAT(initialize.body, HasSubstr(R"("method":"initialize")"));
  EXPECT_EQ(initialize.session, "");
  const HeaderField id{"Mcp-Session-Id", "s-2"};
  initialize.reply->reply(200, kJson,
                          answer(3, R"({"protocolVersion":"2025-11-25","capabilities":{}})"),
                          std::span(&id, 1));
  Asked initialized = next();
  EXPECT_THAT(initialized.body, HasSubstr("notifications/initialized"));
  initialized.reply->reply(202, {}, {});
  Asked stream = next();
  EXPECT_EQ(stream.method, "GET");
  Asked again = next();
  EXPECT_THAT(again.body, HasSubstr("tools/call"));
  for (const Asked* each : {&initialized, &stream, &again}) EXPECT_EQ(each->session, "s-2");
  again.reply->reply(200, kJson, answer(4, "{}"));
  ASSERT_TRUE(hears(1));
  EXPECT_THAT(said, ElementsAre("{}"));
}

TEST_F(HttpLinkTest, ServersSayInManyWaysThatTheSessionIsForgotten) {
  struct Said {
    int status;
    std::string body;
  };
  const auto error = [](std::string_view message, std::string_view id) {
    return R"({"jsonrpc":"2.0","error":{"code":-32000,"message":")" + std::string(message) +
           R"("},"id":)" + std::string(id) + "}";
  };
  open_legacy();
  int last_id = 1;
  // The official TypeScript SDK and its examples; what was copied from them; the Rust SDK.
  for (const Said& said_so :
       {Said{400, error("Bad Request: Server not initialized", "null")},
        Said{400, error("Bad Request: No valid session ID provided", "5")},
        Said{400, error("Bad Request: Session not found or expired", "8")},
        Said{404, error("Session not found or expired", "11")},
        Said{400, R"({"error":"Invalid or missing session ID"})"},
        Said{400, R"({"detail":"Invalid session"})"}, Said{400, "Unknown Mcp-Session-Id"},
        Said{401, "Unauthorized: Session not found"}, Said{410, "Gone"},
        Said{404, error("Not Found: Session not found", "26")}}) {
    call();
    next().reply->reply(said_so.status, kJson, said_so.body);
    Asked initialize = next();
    EXPECT_THAT(initialize.body, HasSubstr(R"("method":"initialize")")) << said_so.body;
    const HeaderField id{"Mcp-Session-Id", "s-2"};
    initialize.reply->reply(
        200, kJson, answer(last_id + 2, R"({"protocolVersion":"2025-11-25","capabilities":{}})"),
        std::span(&id, 1));
    next().reply->reply(202, {}, {});
    next().reply->reply(405, {}, {});
    Asked again = next();
    EXPECT_THAT(again.body, HasSubstr("tools/call"));
    last_id += 3;
    again.reply->reply(200, kJson, answer(last_id, "{}"));
  }
  ASSERT_TRUE(hears(10));
  EXPECT_THAT(said, Each(std::string("{}")));
}

TEST_F(HttpLinkTest, ErrorsOfToolsAreNoForgottenSession) {
  struct Said {
    int status;
    std::string body;
  };
  open_legacy();
  for (
      const Said& said_so :
      {Said{400,
            R"({"jsonrpc":"2.0","error":{"code":-32000,"message":"Bad Request: odd"},"id":null})"},
       Said{400,
            R"({"jsonrpc":"2.0","error":{"code":-32602,"message":"no session id given"},"id":3})"},
       Said{
           400,
           R"({"jsonrpc":"2.0","error":{"code":-32000,"message":"browser not initialized"},"id":null})"},
       Said{400,
            R"({"jsonrpc":"2.0","error":{"code":-32000,"message":"Session not found"},"id":5})"},
       Said{404,
            R"({"jsonrpc":"2.0","error":{"code":-32601,"message":"Session not found"},"id":6})"},
       Said{400, R"({"error":"Checkout session expired"})"}, Said{400, "Bad Request"},
       Said{401, "Session not found"},
       Said{401, "Unauthorized: session expired, please log in to the shop"}}) {
    call();
    next().reply->reply(said_so.status, kJson, said_so.body);
  }
  ASSERT_TRUE(hears(9));
  EXPECT_THAT(asked, IsEmpty());
}

TEST_F(HttpLinkTest, ALateRefusalByAForgottenSessionDoesNotEndTheNewOne) {
  open_legacy();
  call();
  call();
  Asked first = next();
  Asked second = next();
  first.reply->reply(404, {}, {});
  const HeaderField id{"Mcp-Session-Id", "s-2"};
  next().reply->reply(200, kJson, answer(4, R"({"protocolVersion":"2025-11-25"})"),
                      std::span(&id, 1));
  next().reply->reply(202, {}, {});
  next().reply->reply(405, {}, {});
  next().reply->reply(200, kJson, answer(5, "{}"));
  ASSERT_TRUE(hears(1));
  second.reply->reply(404, {}, {});
  Asked again = next();
  EXPECT_THAT(again.body, HasSubstr("tools/call"));
  EXPECT_EQ(again.session, "s-2");
  again.reply->reply(200, kJson, answer(6, "{}"));
  ASSERT_TRUE(hears(2));
  EXPECT_THAT(said, ElementsAre("{}", "{}"));
}

TEST_F(HttpLinkTest, AnErrorWithTheIdOfTheRequestIsItsAnswerAlsoWith404) {
  open_legacy();
  call();
  next().reply->reply(
      404, kJson, R"({"jsonrpc":"2.0","id":2,"error":{"code":-32002,"message":"no such note"}})");
  ASSERT_TRUE(hears(1));
  EXPECT_THAT(said, ElementsAre("-32002 no such note"));
  EXPECT_THAT(asked, IsEmpty());
}

TEST_F(HttpLinkTest, TheStreamOfAForgottenSessionIsNotRead) {
  open_legacy(true);
  bool has_gone = false;
  standalone.reply->on_close([&] { has_gone = true; });
  standalone.reply->start(200, kEvents);
  standalone.reply->flush();
  call();
  next().reply->reply(404, {}, {});
  next();
  EXPECT_TRUE(until([&] { return has_gone; }));
}

TEST_F(HttpLinkTest, AStreamOfAForgottenSessionIsNotResumedInTheNewOne) {
  open_legacy();
  call("first");
  Asked first = next();
  first.reply->start(200, kEvents);
  first.reply->write(std::string_view(event("e1", "")));
  first.reply->flush();
  call("second");
  next().reply->reply(404, {}, {});
  Asked initialize = next();
  const HeaderField id{"Mcp-Session-Id", "s-2"};
  initialize.reply->reply(200, kJson, answer(4, R"({"protocolVersion":"2025-11-25"})"),
                          std::span(&id, 1));
  next().reply->reply(202, {}, {});
  next().reply->reply(405, {}, {});
  next().reply->reply(200, kJson, answer(5, "{}"));
  ASSERT_TRUE(hears(1));
  first.reply->abort();
  ASSERT_TRUE(hears(2));
  EXPECT_THAT(said, ElementsAre("{}", HasSubstr("the session of the stream is over")));
  settle();
  EXPECT_THAT(asked, IsEmpty());
}

TEST_F(HttpLinkTest, AnswersToAForgottenSessionDoNotReachTheNewOne) {
  open_legacy(true);
  standalone.reply->start(200, kEvents);
  for (std::size_t i = 0; i <= HttpLink::kMaxAnswers; ++i) {
    standalone.reply->write(std::string_view(
        event("", R"({"jsonrpc":"2.0","method":"ping","id":)" + std::to_string(i) + "}")));
  }
  standalone.reply->flush();
  ASSERT_TRUE(until([this] { return asked.size() == HttpLink::kMaxAnswers; }));
  const auto last = [this] {
    EXPECT_TRUE(until([this] { return asked.size() > HttpLink::kMaxAnswers; }));
    Asked out = std::move(asked.back());
    asked.pop_back();
    return out;
  };
  call();
  last().reply->reply(404, {}, {});
  const HeaderField id{"Mcp-Session-Id", "s-2"};
  last().reply->reply(200, kJson, answer(3, R"({"protocolVersion":"2025-11-25"})"),
                      std::span(&id, 1));
  last().reply->reply(202, {}, {});
  last().reply->reply(405, {}, {});
  last().reply->reply(200, kJson, answer(4, "{}"));
  ASSERT_TRUE(hears(1));
  for (Asked& each : std::exchange(asked, {})) each.reply->reply(202, {}, {});
  settle();
  EXPECT_THAT(asked, IsEmpty());
}

TEST_F(HttpLinkTest, ANotificationThatAForgottenSessionDoesNotAnswerHoldsUpNoneOfTheNewOne) {
  open_legacy();
  ASSERT_TRUE(session->notify("notifications/old", {}));
  const Asked unanswered = next();
  call();
  next().reply->reply(404, {}, {});
  const HeaderField id{"Mcp-Session-Id", "s-2"};
  next().reply->reply(200, kJson, answer(3, R"({"protocolVersion":"2025-11-25"})"),
                      std::span(&id, 1));
  next().reply->reply(202, {}, {});
  next().reply->reply(405, {}, {});
  next().reply->reply(200, kJson, answer(4, "{}"));
  ASSERT_TRUE(hears(1));
  EXPECT_TRUE(unanswered.reply->is_open());
  ASSERT_TRUE(session->notify("notifications/new", {}));
  const Asked later = next();
  EXPECT_THAT(later.body, HasSubstr("notifications/new"));
  EXPECT_EQ(later.session, "s-2");
}

TEST_F(HttpLinkTest, RepliesToInitializedThatDoNotEndAreNotKept) {
  constexpr std::size_t kMany = 2 * HttpLink::kMaxTaken;
  const auto id_of = [](const Asked& request) {
    return parse_json(request.body).value().at("id").to_number<int>();
  };
  open_legacy();
  std::vector<Asked> unended;
  for (std::size_t i = 0; i < kMany; ++i) {
    call();
    next().reply->reply(404, {}, {});
    const std::string name = "s-" + std::to_string(i + 2);
    const HeaderField id{"Mcp-Session-Id", name};
    Asked initialize = next();
    initialize.reply->reply(200, kJson,
                            answer(id_of(initialize), R"({"protocolVersion":"2025-11-25"})"),
                            std::span(&id, 1));
    unended.push_back(next());
    EXPECT_THAT(unended.back().body, HasSubstr("notifications/initialized"));
    unended.back().reply->start(202, {});
    unended.back().reply->flush();
    next().reply->reply(405, {}, {});
    Asked again = next();
    again.reply->reply(200, kJson, answer(id_of(again), "{}"));
    ASSERT_TRUE(hears(i + 1));
  }
  EXPECT_LE(std::ranges::count_if(unended, [](const Asked& each) { return each.reply->is_open(); }),
            static_cast<long>(HttpLink::kMaxTaken));
  const auto began = std::chrono::steady_clock::now();
  session = nullptr;
  EXPECT_EQ(next().method, "DELETE");
  EXPECT_LT(std::chrono::steady_clock::now() - began, LastWords::kLimit) << "it waits for none";
}

TEST_F(HttpLinkTest, ALegacySessionIsEndedWithItsLink) {
  open_legacy();
  session = nullptr;
  Asked farewell = next();
  EXPECT_EQ(farewell.method, "DELETE");
  EXPECT_EQ(farewell.session, "s-1");
  const auto began = std::chrono::steady_clock::now();
  farewell.reply->reply(200, {}, {});
  EXPECT_TRUE(until([this] { return server->stats().connections == 0; }));
  EXPECT_LT(std::chrono::steady_clock::now() - began, HttpLink::kFarewell) << "they go with it";
}

}  // namespace
}  // namespace sluice
