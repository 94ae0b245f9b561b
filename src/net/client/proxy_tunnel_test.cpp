#include "net/client/proxy_tunnel.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>

#include "core/version.hpp"
#include "net/http/status_codes.hpp"

namespace sluice {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

ProxyServer cache(std::string credentials = {}) {
  return {.host = "cache",
          .port = 3128,
          .credentials = std::move(credentials),
          .variable = "https_proxy"};
}

/// Why a proxy that answers `reply` opens no tunnel; empty: it does, or more must come.
std::string refusal(std::string_view reply, std::string credentials = {}) {
  ProxyTunnel tunnel(parse_url("https://mcp.example/mcp").value(), cache(std::move(credentials)));
  const Result<void> fed = tunnel.feed(reply);
  if (fed) return {};
  EXPECT_EQ(fed.error().code, kBadGateway);
  EXPECT_FALSE(tunnel.is_open());
  return fed.error().message;
}

TEST(ProxyTunnelTest, AsksForTheHostAndThePort) {
  const ProxyTunnel plain(parse_url("https://mcp.example/mcp?a=b").value(), cache());
  EXPECT_EQ(plain.request().value(),
            "CONNECT mcp.example:443 HTTP/1.1\r\nHost: mcp.example:443\r\nUser-Agent: sluice/" +
                std::string(kVersion) + "\r\n\r\n");
  const ProxyTunnel known(parse_url("ws://[fd00::1]:8080/ws").value(), cache("Basic abc="));
  EXPECT_THAT(known.request().value(),
              AllOf(HasSubstr("CONNECT [fd00::1]:8080 HTTP/1.1\r\nHost: [fd00::1]:8080\r\n"),
                    HasSubstr("\r\nProxy-Authorization: Basic abc=\r\n\r\n")));
}

TEST(ProxyTunnelTest, IsOpenAfterTheHeadWhereverItIsCut) {
  // No body follows, whatever the head says (RFC 9110, section 9.3.6).
  const std::string reply =
      "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 Connection established\r\nContent-Length: "
      "5\r\n\r\n";
  for (std::size_t cut = 1; cut < reply.size(); ++cut) {
    ProxyTunnel tunnel(parse_url("https://mcp.example/").value(), cache());
    ASSERT_TRUE(tunnel.feed(reply.substr(0, cut)));
    ASSERT_FALSE(tunnel.is_open()) << cut;
    ASSERT_TRUE(tunnel.feed(reply.substr(cut)));
    ASSERT_TRUE(tunnel.is_open()) << cut;
  }
}

TEST(ProxyTunnelTest, SaysWhatTheProxySaid) {
  EXPECT_THAT(refusal("HTTP/1.1 403 Forbidden\r\nContent-Length: 9\r\n\r\nforbidden"),
              AllOf(HasSubstr("The proxy cache:3128 (https_proxy) does not connect to "
                              "mcp.example:443, but answers with HTTP 403 Forbidden"),
                    HasSubstr("NO_PROXY")));
  EXPECT_THAT(refusal("HTTP/1.1 101 Switching Protocols\r\n\r\n"), HasSubstr("HTTP 101"));
  EXPECT_THAT(refusal("HTTP/1.1 302 Found\r\nLocation: http://x/\r\n\r\n"), HasSubstr("HTTP 302"));
  EXPECT_THAT(refusal("SSH-2.0-OpenSSH\r\n"), HasSubstr("does not connect to mcp.example:443: "));
  EXPECT_THAT(refusal("HTTP/1.1 200 OK\r\n\r\nhello"), HasSubstr("more than a head"));
}

TEST(ProxyTunnelTest, SaysHowToGiveCredentials) {
  const std::string wanted =
      "HTTP/1.1 407 Proxy Authentication Required\r\n"
      "Proxy-Authenticate: Negotiate\r\nProxy-Authenticate: Basic realm=\"x\"\r\n\r\n";
  EXPECT_THAT(
      refusal(wanted),
      AllOf(HasSubstr("The proxy cache:3128 (https_proxy) wants a user name and a password"),
            HasSubstr("http://user:password@host:port")));
  EXPECT_THAT(refusal(wanted, "Basic c2VjcmV0"),
              AllOf(HasSubstr("does not take the user name and the password in the variable"),
                    Not(HasSubstr("c2VjcmV0"))));
  EXPECT_THAT(refusal("HTTP/1.1 407 No\r\nProxy-Authenticate: Negotiate\r\n"
                      "Proxy-Authenticate: NTLM\r\n\r\n"),
              HasSubstr("wants authentication by Negotiate, NTLM, and only Basic is supported"));
}

TEST(ProxyTunnelTest, LimitsTheHead) {
  ProxyTunnel tunnel(parse_url("https://mcp.example/").value(), cache());
  Result<void> fed = tunnel.feed("HTTP/1.1 200 OK\r\n");
  const std::string field = "X-Filler: " + std::string(1000, 'x') + "\r\n";
  std::size_t sent = 0;
  for (; fed && sent < 2 * ProxyTunnel::kMaxHead; sent += field.size()) fed = tunnel.feed(field);
  ASSERT_FALSE(fed);
  EXPECT_EQ(fed.error().code, kBadGateway);
  EXPECT_LE(sent, ProxyTunnel::kMaxHead + field.size());
}

}  // namespace
}  // namespace sluice
