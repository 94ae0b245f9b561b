#include "net/http/http_parser.hpp"

#include <cctype>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>
#include <string_view>

namespace sluice {
namespace {

using ::testing::HasSubstr;

class HttpHeadParserTest : public ::testing::Test {
 protected:
  /// 0 if the head was found, 1 if it is not complete yet, or the status with which it is refused.
  int parse(std::string_view input) {
    bool found = false;
    const Result<void> parsed = parser_.parse(input, found, head_);
    if (!parsed) {
      EXPECT_FALSE(parsed.error().message.empty());
      EXPECT_FALSE(found);
      return parsed.error().code;
    }
    return found ? 0 : 1;
  }
  [[nodiscard]] const HttpRequest& request() const { return head_.request; }

  HttpHeadParser parser_{HttpParserLimits{}};
  HttpRequestHead head_;
};

TEST_F(HttpHeadParserTest, FindsTheParts) {
  const std::string input =
      "POST /mcp/x?a=1&b=&c HTTP/1.1\r\nhost: test\r\nMcp-Session-ID:  s1\t\r\nX-Own: y\r\n"
      "content-LENGTH: 2\r\nX-Empty:\r\n\r\n{}rest";
  ASSERT_EQ(parse(input), 0);
  EXPECT_EQ(request().method, Method::post);
  EXPECT_EQ(request().method_name, "POST");
  EXPECT_EQ(request().target, "/mcp/x?a=1&b=&c");
  EXPECT_EQ(request().path, "/mcp/x");
  EXPECT_EQ(request().query, "a=1&b=&c");
  EXPECT_EQ(request().minor_version, 1);
  EXPECT_EQ(request().headers.size(), 5U);
  EXPECT_EQ(request().header(KnownHeader::mcp_session_id), "s1");
  EXPECT_EQ(request().header("mcp-session-id"), "s1");
  EXPECT_EQ(request().header("x-own"), "y");
  EXPECT_EQ(request().header("X-OWN"), "y");
  EXPECT_NE(request().header("x-empty").data(), nullptr);
  EXPECT_EQ(request().header("x-none").data(), nullptr);
  EXPECT_FALSE(request().has(KnownHeader::accept));
  EXPECT_EQ(request().header(KnownHeader::accept).data(), nullptr);
  EXPECT_EQ(head_.size, input.size() - 6);
  EXPECT_EQ(head_.framing, BodyFraming::length);
  EXPECT_EQ(head_.content_length, 2U);
  EXPECT_TRUE(head_.keep_alive);
}

TEST_F(HttpHeadParserTest, FindsQueryParameters) {
  ASSERT_EQ(parse("GET /?a=1&bb=2=3&c&d= HTTP/1.1\r\nHost: t\r\n\r\n"), 0);
  EXPECT_EQ(request().query_parameter("a"), "1");
  EXPECT_EQ(request().query_parameter("bb"), "2=3");
  EXPECT_EQ(request().query_parameter("b").data(), nullptr);
  EXPECT_NE(request().query_parameter("c").data(), nullptr);
  EXPECT_EQ(request().query_parameter("c"), "");
  EXPECT_EQ(request().query_parameter("d"), "");
}

TEST_F(HttpHeadParserTest, KnowsEachHeaderItRecognises) {
  static constexpr std::string_view kNames[] = {
      "accept",
      "accept-encoding",
      "access-control-request-headers",
      "access-control-request-method",
      "authorization",
      "connection",
      "content-encoding",
      "content-length",
      "content-type",
      "cookie",
      "expect",
      "forwarded",
      "host",
      "last-event-id",
      "mcp-method",
      "mcp-name",
      "mcp-protocol-version",
      "mcp-session-id",
      "origin",
      "sec-websocket-extensions",
      "sec-websocket-key",
      "sec-websocket-protocol",
      "sec-websocket-version",
      "transfer-encoding",
      "upgrade",
      "user-agent",
      "x-api-key",
      "x-forwarded-for",
  };
  static_assert(std::size(kNames) == kKnownHeaders);
  for (std::size_t i = 0; i < kKnownHeaders; ++i) {
    std::string name(kNames[i]);
    EXPECT_EQ(known_header(name), static_cast<KnownHeader>(i)) << name;
    for (char& c : name) c = static_cast<char>(std::toupper(c));
    EXPECT_EQ(known_header(name), static_cast<KnownHeader>(i)) << name;
    name.back() = '?';
    EXPECT_EQ(known_header(name), KnownHeader::unknown) << name;
    name.pop_back();
    EXPECT_EQ(known_header(name), KnownHeader::unknown) << name;
  }
  for (std::size_t i = 0; i < kKnownHeaders; ++i) {
    for (std::size_t at = 0; at < kNames[i].size(); ++at) {
      for (int c = 0; c < 256; ++c) {
        std::string name(kNames[i]);
        name[at] = static_cast<char>(c);
        const bool is_known = std::tolower(c) == kNames[i][at];
        EXPECT_EQ(known_header(name) == static_cast<KnownHeader>(i), is_known) << name << c;
      }
    }
  }
  EXPECT_EQ(known_header(""), KnownHeader::unknown);
  EXPECT_EQ(known_header(std::string(1000, 'a')), KnownHeader::unknown);
}

TEST_F(HttpHeadParserTest, RefusesEveryOtherCharacterInANameThatIsNearlyKnown) {
  for (int c = 0; c < 256; ++c) {
    std::string name = "Content-Type";
    name[7] = static_cast<char>(c);
    const bool is_token =
        std::isalnum(c) != 0 || std::string_view("!#$%&'*+-.^_`|~").contains(static_cast<char>(c));
    // A colon ends the name, and the rest is its value.
    const bool is_end = c == ':';
    EXPECT_EQ(parse("GET / HTTP/1.1\r\nHost: t\r\n" + name + ": a\r\n\r\n"),
              is_token || is_end ? 0 : 400)
        << c;
    EXPECT_EQ(request().has(KnownHeader::content_type), c == '-') << c;
  }
}

TEST_F(HttpHeadParserTest, TakesTheFirstOfRepeatedHeadersAndSaysSo) {
  ASSERT_EQ(parse("GET / HTTP/1.1\r\nHost: t\r\nAccept: a\r\naccept: b\r\nOrigin: o\r\n\r\n"), 0);
  EXPECT_EQ(request().header(KnownHeader::accept), "a");
  EXPECT_TRUE(request().repeated(KnownHeader::accept));
  EXPECT_FALSE(request().repeated(KnownHeader::origin));
}

TEST_F(HttpHeadParserTest, TakesTheAbsoluteFormOfATarget) {
  ASSERT_EQ(parse("GET http://test:80/a?b HTTP/1.1\r\nHost: Test:80\r\n\r\n"), 0);
  EXPECT_EQ(request().path, "/a");
  EXPECT_EQ(request().query, "b");
  ASSERT_EQ(parse("GET HTTP://test HTTP/1.1\r\nHost: test\r\n\r\n"), 0);
  EXPECT_EQ(request().path, "/");
  EXPECT_EQ(parse("GET http://other/a HTTP/1.1\r\nHost: test\r\n\r\n"), 400);
  ASSERT_EQ(parse("OPTIONS * HTTP/1.1\r\nHost: t\r\n\r\n"), 0);
  EXPECT_EQ(request().path, "*");
}

TEST_F(HttpHeadParserTest, WaitsForTheWholeHead) {
  const std::string input = "GET / HTTP/1.1\r\nHost: t\r\nA: b\r\n\r\n";
  for (std::size_t size = 0; size < input.size(); ++size) {
    EXPECT_EQ(parse(std::string_view(input).substr(0, size)), 1) << size;
  }
  EXPECT_EQ(parse(input), 0);
}

TEST_F(HttpHeadParserTest, KnowsWhetherTheConnectionIsKept) {
  const auto is_kept = [this](const std::string& version, const std::string& headers) {
    EXPECT_EQ(parse("GET / HTTP/" + version + "\r\nHost: t\r\n" + headers + "\r\n"), 0);
    return head_.keep_alive;
  };
  EXPECT_TRUE(is_kept("1.1", ""));
  EXPECT_FALSE(is_kept("1.1", "Connection: x, CLOSE\r\n"));
  EXPECT_FALSE(is_kept("1.0", ""));
  EXPECT_TRUE(is_kept("1.0", "Connection: Keep-Alive\r\n"));
}

TEST_F(HttpHeadParserTest, HoldsItsLimits) {
  HttpHeadParser parser({.header_bytes = 200, .headers = 3, .uri = 50, .body = 10});
  bool found = false;
  const auto code = [&](const std::string& input) {
    const Result<void> parsed = parser.parse(input, found, head_);
    return parsed ? (found ? 0 : 1) : parsed.error().code;
  };
  const std::string host = " HTTP/1.1\r\nHost: t\r\n";
  EXPECT_EQ(code("GET /" + std::string(49, 'u') + host + "\r\n"), 0);
  EXPECT_EQ(code("GET /" + std::string(50, 'u') + host + "\r\n"), 414);
  EXPECT_EQ(code("GET /" + std::string(46, 'u')), 1);
  EXPECT_EQ(code("GET /" + std::string(50, 'u')), 414);
  EXPECT_EQ(code("GET /" + host + "a: 1\r\nb: 2\r\n\r\n"), 0);
  EXPECT_EQ(code("GET /" + host + "a: 1\r\nb: 2\r\nc: 3\r\n\r\n"), 431);
  EXPECT_EQ(code("GET /" + host + "a: " + std::string(150, 'v') + "\r\n\r\n"), 0);
  EXPECT_EQ(code("GET /" + host + "a: " + std::string(200, 'v') + "\r\n\r\n"), 431);
  EXPECT_EQ(code("GET /" + host + "a: " + std::string(200, 'v')), 431);
  const std::size_t around = ("GET /" + host + "a: \r\n\r\n").size();
  EXPECT_EQ(code("GET /" + host + "a: " + std::string(200 - around, 'v') + "\r\n\r\n"), 0);
  EXPECT_EQ(code("GET /" + host + "a: " + std::string(201 - around, 'v') + "\r\n\r\n"), 431);
  EXPECT_EQ(code("POST /" + host + "Content-Length: 10\r\n\r\n"), 0);
  EXPECT_EQ(code("POST /" + host + "Content-Length: 11\r\n\r\n"), 413);
}

TEST_F(HttpHeadParserTest, FindsAControlCharacterAnywhere) {
  for (std::size_t at = 0; at < 20; ++at) {
    for (int c = 0; c < 256; ++c) {
      std::string value(20, 'v');
      value[at] = static_cast<char>(c);
      const bool is_fine = (c >= 0x20 && c != 0x7F) || c == '\t';
      EXPECT_EQ(parse("GET / HTTP/1.1\r\nHost: t\r\nA: " + value + "\r\n\r\n"), is_fine ? 0 : 400)
          << c << " at " << at;
    }
  }
}

TEST_F(HttpHeadParserTest, TakesOnlyTokensAsNames) {
  for (int c = 0; c < 256; ++c) {
    const std::string name = std::string("na").append(1, static_cast<char>(c)).append("me");
    const bool is_token =
        std::isalnum(c) != 0 ||
        (c != 0 &&
         std::string_view("!#$%&'*+-.^_`|~").find(static_cast<char>(c)) != std::string_view::npos);
    const int expected = is_token ? 0 : 400;
    EXPECT_EQ(parse(name + " / HTTP/1.1\r\nHost: t\r\n\r\n"), c == ' ' ? 400 : expected) << c;
    // A colon ends the name.
    EXPECT_EQ(parse("GET / HTTP/1.1\r\nHost: t\r\n" + name + ": v\r\n\r\n"),
              c == ':' ? 0 : expected)
        << c;
  }
}

TEST_F(HttpHeadParserTest, LeavesNoDoubtWhereABodyEnds) {
  const auto code = [this](const std::string& fields) {
    return parse("POST / HTTP/1.1\r\nHost: t\r\n" + fields + "\r\n");
  };
  EXPECT_EQ(code("Content-Length: 3\r\n"), 0);
  EXPECT_EQ(code("Transfer-Encoding: CHUNKED\r\n"), 0);
  for (const char* fields : {
           "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n",
           "Transfer-Encoding: chunked\r\nContent-Length: 3\r\n",
           "Content-Length: 3\r\nContent-Length: 3\r\n",
           "Content-Length: 3, 3\r\n",
           "Content-Length: 3, 4\r\n",
           "Content-Length: -1\r\n",
           "Content-Length: +3\r\n",
           "Content-Length: 0x3\r\n",
           "Content-Length : 3\r\n",
           "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
       }) {
    EXPECT_EQ(code(fields), 400) << fields;
  }
  EXPECT_EQ(code("Content-Length: 99999999999999999999999\r\n"), 413);
  // The version is known, but something stands before it.
  EXPECT_EQ(parse("GET / / HTTP/1.1\r\nHost: t\r\n\r\n"), 400);
}

struct ChunkedCase {
  const char* name;
  std::string input;
  std::string body;  // if code is 0
  int code;
};

class BodyReaderTest : public ::testing::TestWithParam<ChunkedCase> {};

TEST_P(BodyReaderTest, ReadsOrRefusesCutAnywhere) {
  const ChunkedCase& c = GetParam();
  for (std::size_t cut = 0; cut <= c.input.size(); ++cut) {
    BodyReader reader(20);
    const std::string_view parts[] = {std::string_view(c.input).substr(0, cut),
                                      std::string_view(c.input).substr(cut)};
    int code = 0;
    std::size_t used = 0;
    for (const std::string_view part : parts) {
      const Result<std::size_t> fed = reader.feed(part);
      if (!fed) {
        code = fed.error().code;
        break;
      }
      used += *fed;
    }
    ASSERT_EQ(code, c.code) << "cut at " << cut;
    if (code != 0) continue;
    EXPECT_TRUE(reader.done());
    EXPECT_EQ(reader.body(), c.body);
    EXPECT_EQ(c.input.substr(used), "NEXT");
  }
}

INSTANTIATE_TEST_SUITE_P(
    Bodies, BodyReaderTest,
    ::testing::Values(
        ChunkedCase{"empty", "0\r\n\r\nNEXT", "", 0},
        ChunkedCase{"one", "5\r\nhello\r\n0\r\n\r\nNEXT", "hello", 0},
        ChunkedCase{"zeros", "0000A\r\n0123456789\r\n00\r\n\r\nNEXT", "0123456789", 0},
        ChunkedCase{"extensions", "3;a=\"b\"\r\nabc\r\n2 ;c\r\nde\r\n0;x\r\n\r\nNEXT", "abcde", 0},
        ChunkedCase{"trailers", "1\r\na\r\n0\r\nA: b\r\nC: d\r\n\r\nNEXT", "a", 0},
        ChunkedCase{"full", "14\r\n01234567890123456789\r\n0\r\n\r\nNEXT", "01234567890123456789",
                    0},
        ChunkedCase{"too_long", "15\r\n", "", 413},
        ChunkedCase{"too_long_in_all", "14\r\n01234567890123456789\r\n1\r\n", "", 413},
        ChunkedCase{"overflow", "fffffffffffffffff\r\n", "", 413},
        ChunkedCase{"no_size", "\r\n", "", 400}, ChunkedCase{"no_number", "5x\r\n", "", 400},
        ChunkedCase{"two_numbers", "1 0\r\na\r\n0\r\n\r\n", "", 400},
        ChunkedCase{"space", "1 \r\na\r\n0\r\n\r\n", "", 400},
        ChunkedCase{"negative", "-1\r\n", "", 400}, ChunkedCase{"bare_lf", "1\na\n0\n\n", "", 400},
        ChunkedCase{"bare_cr", "1\ra", "", 400},
        ChunkedCase{"longer_than_said", "1\r\nab\r\n", "", 400},
        ChunkedCase{"no_lf_behind_data", "1\r\na\rX", "", 400},
        ChunkedCase{"control_in_extension", "1;\x01\r\n", "", 400},
        ChunkedCase{"lf_in_trailer", "0\r\nA: b\nC: d\r\n\r\n", "", 400},
        ChunkedCase{"end_without_lf", "0\r\n\rX", "", 400}),
    [](const auto& case_info) { return case_info.param.name; });

TEST(BodyReader, TakesContentOfALengthAsItIs) {
  BodyReader reader = BodyReader::of_length(5);
  EXPECT_EQ(reader.feed("3\r\n"), 3U);
  EXPECT_FALSE(reader.done());
  EXPECT_EQ(reader.feed("abNEXT"), 2U);
  EXPECT_TRUE(reader.done());
  EXPECT_EQ(reader.body(), "3\r\nab");
}

TEST(BodyReader, BoundsExtensionsAndTrailers) {
  BodyReader extensions(10);
  EXPECT_EQ(extensions.feed("1;" + std::string(20'000, 'e')).error().code, 431);
  BodyReader many(100'000);
  for (int i = 0; i < 1000; ++i) {
    ASSERT_TRUE(many.feed("1;" + std::string(64, 'e') + "\r\nx\r\n")) << i;
  }
  BodyReader trailers(10);
  EXPECT_EQ(trailers.feed("0\r\nT: " + std::string(20'000, 't')).error().code, 431);
}

TEST(PeerAddress, IsWrittenAsUsual) {
  PeerAddress v4{.ip = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF, 127, 1, 2, 3}, .port = 1};
  EXPECT_EQ(v4.to_string(), "127.1.2.3");
  EXPECT_TRUE(v4.is_v4());
  EXPECT_TRUE(v4.is_loopback());
  v4.ip[12] = 10;
  EXPECT_FALSE(v4.is_loopback());
  PeerAddress v6{.ip = {0x20, 0x01, 0x0D, 0xB8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}, .port = 1};
  EXPECT_EQ(v6.to_string(), "2001:db8::1");
  EXPECT_FALSE(v6.is_v4());
  EXPECT_FALSE(v6.is_loopback());
  v6.ip = {};
  v6.ip[15] = 1;
  EXPECT_TRUE(v6.is_loopback());
}

TEST(ListHasToken, LooksAtWholeTokens) {
  EXPECT_TRUE(list_has_token("keep-alive, Upgrade", "upgrade"));
  EXPECT_TRUE(list_has_token("text/html;q=0.5 ,application/json ; a=b", "application/json"));
  EXPECT_FALSE(list_has_token("upgrades, up", "upgrade"));
  EXPECT_FALSE(list_has_token("", "upgrade"));
}

}  // namespace
}  // namespace sluice
