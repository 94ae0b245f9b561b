#include "net/http/url.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>
#include <tuple>

namespace sluice {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(ParseUrl, TakesUrlsApart) {
  const auto url = parse_url("HTTPS://Example.ORG:8443/a/B?c=%20#frag");
  ASSERT_TRUE(url) << url.error().message;
  EXPECT_EQ(url->scheme, "https");
  EXPECT_EQ(url->host, "example.org");
  EXPECT_EQ(url->port, 8443);
  EXPECT_EQ(url->target, "/a/B?c=%20");
  EXPECT_TRUE(url->is_tls());
  EXPECT_FALSE(url->is_websocket());
  EXPECT_EQ(url->authority(), "example.org:8443");
  EXPECT_EQ(url->to_string(), "https://example.org:8443/a/B?c=%20");
}

TEST(ParseUrl, FillsInTheSchemesPort) {
  for (const auto& [text, port, tls, websocket] : {std::tuple{"http://h", 80, false, false},
                                                   {"https://h", 443, true, false},
                                                   {"ws://h", 80, false, true},
                                                   {"wss://h:", 443, true, true}}) {
    const auto url = parse_url(text);
    ASSERT_TRUE(url) << text;
    EXPECT_EQ(url->port, port);
    EXPECT_EQ(url->is_tls(), tls);
    EXPECT_EQ(url->is_websocket(), websocket);
    EXPECT_EQ(url->authority(), "h");
    EXPECT_EQ(url->target, "/");
  }
}

TEST(ParseUrl, TakesIpv6Addresses) {
  const auto url = parse_url("http://[::1]:8080?x");
  ASSERT_TRUE(url);
  EXPECT_EQ(url->host, "::1");
  EXPECT_EQ(url->port, 8080);
  EXPECT_EQ(url->target, "/?x");
  EXPECT_EQ(url->to_string(), "http://[::1]:8080/?x");
}

TEST(ParseUrl, SaysWhatIsWrong) {
  for (const auto& [text, why] : {std::pair{"", "begins with"},
                                  {"localhost:8080", "begins with"},
                                  {"ftp://h", "begins with"},
                                  {"http:/h", "begins with"},
                                  {"http://", "host is missing"},
                                  {"http:///x", "host is missing"},
                                  {"http://:80", "host is missing"},
                                  {"http://h:0", "from 1 to 65535"},
                                  {"http://h:65536", "from 1 to 65535"},
                                  {"http://h:8x", "from 1 to 65535"},
                                  {"http://h:-1", "from 1 to 65535"},
                                  {"http://h:99999999999", "from 1 to 65535"},
                                  {"http://[::1", "lacks its ']'"},
                                  {"http://[::g]", "not an IPv6 address"},
                                  {"http://[::1]8080", "only a port"},
                                  {"http://a,b", "no host name has"},
                                  {"http://h/a b", "no spaces"},
                                  {"http://h/\r\nX: y", "no spaces"},
                                  {"http://h/\xC3\xA4", "no spaces"}}) {
    const auto url = parse_url(text);
    ASSERT_FALSE(url) << text;
    EXPECT_EQ(url.error().code, 400);
    EXPECT_THAT(url.error().message, HasSubstr(why)) << text;
  }
}

TEST(ParseUrl, DoesNotRepeatSecrets) {
  for (const char* const text : {"http://user:secret@h/", "user:secret@h/x", "http://h:0/?a=secret",
                                 "ftp://h/?token=secret"}) {
    const auto url = parse_url(text);
    ASSERT_FALSE(url);
    EXPECT_THAT(url.error().message, Not(HasSubstr("secret")));
  }
}

TEST(ParseUrl, HasALimit) {
  EXPECT_TRUE(parse_url("http://h/" + std::string(8000, 'a')));
  EXPECT_FALSE(parse_url("http://h/" + std::string(9000, 'a')));
}

TEST(WithTarget, ReplacesPathAndQuery) {
  const auto url = parse_url("http://h:1/a?b");
  ASSERT_TRUE(url);
  EXPECT_EQ(with_target(*url, "/c").to_string(), "http://h:1/c");
}

}  // namespace
}  // namespace sluice
