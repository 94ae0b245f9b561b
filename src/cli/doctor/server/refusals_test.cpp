// What is made of a server that refuses requests which are as they should be, over canned replies.

#include <algorithm>
#include <chrono>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/doctor/server/examination_test_support.hpp"
#include "net/http/status_codes.hpp"

namespace sluice {
namespace {

using Status = Check::Status;
using test::error_reply;
using test::initialize_reply;
using test::json_reply;
using test::result_reply;
using test::ServerChecksTest;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

Reply limit_reply(std::optional<Duration> retry_after) {
  return {.status = kTooManyRequests, .body = "Too many", .retry_after = retry_after};
}

TEST_F(ServerChecksTest, AShortLimitOfRequestsIsWaitedFor) {
  int asked = 0;
  server.reply = [&asked](const Ask&) {
    return ++asked == 1 ? limit_reply(std::chrono::seconds(2)) : result_reply();
  };
  EXPECT_EQ(verdict(legacy_http_checks(), "ping").status, Status::ok);
  EXPECT_EQ(asked, 2);
  EXPECT_EQ(server.paused, std::chrono::seconds(2));
}

TEST_F(ServerChecksTest, ALongLimitOfRequestsIsNoFault) {
  for (const auto& retry_after :
       std::vector<std::optional<Duration>>{std::chrono::seconds(3), std::nullopt}) {
    std::vector<std::string> asked;
    server.reply = [&](const Ask& ask) {
      asked.push_back(ask.method);
      return ask.revision.empty() ? limit_reply(retry_after) : initialize_reply("session");
    };
    Examination fresh(server, examination.server(), true);
    EXPECT_TRUE(fresh.ask(fresh.initialize("2025-11-25")));
    for (int count = 0; count < 2; ++count) {
      const Result<Reply> none = fresh.ask(fresh.modern("server/discover"));
      ASSERT_FALSE(none);
      EXPECT_EQ(none.error().code, kLimitReached);
      EXPECT_EQ(none.error().message, kLimitsRequests);
    }
    EXPECT_FALSE(fresh.gone());
    fresh.end_sessions();
    EXPECT_THAT(asked, ElementsAre("POST", "POST", "DELETE")) << "nothing else is asked";
  }
}

TEST_F(ServerChecksTest, ALimitOfRequestsMayBeAMessageOfMcp) {
  server.reply = [](const Ask&) { return error_reply(kTooManyRequests, -32000); };
  const Verdict found = verdict(legacy_http_checks(), "ping");
  EXPECT_EQ(found.status, Status::note);
  EXPECT_EQ(found.finding, kLimitsRequests);
}

TEST_F(ServerChecksTest, ARefusalOfWhatIsWrongIsAnAnswerToWhoMayAsk) {
  server.reply = [](const Ask& ask) {
    const bool is_right = !field_in(ask.headers, "Mcp-Session-Id").empty();
    return is_right ? result_reply() : Reply{.status = kUnauthorized};
  };
  EXPECT_EQ(verdict(session_checks(), "no session").status, Status::note) << "nobody may yet";
  Examination fresh(server, examination.server(), true);
  fresh.legacy_eras = examination.legacy_eras;
  EXPECT_TRUE(fresh.ask(fresh.legacy(*fresh.legacy_era(), "ping")));
  const auto check =
      std::ranges::find(session_checks(), std::string_view("no session"), &ServerCheck::subject);
  const Verdict found = check->examine(fresh).value();
  EXPECT_EQ(found.status, Status::warn);
  EXPECT_THAT(found.finding, HasSubstr("HTTP 401 to a request without a session"));
  EXPECT_FALSE(fresh.refusal());
}

TEST_F(ServerChecksTest, AServerThatIsSilentToPingAloneHasNotGone) {
  examination.legacy_eras.front().result = {{"capabilities", {{"prompts", json::object()}}}};
  std::string last;
  server.reply = [&last](const Ask& ask) {
    last = ask.body;
    if (ask.body.contains("prompts/list")) return Result<Reply>(result_reply());
    return Result<Reply>(fail(kGatewayTimeout, "no reply"));
  };
  EXPECT_TRUE(examination.ask(examination.legacy(*examination.legacy_era(), "prompts/list")));
  EXPECT_EQ(verdict(legacy_http_checks(), "ping").status, Status::fail);
  EXPECT_THAT(last, HasSubstr("prompts/list"));
  EXPECT_FALSE(examination.gone());
}

TEST_F(ServerChecksTest, AServerThatForbidsAllIsToldFromNone) {
  examination.is_modern = false;
  examination.discover = Reply{.status = kForbidden};
  examination.legacy_eras = {
      {.asked = &newest_revision(Era::legacy), .reply = error_reply(kForbidden, -32000)}};
  const Verdict found = verdict(era_checks(), "revisions");
  EXPECT_EQ(found.status, Status::note);
  EXPECT_THAT(found.finding, HasSubstr("HTTP 403, error -32000 \"no\" to each request"));
  examination.discover = Reply{.status = 404};
  EXPECT_EQ(verdict(era_checks(), "revisions").status, Status::fail);
}

TEST_F(ServerChecksTest, ALoginThatIsAskedForLaterIsNoFault) {
  Reply refusal{.status = kForbidden};
  server.reply = [&refusal](const Ask& ask) {
    return ask.is_anonymous ? Reply{.status = kUnauthorized} : refusal;
  };
  EXPECT_EQ(verdict(legacy_http_checks(), "ping").status, Status::fail);
  refusal.headers = {{"WWW-Authenticate", "Bearer"}};
  for (const int status : {kForbidden, kUnauthorized}) {
    refusal.status = status;
    const Verdict found = verdict(legacy_http_checks(), "ping");
    EXPECT_EQ(found.status, Status::note);
    EXPECT_EQ(found.finding, kBehindLogin);
  }
  EXPECT_FALSE(examination.limit()) << "others are examined";
  ASSERT_TRUE(examination.refusal());
  EXPECT_EQ(examination.refusal()->reply.status, kForbidden) << "the first one";
  EXPECT_THAT(examination.refusal()->ask.body, HasSubstr("ping"));
  gather_authorization(examination, *examination.refusal());
  EXPECT_EQ(verdict(authorization_checks(), "invalid token").status, Status::ok);
  EXPECT_EQ(verdict(authorization_checks(), "challenge").status, Status::fail);
  examination.authorization->refusal.headers = {
      {"WWW-Authenticate", "Bearer error=\"insufficient_scope\""}};
  EXPECT_EQ(verdict(authorization_checks(), "challenge").status, Status::ok) << "it had a token";
}

TEST_F(ServerChecksTest, InitializeHasNoRevisionInItsHead) {
  EXPECT_EQ(field_in(examination.initialize("2025-11-25").headers, "MCP-Protocol-Version"), "");
}

TEST_F(ServerChecksTest, WhatMayHaveToStartFirstGetsMoreTime) {
  std::vector<Duration> patience;
  server.reply = [&patience](const Ask& ask) {
    patience.push_back(ask.patience);
    return Result<Reply>(fail(kGatewayTimeout, "no reply"));
  };
  Examination fresh(server, examination.server(), true);
  (void)first_reply(fresh, true);
  EXPECT_THAT(patience, ElementsAre(std::chrono::seconds(10), std::chrono::seconds(10)));
}

TEST_F(ServerChecksTest, ASlowStartIsNotRepeatedForWantOfTime) {
  Reply slow = initialize_reply("session");
  slow.head_after = std::chrono::seconds(9);
  server.reply = [&slow](const Ask&) { return slow; };
  EXPECT_TRUE(examination.ask(examination.initialize("2025-11-25")));
  const Result<Reply> second = examination.ask(examination.initialize("2025-06-18"));
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, kLimitReached);
  EXPECT_FALSE(examination.limit()) << "others are examined";
  Examination fresh(server, examination.server(), true);
  for (int count = 0; count < 2; ++count) {
    EXPECT_TRUE(fresh.ask(fresh.initialize("2025-11-25"))) << "one is needed";
  }
}

TEST_F(ServerChecksTest, WhyNothingIsSpokenIsTold) {
  const auto found = [&](const Result<Reply>& discover, const Result<Reply>& initialize) {
    Examination fresh(server, examination.server(), true);
    fresh.discover = discover;
    fresh.legacy_eras.push_back({.asked = &newest_revision(Era::legacy), .reply = initialize});
    return era_checks().front().examine(fresh).value();
  };
  const Verdict page = found(Reply{.status = 404}, Reply{.status = 405});
  EXPECT_EQ(page.finding,
            "no MCP server answers here: HTTP 404 to server/discover, HTTP 405 to initialize");
  EXPECT_THAT(page.fix, HasSubstr("Check the URL"));
  const Verdict slow = found(error_reply(400, -32000), fail(kGatewayTimeout, "no reply"));
  EXPECT_EQ(slow.finding,
            "no revision is spoken: HTTP 400, error -32000 \"no\" to "
            "server/discover, no reply to initialize");
  EXPECT_EQ(slow.fix.find("URL"), std::string::npos);
  const Verdict loud =
      found(Reply{.status = 404}, json_reply(200, R"({"jsonrpc":"2.0","error":{"message":"a\n)" +
                                                      std::string(300, 'x') + "\"}}"));
  EXPECT_LT(loud.finding.size(), 320U);
  EXPECT_EQ(loud.finding.find('\n'), std::string::npos);
}

