#include "client/authorization/grant.hpp"

#include <algorithm>
#include <chrono>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "client/authorization/authorization_test_support.hpp"
#include "core/crypto/digest.hpp"
#include "core/text/base64.hpp"
#include "json/members.hpp"

namespace sluice {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class GrantTest : public AuthorizationTest {
 protected:
  /// The part of a JWT that is its header (0) or its claims (1).
  static json::object part(std::string_view jwt, int which) {
    for (; which > 0; --which) jwt.remove_prefix(jwt.find('.') + 1);
    return parse_json(*decode_base64url(jwt.substr(0, jwt.find('.'))))->as_object();
  }
  static std::string proof_of(const HttpHeaderList& headers) {
    for (const auto& [name, value] : headers) {
      if (name == "DPoP") return value;
    }
    return {};
  }
  void take_only(const char* method) {
    server["token_endpoint_auth_methods_supported"] = json::array{method};
    publish();
  }
};

TEST_F(GrantTest, OfClientCredentialsWithASecret) {
  context->options.grant = GrantKind::client_credentials;
  context->options.client_id = "service";
  context->options.client_secret = "s";
  context->options.on_prompt = {};
  take_only("client_secret_post");
  ASSERT_TRUE(refuse(R"(Bearer scope="a")").value());
  EXPECT_EQ(token(), "Bearer t1");
  const FormFields request = token_requests().at(0);
  EXPECT_EQ(field_of(request, "grant_type"), "client_credentials");
  EXPECT_EQ(field_of(request, "scope"), "a");
  EXPECT_EQ(field_of(request, "resource"), "https://mcp.example/mcp");
  EXPECT_EQ(field_of(request, "client_secret"), "s");
  // There is no user to ask when the token expires.
  grant("t2");
  pass(3600s);
  authorizer().authorize("POST", context->server,
                         [&](Result<RequestAuthorization> result) { last = result; });
  loop.run();
  EXPECT_EQ((*last)->headers.front().second, "Bearer t2");
}

TEST_F(GrantTest, WhatAServerRepeatsOfTheRequestIsMaskedBeforeItIsCut) {
  context->options.grant = GrantKind::client_credentials;
  context->options.client_id = "service";
  context->options.client_secret = "s3cret/of+mine-1234";
  context->options.on_prompt = {};
  context->server = *parse_url("https://mcp.example/mcp");
  for (const char* const method : {"client_secret_post", "client_secret_basic"}) {
    for (const std::size_t before : {0U, 200U, 280U}) {
      take_only(method);
      http->answer = [&](const OauthRequest& request) -> std::optional<Result<OauthReply>> {
        if (request.url != "https://auth.example/token") return serve(request);
        std::string said = std::string(before, '.') + R"( "s3cret/of\u002Bmine-1234" )";
        for (const auto& [name, value] : request.headers) said += value + " ";
        return OauthReply{.status = 400,
                          .body = to_json(json::object{{"error", "invalid_client " + request.body},
                                                       {"error_description", said + request.body}}),
                          .dpop_nonce = {}};
      };
      made = nullptr;
      const auto outcome = refuse(R"(Bearer scope="a")");
      ASSERT_TRUE(outcome && !*outcome);
      const std::string shown = outcome->error().message + outcome->error().data;
      EXPECT_THAT(shown, HasSubstr("invalid_client"));
      for (const char* const part : {"s3c", "c2Vy", "mine"}) {
        EXPECT_THAT(shown, ::testing::Not(HasSubstr(part))) << method << before;
      }
      if (before == 0) EXPECT_THAT(shown, HasSubstr("***"));
    }
  }
}

TEST_F(GrantTest, ATokenThatTheRequestHadTooStaysInAReplyWithoutAnError) {
  context->options.grant = GrantKind::client_credentials;
  context->options.client_id = "service";
  context->options.client_secret = "the-same-as-the-token";
  context->options.on_prompt = {};
  take_only("client_secret_post");
  http->answer = [&](const OauthRequest& request) -> std::optional<Result<OauthReply>> {
    if (request.url != "https://auth.example/token") return serve(request);
    return OauthReply{.status = 200,
                      .body = to_json(json::object{{"access_token", "the-same-as-the-token"},
                                                   {"token_type", "Bearer"},
                                                   {"error", nullptr}}),
                      .dpop_nonce = {}};
  };
  ASSERT_TRUE(refuse(R"(Bearer scope="a")").value());
  EXPECT_EQ(token(), "Bearer the-same-as-the-token");
}

TEST_F(GrantTest, OfClientCredentialsWithAPrivateKey) {
  const SigningKey key = SigningKey::generate();
  context->options.grant = GrantKind::client_credentials;
  context->options.client_id = "service";
  context->options.private_key = key.to_pem();
  context->options.private_key_id = "k1";
  take_only("private_key_jwt");
  ASSERT_TRUE(refuse("Bearer").value());
  const FormFields request = token_requests().at(0);
  EXPECT_EQ(field_of(request, "client_assertion_type"),
            "urn:ietf:params:oauth:client-assertion-type:jwt-bearer");
  const std::string assertion(field_of(request, "client_assertion"));
  EXPECT_EQ(text_at(part(assertion, 0), "alg"), "ES256");
  EXPECT_EQ(text_at(part(assertion, 0), "kid"), "k1");
  const json::object claims = part(assertion, 1);
  EXPECT_EQ(text_at(claims, "iss"), "service");
  EXPECT_EQ(text_at(claims, "sub"), "service");
  EXPECT_EQ(text_at(claims, "aud"), "https://auth.example");
  EXPECT_EQ(claims.at("exp").as_int64(), 1'800'000'060);
}

TEST_F(GrantTest, OfAMachineSaysWhatItLacks) {
  context->options.grant = GrantKind::client_credentials;
  EXPECT_THAT(refuse("Bearer")->error().message, HasSubstr("client id"));
  made = nullptr;
  context->options.client_id = "service";
  EXPECT_THAT(refuse("Bearer")->error().message, HasSubstr("needs a secret or a private key"));
  made = nullptr;
  context->options.private_key = "no key";
  take_only("private_key_jwt");
  EXPECT_THAT(refuse("Bearer")->error().message, HasSubstr("private key cannot be used"));
  made = nullptr;
  context->options.private_key = {};
  EXPECT_THAT(refuse("Bearer")->error().message, HasSubstr("it takes only private_key_jwt"));
}

TEST_F(GrantTest, OfAnIdentityProviderIsAnIdJagFirst) {
  AuthorizationOptions& options = context->options;
  options.grant = GrantKind::identity_assertion;
  options.client_id = "at-server";
  options.client_secret = "s";
  options.idp_client_id = "at-idp";
  options.idp_token_endpoint = "https://idp.example/token";
  options.assertion = [] { return Result<std::string>("id-token"); };
  take_only("client_secret_basic");
  set("https://idp.example/token",
      {{"access_token", "jag"},
       {"token_type", "N_A"},
       {"issued_token_type", "urn:ietf:params:oauth:token-type:id-jag"}});
  ASSERT_TRUE(refuse("Bearer").value());
  EXPECT_EQ(token(), "Bearer t1");
  const OauthRequest& asked = http->asked.at(http->asked.size() - 2);
  EXPECT_EQ(asked.url, "https://idp.example/token");
  EXPECT_EQ(asked.named_by, NamedBy::user);
  const FormFields exchange = parse_form(asked.body);
  EXPECT_EQ(field_of(exchange, "audience"), "https://auth.example");
  EXPECT_EQ(field_of(exchange, "resource"), "https://mcp.example/mcp");
  EXPECT_EQ(field_of(exchange, "subject_token"), "id-token");
  EXPECT_EQ(field_of(exchange, "client_id"), "at-idp");
  EXPECT_EQ(field_of(token_requests().at(0), "assertion"), "jag");
}

TEST_F(GrantTest, OfAWorkloadIsTriedOnce) {
  context->options.grant = GrantKind::workload_identity;
  context->options.client_id = "workload";
  context->options.assertion = [] { return Result<std::string>("workload-jwt"); };
  refuse_token("invalid_grant");
  EXPECT_THAT(refuse("Bearer")->error().message, HasSubstr("invalid_grant"));
  EXPECT_THAT(refuse("Bearer")->error().message, HasSubstr("invalid_grant"));
  ASSERT_THAT(token_requests(), SizeIs(1));
  const FormFields request = token_requests().at(0);
  EXPECT_EQ(field_of(request, "grant_type"), "urn:ietf:params:oauth:grant-type:jwt-bearer");
  EXPECT_EQ(field_of(request, "assertion"), "workload-jwt");
  EXPECT_EQ(field_of(request, "client_id"), "workload");
}

TEST_F(GrantTest, OfADevicePollsAsItIsTold) {
  context->options.grant = GrantKind::device_code;
  logs_in = false;
  server["device_authorization_endpoint"] = "https://auth.example/device";
  publish();
  set("https://auth.example/device", {{"device_code", "d"},
                                      {"user_code", "WDJB-MJHT"},
                                      {"verification_uri", "https://auth.example/go"},
                                      {"expires_in", 900},
                                      {"interval", 5}});
  refuse_token("authorization_pending");
  EXPECT_FALSE(refuse("Bearer"));
  ASSERT_THAT(prompts, SizeIs(1));
  EXPECT_EQ(prompts[0].url, "https://auth.example/go");
  EXPECT_EQ(prompts[0].user_code, "WDJB-MJHT");
  const auto registration =
      std::ranges::find(http->asked, "https://auth.example/register", &OauthRequest::url);
  ASSERT_NE(registration, http->asked.end());
  EXPECT_THAT(registration->body, HasSubstr(R"("response_types":[])"));
  pass(4s);
  EXPECT_THAT(token_requests(), IsEmpty());
  pass(1s);
  EXPECT_THAT(token_requests(), SizeIs(1));
  refuse_token("slow_down");
  pass(5s);
  pass(5s);
  EXPECT_THAT(token_requests(), SizeIs(2));
  grant("t1");
  pass(5s);
  EXPECT_THAT(token_requests(), SizeIs(3));
  EXPECT_EQ(token(), "Bearer t1");
  EXPECT_EQ(field_of(token_requests().at(2), "device_code"), "d");
}

TEST_F(GrantTest, OfADeviceEndsWithItsCode) {
  context->options.grant = GrantKind::device_code;
  logs_in = false;
  server["device_authorization_endpoint"] = "https://auth.example/device";
  publish();
  set("https://auth.example/device", {{"device_code", "d"},
                                      {"user_code", "u"},
                                      {"verification_uri", "https://auth.example/go"},
                                      {"expires_in", 60}});
  refuse_token("authorization_pending");
  EXPECT_FALSE(refuse("Bearer"));
  pass(61s);
  EXPECT_THAT(refuse("Bearer")->error().message, HasSubstr("Nobody has logged in"));
}

// RFC 9449.
TEST_F(GrantTest, BindsTokensToAKeyWhereTheServerAsksForIt) {
  set("https://auth.example/token",
      {{"access_token", "bound"}, {"token_type", "DPoP"}, {"refresh_token", "r1"}});
  ASSERT_TRUE(refuse("DPoP algs=\"ES256\"").value());
  const std::string first = proof_of(http->asked.back().headers);
  EXPECT_EQ(text_at(part(first, 0), "typ"), "dpop+jwt");
  EXPECT_EQ(text_at(part(first, 1), "htm"), "POST");
  EXPECT_EQ(text_at(part(first, 1), "htu"), "https://auth.example/token");
  EXPECT_EQ(part(first, 1).contains("ath"), false);
  EXPECT_EQ(token("https://mcp.example/mcp?x=1"), "DPoP bound");
  const std::string proof = proof_of((*last)->headers);
  EXPECT_EQ(text_at(part(proof, 1), "htu"), "https://mcp.example/mcp");
  EXPECT_EQ(text_at(part(proof, 1), "ath"), to_base64url(sha256("bound")));
  EXPECT_EQ(object_at(part(proof, 0), "jwk")->contains("d"), false);
  token();
  EXPECT_NE(text_at(part(proof_of((*last)->headers), 1), "jti"), text_at(part(proof, 1), "jti"));
  // Another authorizer that reads the same store holds the same key.
  made = nullptr;
  token();
  EXPECT_EQ(object_at(part(proof_of((*last)->headers), 0), "jwk")->at("x"),
            object_at(part(proof, 0), "jwk")->at("x"));
}

TEST_F(GrantTest, UsesTheNoncesOfBothServers) {
  context->options.dpop = DpopPolicy::always;
  http->answer = [this](const OauthRequest& request) -> std::optional<Result<OauthReply>> {
    if (request.url != "https://auth.example/token") return serve(request);
    if (text_at(part(proof_of(request.headers), 1), "nonce") != "n1") {
      return OauthReply{.status = 400, .body = R"({"error":"use_dpop_nonce"})", .dpop_nonce = "n1"};
    }
    return OauthReply{
        .status = 200, .body = R"({"access_token":"bound","token_type":"DPoP"})", .dpop_nonce = {}};
  };
  ASSERT_TRUE(refuse("Bearer").value());
  EXPECT_THAT(token_requests(), SizeIs(2));
  ASSERT_TRUE(refuse(R"(DPoP error="use_dpop_nonce")", 401, "n2").value());
  EXPECT_THAT(token_requests(), SizeIs(2));
  token();
  EXPECT_EQ(text_at(part(proof_of((*last)->headers), 1), "nonce"), "n2");
}

TEST_F(GrantTest, TakesNoTokenThatItDidNotAskFor) {
  set("https://auth.example/token", {{"access_token", "x"}, {"token_type", "mac"}});
  EXPECT_THAT(refuse("Bearer")->error().message, HasSubstr("'mac'"));
}

}  // namespace
}  // namespace sluice
