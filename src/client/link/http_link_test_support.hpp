#pragma once

#include <chrono>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "client/link/http_fallback_link.hpp"
#include "client/link/http_link.hpp"
#include "client/session/client_session.hpp"
#include "net/http/sse.hpp"
#include "net/server/server_test_support.hpp"

namespace sluice::test {

inline constexpr std::string_view kEvents = "text/event-stream";
inline constexpr std::string_view kJson = "application/json";

/// A session whose server is the test, on real sockets and the same loop.
class HttpLinkTest : public ServerTest {
 protected:
  struct Asked {
    std::string method;
    std::string body;
    std::string accept, version, mcp_method, name, session, last_event;
    HttpExchangePtr reply;
  };

  HttpLinkTest() {
    handle = [this](const HttpRequest& request, HttpExchangePtr exchange) {
      Asked& each = asked.emplace_back();
      each.method = request.method == Method::post  ? "POST"
                    : request.method == Method::get ? "GET"
                                                    : "DELETE";
      each.body = request.body;
      each.accept = request.header("accept");
      each.version = request.header("mcp-protocol-version");
      each.mcp_method = request.header("mcp-method");
      each.name = request.header("mcp-name");
      each.session = request.header("mcp-session-id");
      each.last_event = request.header("last-event-id");
      each.reply = std::move(exchange);
    };
  }
  void TearDown() override {
    session = nullptr;
    asked.clear();
    ServerTest::TearDown();
    loop.discard_tasks();
  }
  void open(ClientSessionOptions options = {}) {
    start();
    HttpLinkOptions with{
        .url = Url{.scheme = "http", .host = "127.0.0.1", .port = port, .target = "/mcp"}};
    with.resumption = {.first = std::chrono::milliseconds(1),
                       .longest = std::chrono::milliseconds(1),
                       .attempts = 3};
    if (longest > Duration::zero()) with.resumption = {.first = longest, .longest = longest};
    with.http.idle_timeout = idle_timeout;
    with.ready_patience = ready_patience;
    with.lasting = lasting;
    options.on_listening = [this] { ++told_of_listening; };
    options.on_notification = [this](std::string_view method, const json::object&) {
      said.push_back(std::string(method));
    };
    std::unique_ptr<ServerLink> made;
    if (falls_back) {
      made = std::make_unique<HttpFallbackLink>(loop, std::move(with));
    } else {
      auto plain = std::make_unique<HttpLink>(loop, std::move(with));
      link = plain.get();
      made = std::move(plain);
    }
    session = std::make_shared<ClientSession>(loop, std::move(made), std::move(options));
    session->connect([this](Result<ServerDescription> outcome) { connected = std::move(outcome); });
  }
  void open_modern() {
    open();
    next().reply->reply(200, kJson, answer(1, R"({"supportedVersions":["2026-07-28"]})"));
    ASSERT_TRUE(until([this] { return connected.has_value(); }));
    ASSERT_TRUE(*connected);
  }
  void open_legacy(bool has_stream = false, const std::string& revision = "2025-11-25") {
    open({.revision = revision, .checks_output = true});
    const HeaderField id{"Mcp-Session-Id", "s-1"};
    next().reply->reply(200, kJson,
                        answer(1, R"({"protocolVersion":")" + revision + R"(","capabilities":{}})"),
                        std::span(&id, 1));
    ASSERT_TRUE(until([this] { return connected.has_value(); }));
    ASSERT_TRUE(*connected) << connected->error().message;
    Asked initialized = next();
    EXPECT_THAT(initialized.body, ::testing::HasSubstr("notifications/initialized"));
    EXPECT_EQ(initialized.session, "s-1");
    EXPECT_EQ(initialized.version, revision);
    initialized.reply->reply(202, {}, {});
    standalone = next();
    EXPECT_EQ(standalone.method, "GET");
    if (!has_stream) standalone.reply->reply(405, {}, {});
  }
  /// The next request that arrives.
  Asked next() {
    EXPECT_TRUE(until([this] { return !asked.empty(); }));
    if (asked.empty()) throw std::runtime_error("no request has come");
    Asked first = std::move(asked.front());
    asked.erase(asked.begin());
    return first;
  }
  static std::string answer(int id, std::string_view result) {
    return R"({"jsonrpc":"2.0","id":)" + std::to_string(id) + R"(,"result":)" +
           std::string(result) + "}";
  }
  static std::string event(std::string_view id, std::string_view data) {
    std::string out;
    append_sse_event(out, id, data);
    return out;
  }
  static std::string progress(int token, int value) {
    return R"({"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":)" +
           std::to_string(token) + R"(,"progress":)" + std::to_string(value) + "}}";
  }
  ClientSession::Number call(std::string_view tool = "tool") {
    return session->begin("tools/call", {{"name", tool}}, {},
                          {.on_progress =
                               [this](const json::object& params) {
                                 said.push_back("progress " + to_json(params.at("progress")));
                               },
                           .on_answer =
                               [this](Result<json::object> outcome) {
                                 said.push_back(outcome ? to_json(*outcome)
                                                        : std::to_string(outcome.error().code) +
                                                              " " + outcome.error().message);
                               }});
  }
  bool hears(std::size_t count) {
    return until([&] { return said.size() >= count; });
  }

  Duration idle_timeout = HttpClientOptions().idle_timeout;
  Duration ready_patience = std::chrono::hours(1);
  Duration lasting = std::chrono::hours(1);
  Duration longest = Duration::zero();  // and shortest wait before a resumption; 0: a millisecond
  std::vector<Asked> asked;
  Asked standalone;
  std::shared_ptr<ClientSession> session;
  bool falls_back = false;         // to HTTP with SSE
  const HttpLink* link = nullptr;  // valid with the session; null if that falls back
  std::optional<Result<ServerDescription>> connected;
  std::vector<std::string> said;
  int told_of_listening = 0;
};

}  // namespace sluice::test