TEST_F(ServerChecksTest, WebsitesUseWhatTakesTheirHostWithoutALogin) {
  const std::string danger = "any website can use this server";
  const auto origin = [&] { return verdict(legacy_http_checks(), "legacy origin"); };
  server.reply = [](const Ask&) { return result_reply(); };
  EXPECT_THAT(origin().finding, HasSubstr(danger));
  examination.is_socket = true;
  EXPECT_EQ(origin().finding.find(danger), std::string::npos);
  EXPECT_EQ(origin().status, Status::fail) << "the rule is broken all the same";
  examination.is_socket = false;
  for (const int status : {kForbidden, kUnauthorized}) {
    server.reply = [status](const Ask& ask) {
      const bool is_website = field_in(ask.headers, "Host") == "sluice-doctor.invalid" &&
                              field_in(ask.headers, "Origin") == "https://sluice-doctor.invalid" &&
                              ask.is_anonymous && ask.is_foreign;
      return is_website ? Reply{.status = status} : result_reply();
    };
    EXPECT_EQ(origin().finding.find(danger), std::string::npos);
    EXPECT_FALSE(examination.refusal());
  }
}

TEST_F(ServerChecksTest, AServerThatHasOneSessionRefusesNoRevision) {
  for (const bool has_one : {true, false}) {
    std::vector<std::string> open;
    server.reply = [&](const Ask& ask) {
      if (ask.method == "DELETE") std::erase(open, field_in(ask.headers, "Mcp-Session-Id"));
      if (ask.revision.empty()) return error_reply(400, -32600);
      const bool is_refused = has_one ? !open.empty() : ask.revision != "2025-11-25";
      if (is_refused) return error_reply(400, -32600);
      open.push_back("session-" + std::to_string(open.size()));
      return initialize_reply(open.back());
    };
    Examination fresh(server, examination.server(), true);
    probe_eras(fresh);
    EXPECT_THAT(open, ElementsAre("session-0")) << "that of the newest revision";
    Checks out;
    run_checks(era_checks(), fresh, out);
    const auto found = std::ranges::find(out, "initialize", &Check::subject);
    ASSERT_NE(found, out.end());
    EXPECT_EQ(found->status, has_one ? Status::warn : Status::fail);
    EXPECT_THAT(found->finding, HasSubstr(has_one ? "only one session" : "is refused"));
    EXPECT_EQ(std::ranges::count(out, "unknown revision", &Check::subject), has_one ? 0 : 1);
  }
}

