#include "client/authorization/authorizer.hpp"

#include <chrono>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "client/authorization/authorization_test_support.hpp"
#include "client/authorization/code_grant.hpp"
#include "core/crypto/digest.hpp"
#include "core/file_test_support.hpp"
#include "core/text/base64.hpp"

namespace sluice {
namespace {

using namespace std::chrono_literals;
using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

class AuthorizerTest : public AuthorizationTest {};

TEST_F(AuthorizerTest, LogsInWhenTheServerAsksForIt) {
  EXPECT_EQ(token(), "");
  ASSERT_TRUE(refuse("Bearer").value());
  EXPECT_EQ(token(), "Bearer t1");
  EXPECT_THAT(asked(),
              ElementsAre("GET https://mcp.example/.well-known/oauth-protected-resource/mcp",
                          "GET https://auth.example/.well-known/oauth-authorization-server",
                          "POST https://auth.example/register", "POST https://auth.example/token"));
  const FormFields request = authorization_request();
  EXPECT_EQ(field_of(request, "response_type"), "code");
  EXPECT_EQ(field_of(request, "client_id"), "registered");
  EXPECT_EQ(field_of(request, "redirect_uri"), "http://127.0.0.1:4001/callback");
  EXPECT_EQ(field_of(request, "resource"), "https://mcp.example/mcp");
  EXPECT_EQ(field_of(request, "code_challenge_method"), "S256");
  EXPECT_EQ(field_of(request, "scope").data(), nullptr);
  const FormFields redeemed = token_requests().at(0);
  EXPECT_EQ(field_of(redeemed, "grant_type"), "authorization_code");
  EXPECT_EQ(field_of(redeemed, "code"), "c1");
  EXPECT_EQ(field_of(redeemed, "resource"), "https://mcp.example/mcp");
  EXPECT_EQ(to_base64url(sha256(field_of(redeemed, "code_verifier"))),
            field_of(request, "code_challenge"));
}

TEST_F(AuthorizerTest, SendsATokenToNoOtherOrigin) {
  ASSERT_TRUE(refuse("Bearer").value());
  EXPECT_EQ(token("https://mcp.example/other"), "Bearer t1");
  for (const char* other : {"http://mcp.example/mcp", "https://mcp.example:8443/mcp",
                            "https://evil.example/mcp", "https://auth.example/token"}) {
    EXPECT_EQ(token(other), "") << other;
  }
}

TEST_F(AuthorizerTest, RequestsThatAreRefusedTogetherShareALogin) {
  std::vector<Result<void>> outcomes;
  const HttpReplyHead head{.status = 401, .headers = {}};
  for (int i = 0; i < 100; ++i) {
    authorizer().on_refused(head, 0, [&](Result<void> result) { outcomes.push_back(result); });
  }
  loop.run();
  EXPECT_THAT(outcomes, SizeIs(100));
  EXPECT_TRUE(outcomes.back());
  EXPECT_THAT(prompts, SizeIs(1));
  // A refusal that comes late is of the token before.
  EXPECT_TRUE(authorizer().on_refused(head, 0, [](const Result<void>&) {}));
  loop.run();
  EXPECT_THAT(prompts, SizeIs(1));
}

// mcp-remote#306: concurrent logins overwrite one PKCE verifier.
TEST_F(AuthorizerTest, EachLoginHasItsOwnVerifierAndState) {
  logs_in = false;
  refuse("Bearer");
  const FormFields first = authorization_request();
  const OnRedirect first_redirect = redirect;
  const auto second = std::make_shared<Authorizer>(context);
  second->on_refused({.status = 401, .headers = {}}, 0, [](const Result<void>&) {});
  loop.run();
  ASSERT_THAT(prompts, SizeIs(2));
  EXPECT_NE(field_of(first, "state"), field_of(authorization_request(), "state"));
  EXPECT_NE(field_of(first, "code_challenge"), field_of(authorization_request(), "code_challenge"));
  // The first login finishes after the second has begun.
  const FormFields answer = {{"code", "c1"}, {"state", std::string(field_of(first, "state"))}};
  EXPECT_EQ(redirect(to_form(answer)), RedirectVerdict::not_of_it);
  EXPECT_EQ(first_redirect(to_form(answer)), RedirectVerdict::accepted);
  loop.run();
  EXPECT_EQ(to_base64url(sha256(field_of(token_requests().at(0), "code_verifier"))),
            field_of(first, "code_challenge"));
}

TEST_F(AuthorizerTest, StaysWithTheOneWhoHasTheState) {
  logs_in = false;
  refuse("Bearer");
  EXPECT_EQ(redirect("code=stolen&state=guess"), RedirectVerdict::not_of_it);
  EXPECT_EQ(redirect("code=stolen"), RedirectVerdict::not_of_it);
  EXPECT_EQ(log_in(), RedirectVerdict::accepted);
  EXPECT_EQ(log_in(), RedirectVerdict::not_of_it);
  loop.run();
  EXPECT_EQ(token(), "Bearer t1");
  EXPECT_THAT(token_requests(), SizeIs(1));
}

TEST_F(AuthorizerTest, GivesUpALoginThatNobodyFinishes) {
  logs_in = false;
  EXPECT_FALSE(refuse("Bearer"));
  pass(301s);
  const auto outcome = refuse("Bearer");
  ASSERT_TRUE(outcome);
  EXPECT_THAT(outcome->error().message, HasSubstr("Nobody has logged in"));
  // The requests that follow at once do not ask the user again.
  EXPECT_THAT(prompts, SizeIs(1));
  pass(11s);
  logs_in = true;
  EXPECT_TRUE(refuse("Bearer").value());
}

TEST_F(AuthorizerTest, TellsWhatToDoWithoutAUser) {
  context->options.on_prompt = {};
  const auto outcome = refuse("Bearer");
  EXPECT_EQ(outcome->error().code, 401);
  EXPECT_THAT(outcome->error().message, HasSubstr("run `sluice login https://mcp.example/mcp`"));
  EXPECT_THAT(http->asked, IsEmpty());
}

// The order of discovery.
TEST_F(AuthorizerTest, UsesThePlaceThatAChallengeNames) {
  set("https://mcp.example/custom.json",
      {{"resource", "https://mcp.example/mcp"},
       {"authorization_servers", json::array{"https://auth.example/tenant1"}}});
  server["issuer"] = "https://auth.example/tenant1";
  set("https://auth.example/tenant1/.well-known/openid-configuration", server);
  ASSERT_TRUE(refuse(R"(Bearer resource_metadata="https://mcp.example/custom.json")").value());
  const auto order = asked();
  ASSERT_GE(order.size(), 4U);
  EXPECT_EQ(order[0], "GET https://mcp.example/custom.json");
  EXPECT_EQ(order[1], "GET https://auth.example/.well-known/oauth-authorization-server/tenant1");
  EXPECT_EQ(order[2], "GET https://auth.example/.well-known/openid-configuration/tenant1");
  EXPECT_EQ(order[3], "GET https://auth.example/tenant1/.well-known/openid-configuration");
}

TEST_F(AuthorizerTest, FallsBackToTheRevisionOfMarch2025) {
  replies.erase("https://mcp.example/.well-known/oauth-protected-resource/mcp");
  set("https://mcp.example/token", {{"access_token", "old"}, {"token_type", "bearer"}});
  replies["https://mcp.example/register"] = replies["https://auth.example/register"];
  ASSERT_TRUE(refuse("Bearer").value());
  EXPECT_EQ(token(), "Bearer old");
  EXPECT_THAT(prompts.at(0).url, HasSubstr("https://mcp.example/authorize?"));
  EXPECT_EQ(field_of(authorization_request(), "resource"), "https://mcp.example/mcp");
}

TEST_F(AuthorizerTest, RefusesTheMetadataOfAnotherResource) {
  set("https://mcp.example/.well-known/oauth-protected-resource/mcp",
      {{"resource", "https://evil.example/mcp"},
       {"authorization_servers", json::array{"https://auth.example"}}});
  EXPECT_THAT(refuse("Bearer")->error().message, HasSubstr("RFC 9728, section 3.3"));
  EXPECT_THAT(prompts, IsEmpty());
}

// atlassian-mcp-server#148: the metadata drops the path of the issuer.
TEST_F(AuthorizerTest, RefusesAnotherIssuerNamesTheClauseAndOffersAnOverride) {
  server["issuer"] = "https://auth.example/tenant1";
  publish();
  const std::string why = refuse("Bearer")->error().message;
  EXPECT_THAT(why, HasSubstr("RFC 8414, section 3.3"));
  EXPECT_THAT(why, HasSubstr("set accept_issuer to https://auth.example/tenant1"));
  EXPECT_THAT(prompts, IsEmpty());
  made = nullptr;
  context->options.accept_issuer = "https://auth.example/tenant1";
  EXPECT_TRUE(refuse("Bearer").value());
}

// python-sdk#1919, copilot-cli#4606.
TEST_F(AuthorizerTest, AcceptsAnIssuerWithARootSlash) {
  server["issuer"] = "https://auth.example/";
  publish();
  EXPECT_TRUE(refuse("Bearer").value());
}

TEST_F(AuthorizerTest, RefusesAServerThatDoesNotSayThatItHasPkce) {
  server.erase("code_challenge_methods_supported");
  publish();
  EXPECT_THAT(refuse("Bearer")->error().message, HasSubstr("PKCE"));
  EXPECT_THAT(prompts, IsEmpty());
}

TEST_F(AuthorizerTest, OpensNothingButWebPages) {
  server["authorization_endpoint"] = "file:///bin/sh";
  publish();
  EXPECT_THAT(refuse("Bearer")->error().message, HasSubstr("authorization_endpoint"));
  EXPECT_THAT(prompts, IsEmpty());
}

// RFC 9207 and its table in 2026-07-28.
TEST_F(AuthorizerTest, ChecksTheIssuerOfTheAnswer) {
  struct Case {
    bool is_advertised;
    const char* iss;  // null: none
    bool is_good;
    const char* accepted = "";  // AuthorizationOptions::accept_issuer
  };
  for (const Case& each :
       {Case{true, "https://auth.example", true}, Case{true, nullptr, false},
        Case{true, "https://evil.example", false}, Case{true, "https://auth.example/", false},
        Case{true, "https://AUTH.example", false}, Case{true, "https://auth.example:443", false},
        Case{false, nullptr, true}, Case{false, "https://auth.example", true},
        Case{false, "https://evil.example", false},
        // An issuer that the user accepts, character by character, beside the one that is expected.
        Case{true, "https://auth.example/", true, "https://auth.example/"},
        Case{false, "https://login.example", true, "https://login.example"},
        Case{true, "https://auth.example", true, "https://login.example"},
        Case{true, "https://login.example/", false, "https://login.example"},
        Case{true, "", false, "https://login.example"},
        Case{true, nullptr, false, "https://login.example"}}) {
    SCOPED_TRACE(std::string(each.iss == nullptr ? "none" : each.iss) +
                 ", accepted: " + each.accepted);
    made = nullptr;
    http->asked.clear();
    prompts.clear();
    *context->store = TokenStore("");
    context->options.accept_issuer = each.accepted;
    logs_in = false;
    server["authorization_response_iss_parameter_supported"] = each.is_advertised;
    publish();
    std::optional<Result<void>> outcome;
    authorizer().on_refused({.status = 401, .headers = {}}, 0,
                            [&](Result<void> result) { outcome = std::move(result); });
    loop.run();
    FormFields more;
    if (each.iss != nullptr) more.emplace_back("iss", each.iss);
    EXPECT_EQ(log_in(more), each.is_good ? RedirectVerdict::accepted : RedirectVerdict::refused);
    loop.run();
    ASSERT_TRUE(outcome);
    EXPECT_EQ(outcome->has_value(), each.is_good);
    EXPECT_EQ(token_requests().size(), each.is_good ? 1U : 0U);
    if (!each.is_good) EXPECT_THAT(outcome->error().message, HasSubstr("RFC 9207, section 2.4"));
  }
}

TEST_F(AuthorizerTest, ShowsNothingOfAnErrorThatAnotherIssuerSends) {
  const AuthorizationRequest request{.state = "s", .verifier = "v", .issuer = "https://a"};
  EXPECT_THAT(
      read_redirect(request, "error=access_denied&error_description=Call+us").error().message,
      HasSubstr("access_denied (Call us)"));
  const Error mixed =
      read_redirect(request, "error=x&error_description=Call+us&iss=https://b").error();
  EXPECT_THAT(mixed.message, Not(HasSubstr("Call us")));
  EXPECT_THAT(read_redirect(request, "state=s").error().message, HasSubstr("without a code"));
}

// Scopes.
TEST_F(AuthorizerTest, AsksForTheScopesOfTheChallengeFirst) {
  set("https://mcp.example/.well-known/oauth-protected-resource/mcp",
      {{"resource", "https://mcp.example/mcp"},
       {"authorization_servers", json::array{"https://auth.example"}},
       {"scopes_supported", json::array{"a", "b"}}});
  ASSERT_TRUE(refuse(R"(Bearer scope="c")").value());
  EXPECT_EQ(field_of(authorization_request(), "scope"), "c");
  made = nullptr;
  *context->store = TokenStore("");
  ASSERT_TRUE(refuse("Bearer").value());
  EXPECT_EQ(field_of(authorization_request(), "scope"), "a b");
}

TEST_F(AuthorizerTest, AsksForOfflineAccessWhereThatIsAScope) {
  server["scopes_supported"] = json::array{"offline_access"};
  publish();
  ASSERT_TRUE(refuse(R"(Bearer scope="a")").value());
  EXPECT_EQ(field_of(authorization_request(), "scope"), "a offline_access");
  EXPECT_EQ(field_of(authorization_request(), "prompt"), "consent");
}

TEST_F(AuthorizerTest, StepsUpWithWhatItHadBefore) {
  ASSERT_TRUE(refuse(R"(Bearer scope="read")").value());
  grant("t2", "r2");
  ASSERT_TRUE(refuse(R"(Bearer error="insufficient_scope", scope="write")", 403).value());
  EXPECT_EQ(field_of(authorization_request(), "scope"), "read write");
  EXPECT_EQ(token(), "Bearer t2");
  // Then the server must be content.
  const auto again = refuse(R"(Bearer error="insufficient_scope", scope="write")", 403);
  EXPECT_EQ(again->error().code, 403);
  EXPECT_THAT(prompts, SizeIs(2));
}

TEST_F(AuthorizerTest, StepsUpAFewTimesOnly) {
  grant("t1", "r1", 3600, "read");
  ASSERT_TRUE(refuse(R"(Bearer scope="read")").value());
  for (int i = 0; i < 10; ++i) {
    refuse(R"(Bearer error="insufficient_scope", scope="admin")", 403);
  }
  EXPECT_THAT(prompts, SizeIs(1 + Authorizer::kMaxStepUps));
  EXPECT_THAT(refuse(R"(Bearer error="insufficient_scope", scope="admin")", 403)->error().message,
              HasSubstr("does not grant the scopes admin"));
}

TEST_F(AuthorizerTest, LeavesOtherRefusalsAlone) {
  ASSERT_TRUE(refuse("Bearer").value());
  refuse("Bearer", 403);
  EXPECT_FALSE(is_handled);
  refuse(R"(Bearer error="insufficient_scope")", 403);
  EXPECT_FALSE(is_handled);
}

// Refresh.
TEST_F(AuthorizerTest, RefreshesBeforeTheTokenExpiresWithoutWaiting) {
  ASSERT_TRUE(refuse("Bearer").value());
  grant("t2", "r2");
  pass(3600s - 61s);
  token();
  loop.run();
  EXPECT_THAT(token_requests(), SizeIs(1));
  pass(2s);
  EXPECT_EQ(token(), "Bearer t1");
  loop.run();
  EXPECT_EQ(token(), "Bearer t2");
  const FormFields refreshed = token_requests().at(1);
  EXPECT_EQ(field_of(refreshed, "grant_type"), "refresh_token");
  EXPECT_EQ(field_of(refreshed, "refresh_token"), "r1");
  EXPECT_EQ(field_of(refreshed, "client_id"), "registered");
  // hermes-agent#110720: the refresh omits `resource`.
  EXPECT_EQ(field_of(refreshed, "resource"), "https://mcp.example/mcp");
}

// hermes-agent#110720: a refused early refresh discards a token that is still valid.
TEST_F(AuthorizerTest, ARefusedEarlyRefreshKeepsTheTokenThatIsStillValid) {
  ASSERT_TRUE(refuse("Bearer").value());
  refuse_token("invalid_grant");
  pass(3600s - 50s);
  EXPECT_EQ(token(), "Bearer t1");
  loop.run();
  EXPECT_EQ(token(), "Bearer t1");
  pass(31s);
  EXPECT_EQ(token(), "Bearer t1");
  loop.run();
  EXPECT_THAT(token_requests(), SizeIs(2));
  EXPECT_THAT(prompts, SizeIs(1));
}

TEST_F(AuthorizerTest, TroubleAtTheServerDoesNotSpendTheRefreshToken) {
  ASSERT_TRUE(refuse("Bearer").value());
  refuse_token("temporarily_unavailable", 503);
  pass(3600s - 50s);
  EXPECT_EQ(token(), "Bearer t1");
  loop.run();
  grant("t2");
  pass(31s);
  token();
  loop.run();
  EXPECT_EQ(token(), "Bearer t2");
  // The old refresh token stays, because the server gave no new one (RFC 6749, section 6).
  EXPECT_EQ(authorizer().token()->refresh_token, "r1");
}

TEST_F(AuthorizerTest, RequestsWaitForTheRefreshOfAnExpiredToken) {
  ASSERT_TRUE(refuse("Bearer").value());
  grant("t2", "r2");
  pass(3600s);
  int ready = 0;
  for (int i = 0; i < 50; ++i) {
    authorizer().authorize("POST", context->server, [&](Result<RequestAuthorization> result) {
      if (result && result->headers.front().second == "Bearer t2") ++ready;
    });
  }
  EXPECT_EQ(ready, 0);
  loop.run();
  EXPECT_EQ(ready, 50);
  EXPECT_THAT(token_requests(), SizeIs(2));
}

TEST_F(AuthorizerTest, ARefusedTokenIsRefreshedAndIfThatIsRefusedTheUserLogsIn) {
  ASSERT_TRUE(refuse("Bearer").value());
  grant("t2", "r2");
  ASSERT_TRUE(refuse(R"(Bearer error="invalid_token")").value());
  EXPECT_EQ(token(), "Bearer t2");
  EXPECT_THAT(prompts, SizeIs(1));
  replies["https://auth.example/token"].status = 0;  // held
  const auto waits = refuse(R"(Bearer error="invalid_token")");
  EXPECT_FALSE(waits);
  ASSERT_THAT(http->held, SizeIs(1));
  grant("t3", "r3");
  http->held.front()(
      OauthReply{.status = 400, .body = R"({"error":"invalid_grant"})", .dpop_nonce = {}});
  loop.run();
  EXPECT_EQ(token(), "Bearer t3");
  EXPECT_THAT(prompts, SizeIs(2));
}

// mcp-remote#351, claude-code#85236, LibreChat#15977, for authorizers that share a file.
TEST_F(AuthorizerTest, TwentyThatWakeWithOneExpiredTokenRefreshOnce) {
  const test::TemporaryDirectory folder;
  context->store = std::make_shared<TokenStore>(folder.path("tokens.json"));
  ASSERT_TRUE(refuse("Bearer").value());
  grant("t2", "r2");
  pass(3600s);
  std::vector<std::shared_ptr<Authorizer>> all;
  std::vector<std::string> tokens;
  for (int i = 0; i < 20; ++i) {
    auto each = std::make_shared<AuthorizationContext>(*context);
    each->store = std::make_shared<TokenStore>(folder.path("tokens.json"));
    all.push_back(std::make_shared<Authorizer>(each));
    all.back()->authorize("POST", context->server, [&](Result<RequestAuthorization> result) {
      tokens.push_back(result ? result->headers.front().second : result.error().message);
    });
  }
  loop.advance(10s);
  ASSERT_THAT(tokens, SizeIs(20));
  EXPECT_THAT(tokens, Each(::testing::Eq("Bearer t2")));
  EXPECT_THAT(token_requests(), SizeIs(2));
}

TEST_F(AuthorizerTest, TakesATokenThatAnotherProcessHasGot) {
  const test::TemporaryDirectory folder;
  context->store = std::make_shared<TokenStore>(folder.path("tokens.json"));
  EXPECT_EQ(token(), "");
  auto other = std::make_shared<Authorizer>(context);
  other->login({}, [](const Result<void>&) {});
  loop.advance(1s);
  EXPECT_THAT(prompts, SizeIs(1));
  context->options.on_prompt = {};
  std::optional<Result<void>> outcome;
  authorizer().on_refused({.status = 401, .headers = {}}, 0,
                          [&](Result<void> result) { outcome = std::move(result); });
  loop.advance(1s);
  ASSERT_TRUE(outcome && *outcome);
  EXPECT_EQ(token(), "Bearer t1");
}

// Clients.
TEST_F(AuthorizerTest, RegistersOncePerIssuerAndKeepsThePort) {
  ASSERT_TRUE(refuse("Bearer").value());
  std::optional<Result<void>> outcome;
  authorizer().login({}, [&](Result<void> result) { outcome = std::move(result); });
  loop.run();
  ASSERT_TRUE(outcome && *outcome);
  EXPECT_THAT(ports, ElementsAre(0, 4001));
  taken_port = 4001;
  authorizer().login({}, [](const Result<void>&) {});
  loop.run();
  // The registered port is in use, so another redirect URI is registered.
  EXPECT_THAT(ports, ElementsAre(0, 4001, 4001, 0));
  int registrations = 0;
  for (const OauthRequest& request : http->asked) {
    if (request.url != "https://auth.example/register") continue;
    ++registrations;
    EXPECT_THAT(request.body, HasSubstr(R"("application_type":"native")"));
    EXPECT_THAT(request.body, HasSubstr(R"("refresh_token")"));
    // turnstone#1082: Keycloak refuses registrations with `resource`.
    EXPECT_THAT(request.body, Not(HasSubstr("resource")));
  }
  EXPECT_EQ(registrations, 2);
}

TEST_F(AuthorizerTest, UsesAMetadataDocumentWhereThatIsTaken) {
  context->options.client_metadata_url = "https://app.example/client.json";
  server["client_id_metadata_document_supported"] = true;
  publish();
  ASSERT_TRUE(refuse("Bearer").value());
  EXPECT_EQ(field_of(authorization_request(), "client_id"), "https://app.example/client.json");
  EXPECT_THAT(asked(), Not(Contains("POST https://auth.example/register")));
}

TEST_F(AuthorizerTest, UsesAClientThatIsRegisteredAlready) {
  context->options.client_id = "mine";
  context->options.client_secret = "s3 cret";
  server["token_endpoint_auth_methods_supported"] = json::array{"client_secret_basic"};
  publish();
  ASSERT_TRUE(refuse("Bearer").value());
  EXPECT_EQ(field_of(authorization_request(), "client_id"), "mine");
  EXPECT_THAT(http->asked.back().headers, Contains(std::pair<std::string, std::string>(
                                              "Authorization", "Basic bWluZTpzMyUyMGNyZXQ=")));
  EXPECT_THAT(http->asked.back().body, Not(HasSubstr("cret")));
}

TEST_F(AuthorizerTest, SaysWhatToDoWhereNothingRegistersClients) {
  server.erase("registration_endpoint");
  publish();
  EXPECT_THAT(refuse("Bearer")->error().message, HasSubstr("give its client id"));
}

// SEP-2352.
TEST_F(AuthorizerTest, AnotherAuthorizationServerSeesNoCredentialsOfTheFirst) {
  ASSERT_TRUE(refuse("Bearer").value());
  set("https://mcp.example/.well-known/oauth-protected-resource/mcp",
      {{"resource", "https://mcp.example/mcp"},
       {"authorization_servers", json::array{"https://second.example"}}});
  json::object second = server;
  second["issuer"] = "https://second.example";
  second["token_endpoint"] = "https://second.example/token";
  second["registration_endpoint"] = "https://second.example/register";
  set("https://second.example/.well-known/oauth-authorization-server", second);
  set("https://second.example/token", {{"access_token", "s1"}, {"token_type", "bearer"}});
  set("https://second.example/register", {{"client_id", "at-second"}});
  http->asked.clear();
  ASSERT_TRUE(refuse(R"(Bearer error="invalid_token")").value());
  EXPECT_EQ(token(), "Bearer s1");
  for (const OauthRequest& request : http->asked) {
    EXPECT_THAT(request.body, Not(HasSubstr("refresh_token=")));
    EXPECT_THAT(request.body, Not(HasSubstr("registered")));
  }
  EXPECT_EQ(field_of(authorization_request(), "client_id"), "at-second");
}

TEST_F(AuthorizerTest, AClientOfOneIssuerIsNotShownToAnother) {
  context->options.client_id = "mine";
  context->options.client_issuer = "https://first.example";
  EXPECT_THAT(refuse("Bearer")->error().message,
              HasSubstr("registered with https://first.example"));
  EXPECT_THAT(prompts, IsEmpty());
}

// inspector#737: an authorization server that refuses `resource`.
TEST_F(AuthorizerTest, LeavesOutTheResourceWhereItIsToldTo) {
  context->options.send_resource = false;
  ASSERT_TRUE(refuse("Bearer").value());
  grant("t2");
  ASSERT_TRUE(refuse("Bearer").value());
  EXPECT_THAT(prompts.at(0).url, Not(HasSubstr("resource")));
  for (const FormFields& request : token_requests()) {
    EXPECT_EQ(field_of(request, "resource").data(), nullptr);
  }
}

TEST_F(AuthorizerTest, LogsOut) {
  server["revocation_endpoint"] = "https://auth.example/revoke";
  publish();
  ASSERT_TRUE(refuse("Bearer").value());
  std::optional<Result<std::size_t>> ended;
  replies["https://auth.example/revoke"].status = 0;
  authorizer().logout([&](Result<std::size_t> count) { ended = count; });
  loop.run();
  // A program that ends with the logout must not take back the request.
  EXPECT_FALSE(ended);
  http->held.back()(OauthReply{.status = 200, .body = {}, .dpop_nonce = {}});
  EXPECT_EQ(ended->value(), 1U);
  EXPECT_EQ(token(), "");
  EXPECT_EQ(http->asked.back().url, "https://auth.example/revoke");
  EXPECT_THAT(http->asked.back().body, HasSubstr("token=r1"));
  EXPECT_THAT(context->store->load()->tokens, IsEmpty());
}

}  // namespace
}  // namespace sluice
