// The checks over canned replies. tests/e2e/program/doctor.test.mjs runs them against real servers.

#include <algorithm>
#include <functional>
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
using test::json_reply;
using test::result_reply;
using test::ServerChecksTest;
using ::testing::HasSubstr;

TEST(DoctorReply, TheAnswerIsInTheBodyOrInAnEvent) {
  EXPECT_EQ(error_code_in(error_reply(400, -32020).answer()), -32020);
  EXPECT_NE(result_in(result_reply().answer()), nullptr);
  Reply stream{.status = 200, .headers = {{"Content-Type", "text/event-stream; charset=utf-8"}}};
  EXPECT_FALSE(stream.answer());
  stream.events = {{.type = "message", .data = R"({"method":"notifications/progress"})", .id = ""},
                   {.type = "message", .data = R"({"id":1,"error":{"code":-1}})", .id = ""}};
  EXPECT_EQ(error_code_in(stream.answer()), -1);
  EXPECT_EQ(error_code_in(json_reply(200, "[1]").answer()), 0);
  EXPECT_EQ(error_code_in(json_reply(200, R"({"error":{"code":"x"}})").answer()), 0);
}

TEST_F(ServerChecksTest, ModernServersRefuseWhatTheyMustAsTheyMust) {
  struct Case {
    std::string_view subject;
    int status;
    int code;
  };
  for (const Case& each : std::vector<Case>{{"origin", 403, 0},
                                            {"version refused", 400, -32022},
                                            {"version header", 400, -32020},
                                            {"Mcp-Method", 400, -32020},
                                            {"no Mcp-Method", 400, -32020},
                                            {"Mcp-Name", 400, -32020},
                                            {"_meta", 400, -32602},
                                            {"unknown method", 404, -32601},
                                            {"unknown resource", 200, -32602}}) {
    const auto table = modern_http_checks();
    const Reply good = error_reply(each.status, each.code);
    EXPECT_EQ(verdict(table, each.subject, good).status, Status::ok) << each.subject;
    const Verdict bad = verdict(table, each.subject, result_reply());
    EXPECT_EQ(bad.status, Status::fail) << each.subject;
    EXPECT_NE(bad.fix, "") << each.subject;
    EXPECT_NE(verdict(table, each.subject, error_reply(500, -32603)).status, Status::ok);
  }
}

TEST_F(ServerChecksTest, LegacyServersRefuseWhatTheyMustAsTheyMust) {
  struct Case {
    std::string_view subject;
    Reply good;
    Status otherwise;  // with a result
  };
  for (const Case& each :
       std::vector<Case>{{"notifications", {.status = 202}, Status::fail},
                         {"legacy origin", {.status = 403}, Status::fail},
                         {"legacy version", {.status = 400}, Status::fail},
                         {"legacy method", error_reply(200, -32601), Status::fail},
                         {"broken JSON", error_reply(400, -32700), Status::fail},
                         {"content type", {.status = 415}, Status::note},
                         {"accept", {.status = 406}, Status::note}}) {
    const auto table = legacy_http_checks();
    EXPECT_EQ(verdict(table, each.subject, each.good).status, Status::ok) << each.subject;
    EXPECT_EQ(verdict(table, each.subject, result_reply()).status, each.otherwise) << each.subject;
  }
}

TEST_F(ServerChecksTest, TheAnswerHasTheIdOfItsRequest) {
  EXPECT_EQ(verdict(legacy_http_checks(), "legacy answer", result_reply()).status, Status::ok);
  // The second request has another id.
  const Verdict other = verdict(legacy_http_checks(), "legacy answer", result_reply());
  EXPECT_EQ(other.status, Status::fail);
  EXPECT_EQ(verdict(modern_http_checks(), "answer", result_reply()).status, Status::fail);
  Reply third = result_reply();
  third.body = R"({"jsonrpc":"2.0","id":"doctor-4","result":{}})";
  EXPECT_EQ(verdict(modern_http_checks(), "answer", third).status, Status::ok);
  EXPECT_THAT(other.finding, HasSubstr(R"(the id "doctor-2" came back as "doctor-1")"));
}

TEST_F(ServerChecksTest, AForeignOriginIsLessOfADangerToPublicServers) {
  Examination elsewhere(server, examination.server(), false);
  elsewhere.is_modern = true;
  server.reply = [](const Ask&) { return result_reply(); };
  EXPECT_EQ(modern_http_checks().front().examine(elsewhere)->status, Status::warn);
}

