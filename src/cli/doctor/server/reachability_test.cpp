#include "cli/doctor/server/reachability.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <optional>
#include <string>

#include "net/http/status_codes.hpp"

namespace sluice {
namespace {

using Status = Check::Status;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(DoctorReachability, SaysWhatIsInTheWay) {
  const Url url = parse_url("https://mcp.example/mcp").value();
  const AddressFacts there{.address = "192.0.2.1", .problem = {}};
  const AddressFacts absent{.address = "2001:db8::1", .problem = "Connection refused"};
  const auto last = [&](const Result<ConnectionFacts>& facts, bool goes_on) {
    Checks out;
    EXPECT_EQ(examine_reachability(url, std::nullopt, facts, out), goes_on);
    return out;
  };
  EXPECT_EQ(last(fail(kBadGateway, "no such name"), false).back().status, Status::fail);
  EXPECT_EQ(last(ConnectionFacts{.addresses = {absent}}, false).back().status, Status::fail);
  const TlsFacts good{.version = "TLSv1.3", .problem = {}, .days_left = 60};
  const Checks half = last(ConnectionFacts{.addresses = {absent, there}, .tls = good}, true);
  EXPECT_EQ(half.at(1).status, Status::warn) << half.at(1).finding;
  EXPECT_EQ(half.back().status, Status::ok);
  const TlsFacts ending{.version = "TLSv1.3", .problem = {}, .days_left = 3};
  EXPECT_EQ(last(ConnectionFacts{.addresses = {there}, .tls = ending}, true).back().status,
            Status::warn);
  const TlsFacts bad{.version = "TLSv1.3", .problem = "hostname mismatch", .days_left = 60};
  const Checks refused = last(ConnectionFacts{.addresses = {there}, .tls = bad}, false);
  EXPECT_EQ(refused.back().status, Status::fail);
  EXPECT_THAT(refused.back().finding, HasSubstr("hostname mismatch"));
  EXPECT_EQ(last(ConnectionFacts{.addresses = {there}, .tls_problem = "no TLS"}, false).size(), 3U);
}

TEST(DoctorReachability, SaysWhichProxyIsInBetween) {
  const Url url = parse_url("https://mcp.example/mcp").value();
  const ProxyServer proxy{
      .host = "cache", .port = 3128, .credentials = "Basic c2VjcmV0", .variable = "HTTPS_PROXY"};
  const auto checks = [&](const Result<ConnectionFacts>& facts, bool goes_on) {
    Checks out;
    EXPECT_EQ(examine_reachability(url, proxy, facts, out), goes_on);
    for (const Check& each : out) EXPECT_THAT(each.finding, Not(HasSubstr("c2VjcmV0")));
    return out;
  };
  const AddressFacts there{.address = "192.0.2.1", .problem = {}};
  const TlsFacts good{.version = "TLSv1.3", .problem = {}, .days_left = 60};
  const Checks all = checks(ConnectionFacts{.addresses = {there}, .tls = good}, true);
  EXPECT_EQ(all.front().finding, "by the proxy cache:3128 (HTTPS_PROXY)");
  const Checks refused =
      checks(ConnectionFacts{.addresses = {there}, .tunnel_problem = "HTTP 403"}, false);
  EXPECT_EQ(refused.back().subject, "tunnel");
  EXPECT_EQ(refused.back().finding, "HTTP 403");
  const Checks unknown = checks(fail(kBadGateway, "no such name"), false);
  EXPECT_THAT(unknown.back().finding, HasSubstr("cache: no such name"));
  EXPECT_THAT(unknown.back().fix, HasSubstr("HTTPS_PROXY"));
}

}  // namespace
}  // namespace sluice
