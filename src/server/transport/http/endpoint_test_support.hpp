#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "auth/api_keys.hpp"
#include "net/server/server_test_support.hpp"
#include "net/websocket/websocket.hpp"
#include "protocol/negotiation.hpp"
#include "protocol/wire_schemas_test_support.hpp"
#include "server/calls/pending_request.hpp"
#include "server/dispatch/service.hpp"
#include "server/transport/http/http_endpoint.hpp"

namespace sluice {

/// A server with one loop and real sockets. Its tool `later` stores its calls in `calls`, and its
/// method `run` stores its streams in `runs`.
class EndpointTest : public ServerTest {
 protected:
  EndpointTest() {
    definition.name = "test";
    definition.version = "1";
    definition.tools.push_back(
        {.name = "later",
         .description = "",
         .input_schema = R"({"type":"object"})",
         .handler = Tool::Deferred(
             [this](const json::object&, std::shared_ptr<PendingRequest> call) -> Result<void> {
               calls.push_back(std::move(call));
               return {};
             })});
    definition.stream_methods.push_back(
        {.name = "run",
         .handler = [this](const json::object&, const MethodCaller&,
                           const std::shared_ptr<ChunkStream>& stream) -> Result<void> {
           runs.push_back(stream);
           return {};
         }});
    access.allowed_hosts = {"test"};
    access.allowed_origins = {"https://app.example"};
    handle = [this](const HttpRequest& request, HttpExchangePtr exchange) {
      endpoint->on_request(request, std::move(exchange));
    };
    streams = [this](const HttpRequest& head) { return endpoint->streams_body(head); };
    judges = [this](const HttpRequest& head) { return endpoint->judge(head); };
    lines_of = [this](const HttpRequest& head) { return endpoint->head_lines(head); };
  }
  [[nodiscard]] bool prepares_body(const HttpRequest& head, std::size_t size) const override {
    return endpoint->prepares_body(head, size);
  }
  std::unique_ptr<PreparedBody> prepare(const HttpRequest& head, std::string body,
                                        Executor::Task ready) override {
    return endpoint->prepare(head, std::move(body), std::move(ready));
  }
  void TearDown() override {
    calls.clear();
    ServerTest::TearDown();
    settle();
  }

  /// Accepts only callers that have one of these keys (name, key).
  void require(const std::vector<std::pair<std::string, std::string>>& keys) {
    access.authenticator = std::make_shared<ApiKeys>(keys);
  }

  Peer connect_to_endpoint() {
    if (!service) {
      policy = std::make_unique<AccessPolicy>(access);
      results = std::make_unique<ResultWriter>(definition);
      const std::vector<StreamShard> shards{{.executor = &loop, .streams = &manager}};
      sessions = std::make_unique<SessionRegistry>(session_limits, loop.clock());
      changes = std::make_unique<ChangeNotifier>(shards);
      tasks = std::make_unique<TaskStore>(TaskLimits{}, loop.clock(), *changes);
      const RefPtr catalog(new LoopCatalog(Catalog::make(definition).value(), *results, loop));
      service = std::make_unique<Service>(catalog, *policy, *sessions, quota, *changes, *tasks,
                                          shards, 0);
      HttpEndpoint::Options endpoint_options;
      endpoint_options.metrics = [] { return std::string("a_metric 1\n"); };
      endpoint_options.sse_sessions = std::make_shared<SseSessions>(*sessions);
      endpoint_options.not_ready = [this] { return not_ready; };
      endpoint = std::make_unique<HttpEndpoint>(*service, std::move(endpoint_options));
    }
    Peer peer = connect();
    peer.audit = expect_valid_messages;
    return peer;
  }
  /// The reply to a request on a connection of its own. The reply ends with `end`.
  std::string ask(std::string_view request, std::string_view end) {
    Peer peer = connect_to_endpoint();
    peer.send(request);
    EXPECT_TRUE(peer.expect(end)) << request << "\n" << peer.received;
    expect_valid(request, peer.taken + peer.received);
    return peer.taken;
  }
  /// The same for a reply whose body is one JSON object or nothing.
  std::string ask(std::string_view request) { return ask(request, "}}"); }