TEST_F(ServerChecksTest, SessionsAreNamedWellAndEnd) {
  const auto table = session_checks();
  EXPECT_EQ(verdict(table, "session id").status, Status::ok);
  EXPECT_EQ(verdict(table, "unknown session", Reply{.status = 404}).status, Status::ok);
  EXPECT_EQ(verdict(table, "unknown session", Reply{.status = 400}).status, Status::warn);
  EXPECT_EQ(verdict(table, "unknown session", result_reply()).status, Status::fail);
  EXPECT_EQ(verdict(table, "no session", Reply{.status = 400}).status, Status::ok);
  EXPECT_EQ(verdict(table, "no session", result_reply()).status, Status::note);
  EXPECT_EQ(verdict(table, "deleted session", result_reply()).status, Status::fail);
  EXPECT_EQ(verdict(table, "deleted session", Reply{.status = 405}).status, Status::note);
  server.reply = [](const Ask& ask) { return Reply{.status = ask.method == "DELETE" ? 204 : 404}; };
  EXPECT_EQ(verdict(table, "deleted session").status, Status::ok);
  examination.legacy_eras.front().session = "with space";
  EXPECT_EQ(verdict(table, "session id").status, Status::fail);
  EXPECT_EQ(verdict(table, "session secrecy").status, Status::warn);
  examination.legacy_eras.front().session = "";
  EXPECT_EQ(verdict(table, "session id").status, Status::note);
}

TEST_F(ServerChecksTest, StreamsArriveAtOnceOrAreHeldBack) {
  const auto table = streaming_checks();
  Reply stream{.status = 200,
               .headers = {{"Content-Type", "text/event-stream"}},
               .body_after = std::chrono::milliseconds(2)};
  EXPECT_EQ(verdict(table, "listen", stream).status, Status::fail) << "there is no event";
  stream.events = {{.type = "message",
                    .data = R"({"method":"notifications/subscriptions/acknowledged","params":)"
                            R"({"_meta":{"io.modelcontextprotocol/subscriptionId":"doctor-2"}}})",
                    .id = "7"}};
  EXPECT_EQ(verdict(table, "listen", stream).status, Status::ok);
  EXPECT_EQ(verdict(table, "buffering").status, Status::note) << "X-Accel-Buffering is missing";
  EXPECT_EQ(verdict(table, "listen", stream).status, Status::fail) << "it is another one's id";
  EXPECT_EQ(verdict(table, "resumption", stream).status, Status::fail) << "an id comes twice";
  server.reply = [](const Ask& ask) -> Result<Reply> {
    if (ask.until == Until::answer) return result_reply();
    return fail(kGatewayTimeout, "no reply within 3.0 s");
  };
  for (const std::string_view subject : {"listen", "GET stream"}) {
    const Verdict silent = verdict(table, subject);
    EXPECT_EQ(silent.status, Status::fail);
    EXPECT_THAT(silent.fix, HasSubstr("a proxy holds the stream back"));
  }
  EXPECT_EQ(verdict(table, "GET stream", Reply{.status = 405}).status, Status::ok);
  EXPECT_EQ(verdict(table, "GET stream", Reply{.status = 404}).status, Status::fail);
}

TEST_F(ServerChecksTest, StreamsAreResumedAtTheEventThatIsNamed) {
  int pings = 0;
  Reply resumed{.status = 200, .headers = {{"Content-Type", "text/event-stream"}}};
  server.reply = [&](const Ask& ask) -> Result<Reply> {
    if (ask.method == "GET") {
      EXPECT_EQ(ask.headers.back(),
                std::make_pair(std::string("Last-Event-ID"), std::string("1-0")));
      return resumed;
    }
    Reply reply{.status = 200, .headers = {{"Content-Type", "text/event-stream"}}};
    reply.events = {{.type = "message", .data = "", .id = std::to_string(++pings) + "-0"}};
    return reply;
  };
  const auto judged = [&] {
    pings = 0;
    return verdict(streaming_checks(), "resumption").status;
  };
  EXPECT_EQ(judged(), Status::ok);
  resumed = Reply{.status = 400};
  EXPECT_EQ(judged(), Status::warn);
  const Verdict unseen = verdict(streaming_checks(), "resumption", result_reply());
  EXPECT_EQ(unseen.status, Status::note);
  EXPECT_THAT(unseen.finding, HasSubstr("no stream was seen"));
  const Verdict plain =
      verdict(streaming_checks(), "resumption",
              Reply{.status = 200, .headers = {{"Content-Type", "text/event-stream"}}});
  EXPECT_THAT(plain.finding, HasSubstr("events have no ids"));
}

TEST_F(ServerChecksTest, StreamsAreNotCompressed) {
  examination.stream = Reply{.status = 200};
  EXPECT_EQ(verdict(streaming_checks(), "compression").status, Status::ok);
  examination.stream->headers = {{"content-encoding", "identity"}};
  EXPECT_EQ(verdict(streaming_checks(), "compression").status, Status::ok);
  examination.stream->headers = {{"content-encoding", "gzip"}};
  EXPECT_EQ(verdict(streaming_checks(), "compression").status, Status::fail);
}

