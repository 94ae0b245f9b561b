#include "client/authorization/oauth_reply.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>

namespace sluice {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(OauthReplyTest, ReadsTokens) {
  const auto reply = parse_token_reply(
      200, R"({"access_token":"t","token_type":"Bearer","expires_in":"3600","refresh_token":"r",
               "scope":"a b","extra":1})",
      "https://a");
  ASSERT_TRUE(reply);
  EXPECT_EQ(reply->access_token, "t");
  EXPECT_EQ(reply->token_type, "bearer");
  EXPECT_EQ(reply->expiry, 3600s);
  EXPECT_EQ(reply->refresh_token, "r");
  EXPECT_EQ(reply->scope, "a b");
}

TEST(OauthReplyTest, TakesNoTokenThatCouldBreakOutOfAHeaderField) {
  for (const char* token : {"", "a b", "a\\r\\nX: y", "\\u00e9"}) {
    const std::string body =
        std::string(R"({"token_type":"bearer","access_token":")") + token + R"("})";
    EXPECT_THAT(parse_token_reply(200, body, "https://a").error().message,
                HasSubstr("'access_token'"));
  }
}

TEST(OauthReplyTest, BoundsTimes) {
  const auto expiry = [](const std::string& value) {
    return parse_token_reply(
               200, R"({"access_token":"t","token_type":"bearer","expires_in":)" + value + "}", "a")
        ->expiry;
  };
  EXPECT_EQ(expiry("-5"), 0s);
  EXPECT_EQ(expiry("1e300"), std::chrono::hours(10 * 365 * 24));
  EXPECT_EQ(expiry("null"), std::nullopt);
  EXPECT_EQ(expiry(R"("soon")"), std::nullopt);
}

TEST(OauthReplyTest, TellsRefusalsFromTrouble) {
  const Error refused =
      parse_token_reply(400, R"({"error":"invalid_grant","error_description":"gone\n"})",
                        "https://a")
          .error();
  EXPECT_EQ(refused.code, kNotAuthorized);
  EXPECT_EQ(oauth_error(refused), "invalid_grant");
  EXPECT_THAT(refused.message, HasSubstr("invalid_grant (gone?)"));
  EXPECT_EQ(oauth_error(parse_token_reply(200, R"({"error":"slow_down"})", "a").error()),
            "slow_down");
  for (const int status : {500, 503, 429}) {
    const Error trouble = parse_token_reply(status, R"({"message":"x"})", "https://a").error();
    EXPECT_EQ(trouble.code, 502) << status;
    EXPECT_EQ(oauth_error(trouble), "");
  }
  EXPECT_EQ(parse_token_reply(503, R"({"error":"temporarily_unavailable"})", "a").error().code,
            502);
  EXPECT_EQ(parse_token_reply(404, "<html>", "https://a").error().code, kNotAuthorized);
  EXPECT_EQ(parse_token_reply(200, "<html>", "https://a").error().code, 500);
  EXPECT_EQ(parse_token_reply(200, "{}", "https://a").error().code, 500);
}

TEST(OauthReplyTest, CutsWhatAServerSaysBetweenWords) {
  const auto said = [](const std::string& description) {
    return make_oauth_error("a", "e", description).message;
  };
  EXPECT_THAT(said(std::string(280, '.') + " bearer half-of-a-token"), HasSubstr(". bearer ...)"));
  EXPECT_THAT(said(std::string(293, '.') + " bearer"), HasSubstr(". bearer)"));
  EXPECT_THAT(said(std::string(301, 'x')), HasSubstr("(...)"));
}

// inspector#737: an authorization server that knows no `resource`.
TEST(OauthReplyTest, SaysHowToLeaveOutTheResource) {
  EXPECT_THAT(parse_token_reply(400, R"({"error":"invalid_target"})", "a").error().message,
              HasSubstr("send_resource"));
}

TEST(OauthReplyTest, NeverQuotesATokenInAnError) {
  const Error error =
      parse_token_reply(200, R"({"access_token":"secret-1 x","refresh_token":"secret-2"})", "a")
          .error();
  EXPECT_THAT(error.message, Not(HasSubstr("secret")));
}

TEST(OauthReplyTest, ReadsRegistrations) {
  const auto reply = parse_registration_reply(
      201, R"({"client_id":"c","client_secret":"s","client_secret_expires_at":1900000000})", "a");
  ASSERT_TRUE(reply);
  EXPECT_EQ(reply->client_id, "c");
  EXPECT_EQ(reply->client_secret, "s");
  EXPECT_EQ(reply->secret_expires_at, 1900000000);
  EXPECT_FALSE(parse_registration_reply(201, "{}", "a"));
}

TEST(OauthReplyTest, ReadsDeviceReplies) {
  const auto reply = parse_device_reply(
      200, R"({"device_code":"d","user_code":"WDJB\u001b","verification_uri":"https://a/d",
               "expires_in":600})",
      "a");
  ASSERT_TRUE(reply);
  EXPECT_EQ(reply->interval, 5s);
  EXPECT_EQ(reply->user_code, "WDJB?");
  EXPECT_FALSE(parse_device_reply(200, R"({"device_code":"d"})", "a"));
}

}  // namespace
}  // namespace sluice