  /// Begins a session; returns the header field that names it.
  std::string initialize(std::string_view version = "2025-11-25",
                         std::string_view capabilities = "{}") {
    const std::string reply = ask(
        post("/mcp", R"({"jsonrpc":"2.0","id":0,"method":"initialize","params":{)"
                     R"("protocolVersion":")" +
                         std::string(version) + R"(","capabilities":)" + std::string(capabilities) +
                         R"(,"clientInfo":{"name":"test","version":"1"}}})"));
    static constexpr std::string_view kField = "Mcp-Session-Id: ";
    const std::size_t at = reply.find(kField);
    EXPECT_NE(at, std::string::npos) << reply;
    if (at == std::string::npos) return {};
    return reply.substr(at, reply.find("\r\n", at) + 2 - at);
  }

  /// Until the returned message is destroyed, no long message of the client of `of` is parsed:
  /// messages of a client are parsed one at a time.
  std::unique_ptr<LongMessage> hold_up_parsing(const PendingRequest& of) {
    bool is_parsed = false;
    auto message = service->long_messages.parse(
        R"({"jsonrpc":"2.0","method":"notifications/initialized"})", [&] { is_parsed = true; },
        of.principal().id);
    EXPECT_TRUE(until([&] { return is_parsed; }));
    return message;
  }
  /// Cancels request `id` in `session`, with a POST of its own.
  void cancel(std::string_view id, std::string_view session) {
    EXPECT_TRUE(ask(post("/mcp",
                         R"({"jsonrpc":"2.0","method":"notifications/cancelled","params":)"
                         R"({"requestId":)" +
                             std::string(id) + "}}",
                         session),
                    "\r\n\r\n")
                    .starts_with("HTTP/1.1 202 "));
  }

  /// Checks the messages of a reply against the schema of the revision that the request speaks.
  void expect_valid(std::string_view request, std::string_view reply) const {
    const Result<json::value> asked = parse_json(request.substr(request.find("\r\n\r\n") + 4));
    const SentCheck check =
        check_of(request, asked && asked->is_object() ? asked->get_object() : json::object());
    const std::size_t body = reply.find("\r\n\r\n");
    if (body == std::string_view::npos) return;
    for (std::string_view rest = reply.substr(body + 4); !rest.empty();) {
      std::string_view line = rest.substr(0, rest.find('\n'));
      rest.remove_prefix(std::min(rest.size(), line.size() + 1));
      if (line.starts_with("data: ")) line.remove_prefix(6);
      // A line that is still arriving is not whole.
      if (line.starts_with("{") && parse_json(line)) check.expect_valid(line);
    }
  }

  /// Checks all messages that a peer has received: the bodies and events of HTTP, or the frames of
  /// a WebSocket. It is not known here which request a response answers, so of responses only the
  /// envelope is checked.
  static void expect_valid_messages(std::string_view bytes) {
    std::vector<std::string> texts;
    if (bytes.starts_with("HTTP/1.1 101")) {
      texts = frames_of(bytes.substr(bytes.find("\r\n\r\n") + 4));
    } else {
      for (std::string_view rest = bytes; !rest.empty();) {
        std::string_view line = rest.substr(0, rest.find('\n'));
        rest.remove_prefix(std::min(rest.size(), line.size() + 1));
        if (line.starts_with("data: ")) line.remove_prefix(6);
        texts.emplace_back(line);
      }
    }
    for (const std::string& text : texts) {
      // Pieces of larger messages, and text that is no message, are not JSON objects.
      const Result<json::value> message = parse_json(text);
      if (!message || !message->is_object() || !message->get_object().contains("jsonrpc")) continue;
      const json::value* const result = message->get_object().if_contains("result");
      const bool modern =
          result != nullptr && result->is_object() && result->get_object().contains("resultType");
      SentCheck{&newest_revision(modern ? Era::modern : Era::legacy), ""}.expect_valid(text);
    }
  }

  StreamPolicy streams_policy{{}, std::size_t{64} << 20U, 100, 100};
  StreamManager manager{loop, streams_policy, 0, 1};
  ClientQuota quota{100};  // of calls
  ServerDefinition definition;
  AccessPolicy::Options access;
  SessionLimits session_limits;
  std::unique_ptr<SessionRegistry> sessions;
  std::unique_ptr<ChangeNotifier> changes;
  std::unique_ptr<TaskStore> tasks;
  std::string not_ready;
  std::unique_ptr<AccessPolicy> policy;
  std::unique_ptr<ResultWriter> results;
  std::unique_ptr<Service> service;
  std::unique_ptr<HttpEndpoint> endpoint;
  std::vector<std::shared_ptr<PendingRequest>> calls;
  std::vector<std::shared_ptr<ChunkStream>> runs;

 private:
  /// The text messages among frames that are not compressed.
  static std::vector<std::string> frames_of(std::string_view bytes) {
    struct Texts final : WebSocketEvents {
      void on_message(WebSocketOpcode /*opcode*/, std::string_view payload) override {
        found.emplace_back(payload);
      }
      void on_ping(std::string_view /*payload*/) override {}
      void on_pong(std::string_view /*payload*/) override {}
      void on_close(int /*code*/, std::string_view /*reason*/) override {}
      std::vector<std::string> found;
    };
    Texts texts;
    std::string copy(bytes);
    WebSocketDecoder(WebSocketDecoder::Role::client, bytes.size(), true).feed(copy, texts);
    return texts.found;
  }

  SentCheck check_of(std::string_view request, const json::object& asked) const {
    const auto text_at = [](const json::object& object, std::string_view key) {
      const json::value* const text = object.if_contains(key);
      return text != nullptr && text->is_string() ? std::string(text->get_string()) : std::string();
    };
    const json::value* const given = asked.if_contains("params");
    const json::object params =
        given != nullptr && given->is_object() ? given->get_object() : json::object();
    const json::value* const meta = params.if_contains("_meta");
    SentCheck check{&newest_revision(Era::legacy), text_at(asked, "method")};
    static constexpr std::string_view kField = "MCP-Protocol-Version: ";
    const std::size_t field = request.find(kField);
    const Revision* named = nullptr;
    if (meta != nullptr && meta->is_object() &&
        meta->get_object().contains("io.modelcontextprotocol/protocolVersion")) {
      named = &newest_revision(Era::modern);
    } else if (check.method == "initialize") {
      named = &negotiate_initialize(text_at(params, "protocolVersion"));
    } else if (field != std::string_view::npos) {
      named = find_revision(request.substr(field + kField.size(), 10));
    }
    if (named != nullptr) check.revision = named;
    return check;
  }
};

}  // namespace sluice
