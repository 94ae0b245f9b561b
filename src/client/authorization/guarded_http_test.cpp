#include "client/authorization/guarded_http.hpp"

#include <arpa/inet.h>
#include <chrono>
#include <cstring>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "client/authorization/redirect_receiver.hpp"
#include "net/server/server_test_support.hpp"

namespace sluice {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class GuardedHttpTest : public ServerTest {
 protected:
  GuardedHttpTest() {
    handle = [this](const HttpRequest& request, HttpExchangePtr exchange) {
      asked.emplace_back(request.target);
      answer(request, std::move(exchange));
    };
    answer = [](const HttpRequest&, HttpExchangePtr exchange) { exchange->reply(200, {}, "ok"); };
  }
  void TearDown() override {
    http = nullptr;
    ServerTest::TearDown();
    loop.discard_tasks();
  }
  /// Asks as a client of the MCP server `of`.
  Result<OauthReply> ask(const std::string& of, OauthRequest request) {
    if (!server) start();
    made.server = *parse_url(of);
    http = std::make_unique<GuardedHttp>(loop, made);
    for (const std::string& each : connected_at) {
      http->server_is_at(endpoints_of_address(each, 1).at(0));
    }
    std::optional<Result<OauthReply>> reply;
    http->send(std::move(request), [&](Result<OauthReply> got) { reply = std::move(got); });
    EXPECT_FALSE(reply);
    EXPECT_TRUE(until([&] { return reply.has_value(); }));
    return reply.value_or(fail(0, "nothing"));
  }
  std::string here(const std::string& target = "/") {
    if (!server) start();
    return "http://127.0.0.1:" + std::to_string(port) + target;
  }
  void redirect_to(const std::string& place) {
    answer = [place](const HttpRequest&, HttpExchangePtr exchange) {
      const HeaderField location{"Location", place};
      exchange->reply(302, {}, {}, std::span(&location, 1));
    };
  }