TEST_F(ServerChecksTest, WhatThereIsNoTimeForIsNoFault) {
  server.reply = [](const Ask&) { return fail(kLimitReached, "not examined"); };
  Checks out;
  run_checks(modern_http_checks(), examination, out);
  run_checks(legacy_http_checks(), examination, out);
  run_checks(streaming_checks(), examination, out);
  run_checks(session_checks(), examination, out);
  EXPECT_TRUE(std::ranges::none_of(out, [](const Check& check) {
    return check.status == Status::fail && check.finding == "not examined";
  }));
}

TEST_F(ServerChecksTest, DiscoveryNamesWhatIsSpoken) {
  const auto table = era_checks();
  const auto judged = [&](std::string_view subject, std::string_view discovered) {
    examination.discovered = parse_json(discovered).value().get_object();
    return verdict(table, subject).status;
  };
  EXPECT_EQ(judged("discovery", R"({"supportedVersions":["2025-11-25","2026-07-28"]})"),
            Status::ok);
  EXPECT_EQ(judged("discovery", R"({"supportedVersions":["2025-11-25",7]})"), Status::fail);
  EXPECT_EQ(judged("discover result", R"({"capabilities":{}})"), Status::fail);
  EXPECT_EQ(judged("discover result", R"({"resultType":"complete"})"), Status::fail);
  EXPECT_EQ(judged("discover result", R"({"capabilities":{},"resultType":"complete"})"),
            Status::warn);
  EXPECT_EQ(judged("discover result", R"({"capabilities":{},"resultType":"complete",)"
                                      R"("_meta":{"io.modelcontextprotocol/serverInfo":{}}})"),
            Status::ok);
  // What a server answers that does not speak the era.
  examination.is_modern = false;
  const auto refused = [&](Reply reply) {
    examination.discover = std::move(reply);
    return verdict(table, "discovery").status;
  };
  EXPECT_EQ(refused(error_reply(400, -32022)), Status::note);
  EXPECT_EQ(refused(error_reply(400, -32020)), Status::fail);
  EXPECT_EQ(refused(Reply{.status = 500}), Status::warn);
  EXPECT_EQ(refused(Reply{.status = 200, .is_whole = true}), Status::warn) << "there is no answer";
}

TEST_F(ServerChecksTest, InitializeIsAnsweredInEachRevisionAndWhole) {
  const auto table = era_checks();
  EXPECT_EQ(verdict(table, "initialize").status, Status::ok);
  LegacyEra& era = examination.legacy_eras.front();
  const auto judged = [&](std::string_view result) {
    era.reply = result_reply();
    era.result = parse_json(result).value().get_object();
    return verdict(table, "initialize result").status;
  };
  EXPECT_EQ(judged(R"({"serverInfo":{"name":"a","version":"1"}})"), Status::fail);
  EXPECT_EQ(judged(R"({"capabilities":{}})"), Status::fail);
  EXPECT_EQ(judged(R"({"capabilities":{},"serverInfo":{"name":"a"}})"), Status::fail);
  EXPECT_EQ(judged(R"({"capabilities":{},"serverInfo":{"name":"a","version":"1"}})"), Status::ok);
  examination.legacy_eras.push_back(
      {.asked = find_revision("2024-11-05"), .reply = error_reply(400, -32602)});
  EXPECT_THAT(verdict(table, "initialize").finding, HasSubstr("with 2024-11-05 is refused"));
  examination.legacy_eras.back().spoken = "1900-01-01";
  EXPECT_THAT(verdict(table, "initialize").finding,
              HasSubstr("\"1900-01-01\", which does not exist"));
  EXPECT_EQ(verdict(table, "initialize").status, Status::fail);
  examination.legacy_eras.back().reply = fail(kGatewayTimeout, "no reply within 5.0 s");
  EXPECT_EQ(verdict(table, "initialize").finding,
            "initialize with 2024-11-05: no reply within 5.0 s");
}

TEST_F(ServerChecksTest, AModernServerTellsOldClientsWhatItSpeaks) {
  LegacyEra& era = examination.legacy_eras.front();
  era.spoken.clear();
  era.reply = Reply{.status = 404};
  EXPECT_EQ(verdict(era_checks(), "old clients").status, Status::warn);
  era.reply = error_reply(400, -32022);
  EXPECT_EQ(verdict(era_checks(), "old clients").status, Status::ok);
  era.reply = Reply{.status = 400,
                    .headers = {{"Content-Type", "text/event-stream"}},
                    .events = {{.type = "message", .data = "2026-07-28", .id = ""}}};
  EXPECT_EQ(verdict(era_checks(), "old clients").status, Status::ok);
}

