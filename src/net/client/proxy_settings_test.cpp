#include "net/client/proxy_settings.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <map>
#include <string>

namespace sluice {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

using Variables = std::map<std::string, std::string>;

Result<std::optional<ProxyServer>> proxy_for(const Variables& variables, const std::string& url) {
  const ProxySettings settings([&variables](const char* name) -> const char* {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
  return settings.proxy_for(parse_url(url).value());
}

/// "host:port by variable", "none", or "error: ..."
std::string way_to(const Variables& variables, const std::string& url) {
  const auto proxy = proxy_for(variables, url);
  if (!proxy) return "error: " + proxy.error().message;
  if (!*proxy) return "none";
  return (*proxy)->host + ":" + std::to_string((*proxy)->port) + " by " + (*proxy)->variable;
}

bool is_direct(const std::string& exceptions, const std::string& url) {
  return way_to({{"all_proxy", "proxy.example"}, {"no_proxy", exceptions}}, url) == "none";
}

TEST(ProxySettingsTest, TheVariableIsThatOfTheScheme) {
  const Variables all = {
      {"http_proxy", "http://a:1"}, {"https_proxy", "http://b:2"}, {"all_proxy", "http://c:3"}};
  EXPECT_EQ(way_to(all, "http://mcp.example/mcp"), "a:1 by http_proxy");
  EXPECT_EQ(way_to(all, "ws://mcp.example/ws"), "a:1 by http_proxy");
  EXPECT_EQ(way_to(all, "https://mcp.example/mcp"), "b:2 by https_proxy");
  EXPECT_EQ(way_to(all, "wss://mcp.example/ws"), "b:2 by https_proxy");
  EXPECT_EQ(way_to({{"http_proxy", "http://a:1"}}, "https://mcp.example/"), "none");
  EXPECT_EQ(way_to({{"ALL_PROXY", "http://c:3"}}, "https://mcp.example/"), "c:3 by ALL_PROXY");
  EXPECT_EQ(way_to({}, "https://mcp.example/"), "none");
}

TEST(ProxySettingsTest, LowerCaseComesFirstAndEmptyIsUnset) {
  EXPECT_EQ(way_to({{"https_proxy", "a"}, {"HTTPS_PROXY", "b"}}, "https://mcp.example/"),
            "a:1080 by https_proxy");
  EXPECT_EQ(way_to({{"https_proxy", ""}, {"HTTPS_PROXY", "b"}}, "https://mcp.example/"),
            "b:1080 by HTTPS_PROXY");
  EXPECT_EQ(way_to({{"https_proxy", "a"}, {"no_proxy", ""}, {"NO_PROXY", "mcp.example"}},
                   "https://mcp.example/"),
            "none");
}

TEST(ProxySettingsTest, ARequestToACgiProgramSetsNoProxy) {
  const Variables cgi = {{"REQUEST_METHOD", "GET"}, {"HTTP_PROXY", "http://evil:1"}};
  EXPECT_EQ(way_to(cgi, "http://mcp.example/"), "none");
  EXPECT_EQ(way_to({{"HTTP_PROXY", "http://good:1"}}, "http://mcp.example/"),
            "good:1 by HTTP_PROXY");
  EXPECT_EQ(
      way_to({{"REQUEST_METHOD", "GET"}, {"http_proxy", "http://good:1"}}, "http://mcp.example/"),
      "good:1 by http_proxy");
}

TEST(ProxySettingsTest, ReadsTheUrlOfAProxy) {
  const auto read = [](const std::string& value) {
    return way_to({{"https_proxy", value}}, "https://mcp.example/");
  };
  EXPECT_EQ(read("cache"), "cache:1080 by https_proxy");
  EXPECT_EQ(read("cache:3128"), "cache:3128 by https_proxy");
  for (const std::string empty : {"http://cache:", "cache:", "http://mira:secret@cache:/"}) {
    EXPECT_EQ(read(empty), "cache:1080 by https_proxy") << empty;
  }
  EXPECT_EQ(read("HTTP://Cache:80/"), "cache:80 by https_proxy");
  EXPECT_EQ(read("http://[fd00::1]:"), "fd00::1:1080 by https_proxy");
  EXPECT_EQ(read("http://[fd00::1]"), "fd00::1:1080 by https_proxy");
  EXPECT_EQ(read("[fd00::1]:3128"), "fd00::1:3128 by https_proxy");
  EXPECT_EQ(read("http://mira:secret@cache:3128"), "cache:3128 by https_proxy");
}

TEST(ProxySettingsTest, TheUserInfoBecomesCredentials) {
  const auto credentials = [](const std::string& value) {
    return proxy_for({{"https_proxy", value}}, "https://mcp.example/").value()->credentials;
  };
  EXPECT_EQ(credentials("http://cache:3128"), "");
  EXPECT_EQ(credentials("http://Aladdin:open%20sesame@cache"),
            "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==");
  EXPECT_EQ(credentials("mira@cache"), "Basic bWlyYTo=");
  EXPECT_EQ(credentials("mira:a/b@c@cache"), "Basic bWlyYTphL2JAYw==");
}

TEST(ProxySettingsTest, SaysWhatIsWrongButNoPassword) {
  for (const std::string value :
       {"socks5://mira:secret@cache:1080", "https://mira:secret@cache", "http://mira:secret@",
        "mira:secret@cache:port", "http://mira:secret%@cache", "mira:secret@ca che"}) {
    EXPECT_THAT(way_to({{"HTTPS_PROXY", value}}, "https://mcp.example/"),
                AllOf(HasSubstr("error: The variable HTTPS_PROXY"),
                      HasSubstr("http://[user:password@]host[:port]"), Not(HasSubstr("secret"))));
    // Nobody else is troubled by it.
    EXPECT_EQ(way_to({{"HTTPS_PROXY", value}}, "http://mcp.example/"), "none");
    EXPECT_EQ(way_to({{"HTTPS_PROXY", value}, {"NO_PROXY", "*"}}, "https://mcp.example/"), "none");
  }
  EXPECT_THAT(way_to({{"HTTPS_PROXY", "socks5://cache"}}, "https://mcp.example/"),
              HasSubstr("scheme socks5 are not supported"));
}

TEST(ProxySettingsTest, ALabelHasNoCredentials) {
  const auto proxy =
      proxy_for({{"https_proxy", "mira:secret@[fd00::1]:3128"}}, "https://mcp.example/").value();
  EXPECT_EQ(proxy->label(), "proxy [fd00::1]:3128 (https_proxy)");
}

TEST(ProxySettingsTest, ThisMachineIsNeverReachedByAProxy) {
  for (const std::string host : {"localhost", "mcp.localhost", "127.0.0.1", "127.9.9.9", "[::1]"}) {
    EXPECT_TRUE(is_direct("", "http://" + host + ":8080/mcp")) << host;
  }
  EXPECT_FALSE(is_direct("", "http://localhost.example/"));
  EXPECT_FALSE(is_direct("", "http://10.0.0.1/"));
}

TEST(ProxySettingsTest, NoProxyNamesHostsAndDomains) {
  for (const std::string list : {"mcp.example", ".mcp.example", "*.mcp.example", "MCP.Example",
                                 "mcp.example.", "other, mcp.example", "other mcp.example"}) {
    EXPECT_TRUE(is_direct(list, "https://mcp.example/")) << list;
    EXPECT_TRUE(is_direct(list, "https://MCP.example./")) << list;
    EXPECT_TRUE(is_direct(list, "https://a.mcp.example/")) << list;
    EXPECT_FALSE(is_direct(list, "https://mcp.example.org/")) << list;
    EXPECT_FALSE(is_direct(list, "https://notmcp.example/")) << list;
    EXPECT_FALSE(is_direct(list, "https://example/")) << list;
  }
  EXPECT_TRUE(is_direct("*", "https://mcp.example/"));
  EXPECT_TRUE(is_direct("*", "https://10.0.0.1/"));
}

TEST(ProxySettingsTest, NoProxyNamesPorts) {
  EXPECT_TRUE(is_direct("mcp.example:8443", "https://mcp.example:8443/"));
  EXPECT_TRUE(is_direct("mcp.example:443", "https://mcp.example/"));
  EXPECT_FALSE(is_direct("mcp.example:8443", "https://mcp.example/"));
  EXPECT_TRUE(is_direct("[fd00::1]:8443", "https://[fd00::1]:8443/"));
  EXPECT_FALSE(is_direct("[fd00::1]:8443", "https://[fd00::1]/"));
  EXPECT_TRUE(is_direct("10.0.0.1:8443", "https://10.0.0.1:8443/"));
  EXPECT_FALSE(is_direct("10.0.0.1:8443", "https://10.0.0.1/"));
}

TEST(ProxySettingsTest, NoProxyNamesAddressesAndNetworks) {
  EXPECT_TRUE(is_direct("10.1.2.3", "https://10.1.2.3/"));
  EXPECT_FALSE(is_direct("10.1.2.3", "https://10.1.2.30/"));
  EXPECT_FALSE(is_direct("2.3", "https://10.1.2.3/"));
  EXPECT_TRUE(is_direct("10.0.0.0/8", "https://10.255.0.1/"));
  EXPECT_FALSE(is_direct("10.0.0.0/8", "https://11.0.0.1/"));
  EXPECT_TRUE(is_direct("172.16.0.0/12", "https://172.31.255.255/"));
  EXPECT_FALSE(is_direct("172.16.0.0/12", "https://172.32.0.0/"));
  EXPECT_TRUE(is_direct("0.0.0.0/0", "https://9.9.9.9/"));
  EXPECT_FALSE(is_direct("0.0.0.0/0", "https://[fd00::1]/"));
  EXPECT_FALSE(is_direct("10.0.0.0/8", "https://mcp.example/"));
  for (const std::string list : {"fd00::1", "[fd00::1]", "fd00::/8", "[fd00::]/8", "FD00:0::1"}) {
    EXPECT_TRUE(is_direct(list, "https://[fd00::1]/")) << list;
    EXPECT_FALSE(is_direct(list, "https://[fe00::1]/")) << list;
  }
}

TEST(ProxySettingsTest, SaysWhatIsWrongInNoProxy) {
  for (const std::string entry : {"10.0.0.0/33",
                                  "10.0.0.0/",
                                  "10.0.0.0/x",
                                  "mcp.example/8",
                                  "mcp.example/0",
                                  "mcp.example:",
                                  "mcp.example:0",
                                  "mcp.example:65536",
                                  "[fd00::1",
                                  "[]",
                                  "[fd00::1]x",
                                  "[mcp.example]",
                                  ".",
                                  "..example",
                                  ":80",
                                  "*:80",
                                  "**",
                                  "**.example",
                                  "*.*",
                                  "mcp.*",
                                  "m*p",
                                  "*.*.example:80"}) {
    EXPECT_THAT(way_to({{"all_proxy", "cache"}, {"NO_PROXY", "a.example," + entry}},
                       "https://mcp.example/"),
                HasSubstr("error: The variable NO_PROXY cannot be used: '" + entry + "' "));
  }
}

}  // namespace
}  // namespace sluice