  GuardedHttpOptions made;
  std::vector<std::string>
      connected_at;  // addresses of the MCP server, as its client has seen them
  std::unique_ptr<GuardedHttp> http;
  std::vector<std::string> asked;
  std::function<void(const HttpRequest&, HttpExchangePtr)> answer;
};

TEST_F(GuardedHttpTest, AsksThisMachineForAServerOnIt) {
  const auto reply = ask("http://127.0.0.1:1/mcp", {.url = here("/a")});
  ASSERT_TRUE(reply) << reply.error().message;
  EXPECT_EQ(reply->body, "ok");
  EXPECT_TRUE(ask("http://localhost:1/mcp", {.url = here("/a")}));
}

TEST_F(GuardedHttpTest, DoesNotAskThisMachineForAServerElsewhere) {
  const auto reply = ask("https://192.0.2.1/mcp", {.url = here("/admin")});
  ASSERT_FALSE(reply);
  EXPECT_EQ(reply.error().code, 400);
  EXPECT_THAT(reply.error().message, HasSubstr("allow private addresses"));
  EXPECT_THAT(asked, IsEmpty());
  // A name leads there too.
  EXPECT_FALSE(
      ask("https://192.0.2.1/mcp", {.url = "http://localhost:" + std::to_string(port) + "/"}));
  // Of another kind than the server's own.
  EXPECT_FALSE(ask("https://10.0.0.1/mcp", {.url = here()}));
  EXPECT_THAT(asked, IsEmpty());
  made.allow_private_addresses = true;
  EXPECT_TRUE(ask("https://192.0.2.1/mcp", {.url = here("/admin")}));
}

// The name of the server may mean this machine when it is looked up again.
TEST_F(GuardedHttpTest, JudgesTheServerByTheAddressThatItWasConnectedAt) {
  const std::string local = "http://localhost:1/mcp";
  EXPECT_TRUE(ask(local, {.url = here("/a")}));
  connected_at = {"192.0.2.1"};
  EXPECT_FALSE(ask(local, {.url = here("/admin")}));
  connected_at = {"192.0.2.1", "127.0.0.1", "127.0.0.1"};
  EXPECT_FALSE(ask(local, {.url = here("/admin")}));
  EXPECT_THAT(asked, ElementsAre("/a"));
  connected_at = {"127.0.0.1", "::1"};
  EXPECT_TRUE(ask("http://mcp.invalid/mcp", {.url = here("/b")}));
}

// A proxy looks up names itself.
TEST_F(GuardedHttpTest, JudgesOnlyAddressesThatAProxyIsToldAndWhatItIsNotFor) {
  const std::string proxy = "127.0.0.1:" + std::to_string((here(), port));
  made.proxies = std::make_shared<const ProxySettings>([&](const char* name) -> const char* {
    if (std::string_view(name) == "no_proxy") return "direct.invalid,10.0.0.1";
    return std::string_view(name) == "all_proxy" ? proxy.c_str() : nullptr;
  });
  const std::string behind = "http://mcp.invalid/mcp";
  const auto reply = ask(behind, {.url = "http://login.invalid/a"});
  ASSERT_TRUE(reply) << reply.error().message;
  EXPECT_THAT(asked, ElementsAre("http://login.invalid/a"));
  for (const std::string place : {"10.0.0.2", "169.254.169.254", "10.1", "[fd00::1]", "10.0.0.1"}) {
    const auto refused = ask(behind, {.url = "http://" + place + "/admin"});
    ASSERT_FALSE(refused) << place;
    EXPECT_EQ(refused.error().code, 400);
  }
  // The server counts as one that is elsewhere, and this machine is asked without the proxy.
  EXPECT_FALSE(ask(behind, {.url = here("/admin")}));
  EXPECT_THAT(asked, ElementsAre("http://login.invalid/a"));
  // A server at a private address may name others of this kind.
  EXPECT_TRUE(ask("http://10.0.0.9/mcp", {.url = "http://10.0.0.2/b"}));
  EXPECT_THAT(asked, ElementsAre("http://login.invalid/a", "http://10.0.0.2/b"));
}

TEST_F(GuardedHttpTest, SaysThatTheEnvironmentNamesNoProxy) {
  made.proxies = std::make_shared<const ProxySettings>([](const char* name) {
    return std::string_view(name) == "https_proxy" ? "socks5://mira:secret@cache" : nullptr;
  });
  const auto reply = ask("https://mcp.invalid/mcp", {.url = "https://login.invalid/"});
  ASSERT_FALSE(reply);
  EXPECT_THAT(reply.error().message, AllOf(HasSubstr("https_proxy"), Not(HasSubstr("secret")),
                                           Not(HasSubstr("private addresses"))));
}

TEST_F(GuardedHttpTest, NeverAsksTheMetadataServiceOfACloud) {
  made.allow_private_addresses = true;
  const auto reply =
      ask("http://127.0.0.1/mcp", {.url = "http://169.254.169.254/latest/meta-data/"});
  ASSERT_FALSE(reply);
  EXPECT_EQ(reply.error().code, 400);
}

TEST_F(GuardedHttpTest, AsksWhatTheUserNames) {
  EXPECT_TRUE(ask("https://192.0.2.1/mcp", {.url = here(), .named_by = NamedBy::user}));
}

TEST_F(GuardedHttpTest, NeedsTlsElsewhere) {
  const auto reply = ask("https://192.0.2.1/mcp", {.url = "http://192.0.2.2/token"});
  EXPECT_THAT(reply.error().message, HasSubstr("OAuth 2.1, section 1.5"));
  EXPECT_FALSE(ask("https://192.0.2.1/mcp", {.url = "wss://192.0.2.2/token"}));
  EXPECT_THAT(ask("https://192.0.2.1/mcp", {.url = "javascript:x"}).error().message,
              HasSubstr("http://"));
}

TEST_F(GuardedHttpTest, FollowsAFewRedirects) {
  int left = 3;
  answer = [&](const HttpRequest&, HttpExchangePtr exchange) {
    if (left-- <= 0) return exchange->reply(200, {}, "there");
    const HeaderField location{"Location", "/next"};
    exchange->reply(307, {}, {}, std::span(&location, 1));
  };
  EXPECT_EQ(ask("http://127.0.0.1/mcp", {.url = here("/first")})->body, "there");
  EXPECT_THAT(asked, ElementsAre("/first", "/next", "/next", "/next"));
  left = 1000;
  EXPECT_THAT(ask("http://127.0.0.1/mcp", {.url = here("/?token=s3cret")}).error().message,
              AllOf(HasSubstr("too many redirects"), Not(HasSubstr("s3cret"))));
}

TEST_F(GuardedHttpTest, GuardsRedirectsToo) {
  redirect_to("http://169.254.169.254/");
  EXPECT_EQ(ask("http://127.0.0.1/mcp", {.url = here()}).error().code, 400);
  redirect_to("http://192.0.2.1/");
  EXPECT_THAT(ask("https://127.0.0.1/mcp", {.url = here()}).error().message,
              HasSubstr("needs https"));
}

TEST_F(GuardedHttpTest, RedirectsNothingButGet) {
  redirect_to("/elsewhere");
  const auto reply = ask("http://127.0.0.1/mcp",
                         {.method = "POST", .url = here("/token"), .body = "client_secret=s"});
  EXPECT_EQ(reply->status, 302);
  EXPECT_THAT(asked, ElementsAre("/token"));
}

TEST_F(GuardedHttpTest, LimitsSizeAndTime) {
  answer = [](const HttpRequest&, HttpExchangePtr exchange) {
    exchange->reply(200, {}, std::string(OauthHttp::kMaxReply + 1, 'x'));
  };
  EXPECT_THAT(ask("http://127.0.0.1/mcp", {.url = here()}).error().message,
              HasSubstr("more than a client takes"));
  std::vector<HttpExchangePtr> silent;
  answer = [&](const HttpRequest&, HttpExchangePtr exchange) {
    silent.push_back(std::move(exchange));
  };
  made.timeout = 20ms;
  EXPECT_EQ(ask("http://127.0.0.1/mcp", {.url = here()}).error().code, 504);
}

class RedirectReceiverTest : public ServerTest {
 protected:
  void TearDown() override {
    receiver = nullptr;
    ServerTest::TearDown();
    loop.discard_tasks();
  }
  void listen() {
    auto listening = listen_for_redirect(loop, "localhost", 0, [this](std::string_view query) {
      queries.emplace_back(query);
      return verdict;
    });
    ASSERT_TRUE(listening);
    receiver = *std::move(listening);
    url = *parse_url(receiver->redirect_uri());
  }
  /// What a browser gets that sends `request`.
  std::string get(const std::string& request) {
    Peer peer(*this, url.port);
    peer.send(request);
    peer.expect_end();
    return peer.received;
  }

