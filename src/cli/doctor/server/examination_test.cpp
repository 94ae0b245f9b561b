// What is made of a server that does not reply, over canned replies.

#include "cli/doctor/server/examination.hpp"

#include <algorithm>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
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
using ::testing::HasSubstr;

/// What is examined over HTTP, in its order.
Checks examine_all(Examination& examination) {
  Checks out;
  (void)first_reply(examination, true);
  probe_eras(examination);
  if (examination.limit()) return out;
  for (const auto table : {era_checks(), modern_http_checks(), legacy_http_checks(),
                           streaming_checks(), session_checks()}) {
    run_checks(table, examination, out);
  }
  return out;
}

TEST_F(ServerChecksTest, WhatAServerThatHasGoneDoesNotAnswerIsNoFault) {
  int asked = 0;
  const auto bad_server = [&](const Ask& ask) {
    ++asked;
    // It would change the finding about Origin.
    if (ask.is_foreign) return Reply{.status = 403};
    if (!ask.body.contains("\"initialize\"")) return result_reply();
    return initialize_reply("0123456789abcdef");
  };
  const auto findings_of = [](const Checks& checks) {
    std::vector<std::string> out;
    for (const Check& each : checks) {
      if (each.status == Status::fail) out.push_back(each.subject + ": " + each.finding);
    }
    return out;
  };
  server.reply = bad_server;
  Examination whole(server, examination.server(), true);
  const std::vector<std::string> real = findings_of(examine_all(whole));
  EXPECT_FALSE(whole.gone());
  EXPECT_GT(real.size(), 5U);
  const int all = asked;
  for (int last = 1; last < all; ++last) {
    struct None {
      Result<Reply> reply;
      std::string why;
      bool is_silent = false;
    };
    for (const auto& [none, why, is_silent] : std::vector<None>{
             {fail(kBadGateway, "nobody is there"), "nobody is there"},
             {fail(kGatewayTimeout, "no reply"), "no reply", true},
             {Reply{.status = 200, .cut_off = Error(kBadGateway, "it broke")}, "it broke"},
             {Reply{.status = 200, .cut_off = Error(kGatewayTimeout, "only its head")},
              "only its head", true},
             {Reply{.status = 503, .body = "<p>Sorry"}, "HTTP 503, without a message of MCP"},
             {json_reply(502, R"({"error":"Bad Gateway"})"),
              "HTTP 502, without a message of MCP"}}) {
      asked = 0;
      server.reply = [&](const Ask& ask) -> Result<Reply> {
        if (asked < last) return bad_server(ask);
        ++asked;
        return none;
      };
      Examination cut(server, examination.server(), true);
      EXPECT_THAT(findings_of(examine_all(cut)), ::testing::IsSubsetOf(real)) << last;
      EXPECT_EQ(asked, last + (is_silent ? 2 : 3))
          << "it is asked again, then for something simple, and then nothing else";
      ASSERT_TRUE(cut.gone()) << last;
      EXPECT_EQ(cut.gone()->message, why);
    }
  }
}

TEST_F(ServerChecksTest, AServerThatFailsOneRequestHasNotGone) {
  server.reply = [](const Ask& ask) -> Result<Reply> {
    if (ask.body.ends_with(':')) return fail(kBadGateway, "the connection was closed");
    return result_reply();
  };
  (void)examination.ask(examination.modern("server/discover"));
  const Verdict broken = verdict(legacy_http_checks(), "broken JSON");
  EXPECT_EQ(broken.status, Status::fail);
  EXPECT_EQ(broken.finding, "the connection was closed");
  EXPECT_FALSE(examination.gone());
}

TEST_F(ServerChecksTest, AConnectionThatBreaksOnceIsNoFault) {
  int asked = 0;
  server.reply = [&asked](const Ask&) -> Result<Reply> {
    if (++asked == 2) return fail(kBadGateway, "the connection was reset");
    return error_reply(200, -32700);
  };
  (void)examination.ask(examination.modern("server/discover"));
  EXPECT_EQ(verdict(legacy_http_checks(), "broken JSON").status, Status::ok);
  EXPECT_EQ(asked, 3);
}

TEST_F(ServerChecksTest, AReplyThatThereWasNoTimeForIsNoFault) {
  for (const bool is_late : {false, true}) {
    server.is_late = is_late;
    server.reply = [](const Ask& ask) -> Result<Reply> {
      if (ask.body.ends_with(':')) return fail(kGatewayTimeout, "no reply within 0.1 s");
      return result_reply();
    };
    Examination fresh(server, examination.server(), true);
    (void)fresh.ask(fresh.modern("server/discover"));
    const Result<Reply> none = fresh.ask({.body = ":"});
    ASSERT_FALSE(none);
    EXPECT_EQ(none.error().code, is_late ? kLimitReached : kGatewayTimeout);
    EXPECT_FALSE(fresh.gone());
  }
}