TEST_F(ServerChecksTest, AStreamThatEndsBeforeTheAnswerIsResumedOnce) {
  const auto stream = [](std::string data, std::string id) {
    return Reply{.status = 200,
                 .headers = {{"Content-Type", "text/event-stream"}},
                 .events = {{.type = "message", .data = std::move(data), .id = std::move(id)}},
                 .is_whole = true};
  };
  std::vector<std::string> resumed;
  std::string id = "a-7";
  server.reply = [&](const Ask& ask) {
    if (ask.method == "POST") return stream("", id);
    resumed.emplace_back(field_in(ask.headers, "Last-Event-ID"));
    EXPECT_EQ(field_in(ask.headers, "Mcp-Session-Id"), "0123456789abcdef");
    EXPECT_EQ(field_in(ask.headers, "Accept"), "text/event-stream");
    EXPECT_EQ(ask.body, "");
    return stream(R"({"jsonrpc":"2.0","id":"doctor-1","result":{}})", "a-8");
  };
  EXPECT_EQ(verdict(legacy_http_checks(), "ping").status, Status::ok);
  EXPECT_THAT(resumed, ElementsAre("a-7"));
  id.clear();
  EXPECT_EQ(verdict(legacy_http_checks(), "ping").status, Status::fail);
  EXPECT_EQ(resumed.size(), 1U) << "events without ids cannot be resumed";
}

