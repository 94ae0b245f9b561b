#include "cli/terminal/traffic_text.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>

namespace sluice {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

std::string message(std::string_view text) {
  return traffic_text({.is_sent = true, .transport = "stdio", .message = text});
}

TEST(TrafficTextTest, AMessageHasItsDirectionAndTransport) {
  EXPECT_EQ(message(R"({"jsonrpc":"2.0","id":1})"), R"(> stdio {"jsonrpc":"2.0","id":1})");
  EXPECT_EQ(traffic_text({.transport = "unix", .message = "Listening\non\x1b[2J 80"}),
            "< unix (no JSON) Listening on[2J 80");
}

TEST(TrafficTextTest, ValuesWhoseNamesSoundSecretAreMasked) {
  EXPECT_EQ(
      message(R"({"a":{"api_key":"x","token":7,"password":{"old":"y"},"list":[{"secret":"z"}]},)"
              R"("has_token":true,"progressToken":"p","maxTokens":5,"token":null})"),
      R"(> stdio {"a":{"api_key":"***","token":"***","password":"***","list":[{"secret":"***"}]},)"
      R"("has_token":true,"progressToken":"p","maxTokens":5,"token":null})");
  EXPECT_EQ(
      message(R"({"argument":{"name":"apiKey","value":"x"},"other":{"name":"a","value":"x"}})"),
      R"(> stdio {"argument":{"name":"apiKey","value":"***"},"other":{"name":"a","value":"x"}})");
  EXPECT_EQ(message(R"(["Bearer abc","https://me:pw@host/?code=abc","see https://a/?b=c"])"),
            R"(> stdio ["***","https://***@host/?code=***","see https://a/?b=c"])");
}

TEST(TrafficTextTest, ALongMessageIsCutAndItsSizeSaid) {
  const std::string line = message("[\"" + std::string(10'000, 'x') + "\"]");
  EXPECT_LT(line.size(), kMaxShownTraffic + 100);
  EXPECT_THAT(line, EndsWith("xxx... (10004 bytes)"));
}

TEST(TrafficTextTest, AHeadHasTheFieldsOfInterest) {
  EXPECT_EQ(
      traffic_text(
          {.is_sent = true,
           .transport = "http",
           .start = "POST http://host/mcp",
           .headers = {{"Content-Length", "5"}, {"Mcp-Method", "ping"}, {"Authorization", "***"}}}),
      "> http POST http://host/mcp  Mcp-Method: ping; Authorization: ***");
  EXPECT_EQ(traffic_text({.transport = "http", .start = "202"}), "< http 202");
}

}  // namespace
}  // namespace sluice
