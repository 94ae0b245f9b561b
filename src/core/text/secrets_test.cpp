#include "core/text/secrets.hpp"

#include <gtest/gtest.h>

namespace sluice {
namespace {

TEST(SecretsTest, NamesThatSoundSecret) {
  for (const char* name : {"Authorization", "proxy-authorization", "Set-Cookie", "api_key",
                           "apiKey", "--api-key", "accessToken", "client_secret", "PASSWORD",
                           "DPoP", "X-Auth", "private_key_jwt", "credentials"}) {
    EXPECT_TRUE(sounds_secret(name)) << name;
  }
  for (const char* name : {"", "author", "name", "progressToken", "maxTokens", "method", "uri",
                           "Content-Type", "keywords"}) {
    EXPECT_FALSE(sounds_secret(name)) << name;
  }
}

TEST(SecretsTest, UrlsLoseWhatMayBeSecret) {
  EXPECT_EQ(masked_url("https://me:pw@host/a?x=1&key=2#access_token=3"),
            "https://***@host/a?x=***&key=***");
  EXPECT_EQ(masked_url("https://host/a@b"), "https://host/a@b");
  EXPECT_EQ(masked_url("/path?flag&code=abc"), "/path?flag&code=***");
  EXPECT_EQ(masked_url("https://host/#access_token=abc"), "https://host/");
  EXPECT_EQ(masked_url("/path#access_token=abc"), "/path");
  EXPECT_EQ(masked_url("http+unix:/run/x#/mcp?key=1"), "http+unix:/run/x#/mcp?key=***");
  EXPECT_EQ(masked_url(""), "");
}

TEST(SecretsTest, AWordLosesItsPasswordAlsoWithoutAScheme) {
  EXPECT_EQ(masked_word("me:pw@host:1/a?key=2"), "***@host:1/a?key=***");
  EXPECT_EQ(masked_word("me:p@w@host"), "***@host");
  EXPECT_EQ(masked_word("https://me:pw@host/a"), "https://***@host/a");
  for (const char* const word :
       {"", "docs", "@session", "server@1.2.3", "host:1/a@b", "http+unix:x@y", "unix:/run/a:b@c"}) {
    EXPECT_EQ(masked_word(word), word);
  }
}

TEST(SecretsTest, TextsThatLookLikeOne) {
  for (const char* text : {"Bearer abc", "basic abc", "sk-abc", "ghp_abc", "eyJhbGciOi"}) {
    EXPECT_TRUE(looks_like_secret(text)) << text;
  }
  for (const char* text : {"", "abc", "basically", "ask-me"}) {
    EXPECT_FALSE(looks_like_secret(text)) << text;
  }
}

}  // namespace
}  // namespace sluice