TEST_F(ServerChecksTest, WhoHasNoOtherReplyToDiscoveryIsThere) {
  server.reply = [](const Ask& ask) -> Result<Reply> {
    if (ask.body.contains("server/discover")) return Reply{.status = 503};
    if (ask.body.contains("ping")) return fail(kBadGateway, "the connection was closed");
    return result_reply();
  };
  Examination legacy(server, examination.server(), true);
  probe_eras(legacy);
  const Result<Reply> none = legacy.ask({.body = "ping"});
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().message, "the connection was closed");
  EXPECT_FALSE(legacy.gone());
}

TEST_F(ServerChecksTest, WhereOnlyAGatewayRepliesIsNoServer) {
  server.reply = [](const Ask&) { return json_reply(503, R"({"error":"no upstream"})"); };
  Examination fresh(server, examination.server(), true);
  const Result<Reply> first = first_reply(fresh, true);
  ASSERT_FALSE(first);
  EXPECT_EQ(first.error().message, "HTTP 503, without a message of MCP");
}

TEST_F(ServerChecksTest, AServerThatIsSilentToDiscoveryIsExamined) {
  for (const Result<Reply>& none : {Result<Reply>(fail(kGatewayTimeout, "no reply within 5.0 s")),
                                    Result<Reply>(Reply{.status = 502, .body = "<p>Sorry"})}) {
    int sessions = 0;
    std::vector<std::string> open;
    bool is_there = true;
    server.reply = [&](const Ask& ask) -> Result<Reply> {
      if (!is_there || ask.body.contains("server/discover")) return none;
      if (ask.method == "DELETE") std::erase(open, field_in(ask.headers, "Mcp-Session-Id"));
      if (!ask.body.contains("\"initialize\"")) return result_reply();
      open.push_back("session-" + std::to_string(++sessions));
      return initialize_reply(open.back());
    };
    Examination legacy(server, examination.server(), true);
    EXPECT_TRUE(first_reply(legacy, true));
    EXPECT_TRUE(open.empty());
    probe_eras(legacy);
    EXPECT_FALSE(legacy.gone());
    ASSERT_NE(legacy.legacy_era(), nullptr);
    EXPECT_THAT(open, ::testing::ElementsAre(legacy.legacy_era()->session));
    Checks out;
    run_checks(era_checks(), legacy, out);
    const auto found = std::ranges::find(out, "discovery", &Check::subject);
    ASSERT_NE(found, out.end());
    EXPECT_EQ(found->status, Status::warn);
    EXPECT_THAT(found->fix, HasSubstr("-32601"));
    // A ping shows that it is there, or that it is not.
    (void)legacy.ask(legacy.modern("server/discover"));
    EXPECT_FALSE(legacy.gone());
    is_there = false;
    (void)legacy.ask(legacy.modern("server/discover"));
    EXPECT_TRUE(legacy.gone());
  }
}

TEST_F(ServerChecksTest, DiscoveryIsAnsweredEachTime) {
  int asked = 0;
  server.reply = [&asked](const Ask& ask) -> Result<Reply> {
    if (ask.body.contains("server/discover") && ++asked == 2) return fail(kGatewayTimeout, "late");
    return ask.body.contains("\"initialize\"") ? initialize_reply("a") : result_reply();
  };
  Examination fresh(server, examination.server(), true);
  EXPECT_TRUE(first_reply(fresh, true));
  probe_eras(fresh);
  Checks out;
  run_checks(era_checks(), fresh, out);
  const auto found = std::ranges::find(out, "discovery", &Check::subject);
  ASSERT_NE(found, out.end());
  EXPECT_EQ(found->status, Status::fail);
  EXPECT_THAT(found->finding, HasSubstr("late"));
}

TEST_F(ServerChecksTest, ASessionWhoseReplyIsCutOffIsEnded) {
  for (const int why : {kBadGateway, kGatewayTimeout, kLimitReached}) {
    int sessions = 0;
    std::vector<std::string> ended;
    server.reply = [&](const Ask& ask) {
      if (ask.method == "DELETE") {
        ended.emplace_back(field_in(ask.headers, "Mcp-Session-Id"));
        EXPECT_EQ(field_in(ask.headers, "MCP-Protocol-Version"), "2025-11-25");
      }
      Reply reply = initialize_reply("session-" + std::to_string(++sessions));
      if (sessions == 1) reply.cut_off = Error(why, "only its head");
      return reply;
    };
    Examination fresh(server, examination.server(), true);
    const Result<Reply> reply = fresh.ask(fresh.initialize("2025-06-18"));
    EXPECT_THAT(ended, ::testing::ElementsAre("session-1"));
    EXPECT_EQ(reply.has_value(), why == kBadGateway) << "a broken connection is tried again";
    ended.clear();
    sessions = 0;
    (void)fresh.ask(fresh.legacy(examination.legacy_eras.front(), "ping"));
    EXPECT_TRUE(ended.empty()) << "it was not begun by this request";
  }
}

}  // namespace
}  // namespace sluice