  std::unique_ptr<RedirectReceiver> receiver;
  Url url;
  RedirectVerdict verdict = RedirectVerdict::accepted;
  std::vector<std::string> queries;
};

TEST_F(RedirectReceiverTest, TakesTheQuery) {
  listen();
  EXPECT_EQ(url.host, "localhost");
  EXPECT_EQ(url.target, "/callback");
  const std::string page = get("GET /callback?code=secret&state=s HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_THAT(queries, ElementsAre("code=secret&state=s"));
  EXPECT_THAT(page, HasSubstr("200 OK"));
  EXPECT_THAT(page, Not(HasSubstr("secret")));
  verdict = RedirectVerdict::not_of_it;
  EXPECT_THAT(get("GET /callback HTTP/1.1\r\n\r\n"), HasSubstr("400 Bad Request"));
}

TEST_F(RedirectReceiverTest, TakesNothingElse) {
  listen();
  for (const char* request :
       {"GET / HTTP/1.1\r\n\r\n", "GET /callback2?code=x HTTP/1.1\r\n\r\n",
        "POST /callback?code=x HTTP/1.1\r\n\r\n", "GET /callback?a b HTTP/1.1\r\n\r\n",
        "GET /callback?code=x\r\n\r\n", "\r\n\r\n"}) {
    EXPECT_THAT(get(request), HasSubstr("404 Not Found")) << request;
  }
  EXPECT_EQ(get(std::string(20'000, 'x')), "");
  EXPECT_THAT(queries, IsEmpty());
}

// So whoever only holds connections does not keep the browser out.
TEST_F(RedirectReceiverTest, TheNewestConnectionTakesThePlaceOfTheOldest) {
  listen();
  std::vector<std::unique_ptr<Peer>> peers;
  for (int i = 0; i < 40; ++i) peers.push_back(std::make_unique<Peer>(*this, url.port));
  settle();
  EXPECT_TRUE(peers.front()->expect_end());
  peers.back()->send("GET /callback?a=b HTTP/1.1\r\n\r\n");
  EXPECT_TRUE(peers.back()->expect("200 OK"));
}

TEST_F(RedirectReceiverTest, SaysThatAPortIsInUse) {
  listen();
  EXPECT_FALSE(listen_for_redirect(loop, "127.0.0.1", url.port,
                                   [](std::string_view) { return RedirectVerdict::accepted; }));
}

}  // namespace
}  // namespace sluice