TEST_F(ServerChecksTest, AServerThatHasGoneIsAskedAfterAMomentAndToEndItsSessions) {
  for (const int why : {kBadGateway, kGatewayTimeout}) {
    server.paused = {};
    std::vector<std::string> ended;
    server.reply = [&](const Ask& ask) -> Result<Reply> {
      if (ask.method == "DELETE") {
        ended.emplace_back(field_in(ask.headers, "Mcp-Session-Id"));
        return Reply{.status = kNoContent};
      }
      if (!ask.revision.empty()) return initialize_reply("session");
      return fail(why, "nobody is there");
    };
    Examination fresh(server, examination.server(), true);
    fresh.answers_discover = true;
    (void)fresh.ask(fresh.initialize("2025-11-25"));
    (void)fresh.ask(fresh.modern("tools/list"));
    EXPECT_TRUE(fresh.gone());
    EXPECT_EQ(server.paused > Duration(), why == kBadGateway) << "silence was long enough";
    fresh.end_sessions();
    fresh.end_sessions();
    EXPECT_THAT(ended, ElementsAre("session"));
  }
}

TEST_F(ServerChecksTest, DocumentsThatWereNotAskedForAreNoFault) {
  server.document = [](const std::string&) {
    return fail(kLimitReached, std::string(kTimeIsOver));
  };
  Reply refusal{
      .status = 401,
      .headers = {{"WWW-Authenticate", "Bearer resource_metadata=\"https://a.example\""}}};
  gather_authorization(examination, {examination.modern("server/discover"), refusal});
  EXPECT_EQ(verdict(authorization_checks(), "resource metadata").status, Status::note);
  examination.authorization->servers.push_back(
      {.issuer = "a", .problem = {kLimitReached, std::string(kTimeIsOver)}, .document = {}});
  EXPECT_EQ(verdict(authorization_checks(), "server metadata").status, Status::note);
  examination.authorization->servers.front().problem = {kGatewayTimeout, "no answer"};
  EXPECT_EQ(verdict(authorization_checks(), "server metadata").status, Status::fail);
}

}  // namespace
}  // namespace sluice