TEST_F(ServerChecksTest, ErasAreProbedAndTheirSessionsEnded) {
  Examination fresh(server, examination.server(), true);
  std::vector<std::string> ended;
  int sessions = 0;
  server.reply = [&](const Ask& ask) {
    if (ask.method == "DELETE") {
      ended.push_back(ask.headers.front().second);
      return Reply{.status = 200};
    }
    if (!ask.body.contains("initialize")) return error_reply(400, -32601);
    Reply reply =
        json_reply(200, R"({"id":1,"result":{"protocolVersion":"2025-06-18","capabilities":{}}})");
    reply.headers.emplace_back("Mcp-Session-Id", "session-" + std::to_string(++sessions));
    return reply;
  };
  probe_eras(fresh);
  EXPECT_FALSE(fresh.is_modern);
  ASSERT_NE(fresh.legacy_era(), nullptr);
  EXPECT_EQ(fresh.legacy_era()->spoken, "2025-06-18");
  EXPECT_EQ(fresh.legacy_era()->session, "session-2");
  EXPECT_THAT(ended, ::testing::ElementsAre("session-1", "session-3", "session-4"));
  EXPECT_EQ(verdict(era_checks(), "revisions").status, Status::ok);
}

TEST_F(ServerChecksTest, ARedirectIsNamedAndNotFollowed) {
  Examination fresh(server, examination.server(), true);
  fresh.discover = Reply{.status = 308, .headers = {{"Location", "https://mcp.example/mcp/"}}};
  const std::optional<Verdict> verdict = era_checks().front().examine(fresh);
  ASSERT_TRUE(verdict);
  EXPECT_EQ(verdict->status, Status::fail);
  EXPECT_EQ(verdict->finding, "HTTP 308 to https://mcp.example/mcp/");
}

TEST_F(ServerChecksTest, AuthorizationIsJudgedByItsDocuments) {
  server.document = [](const std::string& url) -> Result<OauthReply> {
    OauthReply reply{.status = 200, .body = {}, .dpop_nonce = {}};
    if (url == "http://127.0.0.1:8080/.well-known/oauth-protected-resource/mcp") {
      reply.body = R"({"resource":"http://127.0.0.1:8080/mcp",)"
                   R"("authorization_servers":["https://login.example/"]})";
    } else if (url == "https://login.example/.well-known/openid-configuration") {
      reply.body =
          R"({"issuer":"https://login.example","token_endpoint":"https://login.example/t",)"
          R"("authorization_endpoint":"https://login.example/a",)"
          R"("code_challenge_methods_supported":["plain","S256"]})";
    } else {
      reply.status = 404;
    }
    return reply;
  };
  server.reply = [](const Ask&) { return Reply{.status = 401}; };
  Reply refusal{.status = 401, .headers = {{"WWW-Authenticate", "Bearer scope=\"read\""}}};
  gather_authorization(examination, {examination.modern("server/discover"), refusal});
  const auto table = authorization_checks();
  for (const std::string_view subject : {"challenge", "scope", "invalid token", "resource metadata",
                                         "resource", "server metadata", "PKCE", "endpoints"}) {
    EXPECT_EQ(verdict(table, subject).status, Status::ok) << subject;
  }
  EXPECT_EQ(verdict(table, "issuer").status, Status::warn) << "only the slash differs";
  EXPECT_EQ(verdict(table, "registration").status, Status::note);
  refusal.headers.clear();
  server.document = [](const std::string&) { return fail(kBadGateway, "no connection"); };
  gather_authorization(examination, {examination.modern("server/discover"), refusal});
  EXPECT_EQ(verdict(table, "challenge").status, Status::fail);
  EXPECT_THAT(verdict(table, "resource metadata").finding, HasSubstr("no connection"));
  EXPECT_EQ(verdict(table, "resource metadata").status, Status::warn) << "it may have keys";
  refusal.headers = {{"WWW-Authenticate", "Bearer resource_metadata=\"https://a.example/b\""}};
  gather_authorization(examination, {examination.modern("server/discover"), refusal});
  EXPECT_EQ(verdict(table, "resource metadata").status, Status::fail) << "it has promised it";
}

TEST_F(ServerChecksTest, AuthorizationServersSayWhoTheyAre) {
  const auto judged = [&](std::string_view document) {
    examination.authorization.emplace();
    examination.authorization->servers.push_back(
        {.issuer = "https://login.example", .problem = {}, .document = std::string(document)});
    return verdict(authorization_checks(), "iss").status;
  };
  EXPECT_EQ(judged(R"({"authorization_response_iss_parameter_supported":true})"), Status::ok);
  EXPECT_EQ(judged(R"({"authorization_response_iss_parameter_supported":false})"), Status::note);
  EXPECT_EQ(judged("{}"), Status::note);
}

}  // namespace
}  // namespace sluice
