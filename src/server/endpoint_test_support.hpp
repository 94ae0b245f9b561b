#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "net/server_test_support.hpp"
#include "server/http_endpoint.hpp"
#include "server/pending_request.hpp"
#include "server/service.hpp"

namespace sluice {

/// A server of one loop over real sockets. Its tool `later` keeps its calls, its method `run` its
/// streams.
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
         .handler = [this](const json::object&,
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
  }
  void TearDown() override {
    calls.clear();
    ServerTest::TearDown();
    settle();
  }

  Peer connect_to_endpoint() {
    if (!service) {
      policy = std::make_unique<AccessPolicy>(access);
      results = std::make_unique<ResultWriter>(definition);
      lists = std::make_unique<FeatureLists>(definition);
      schemas = std::make_unique<ToolSchemas>(ToolSchemas::compile(definition).value());
      const std::vector<StreamShard> shards{{.executor = &loop, .streams = &manager}};
      sessions = std::make_unique<SessionRegistry>(session_limits, loop.clock());
      changes = std::make_unique<Changes>(*sessions, shards);
      tasks = std::make_unique<TaskStore>(TaskLimits{}, loop.clock(), *changes);
      service = std::make_unique<Service>(definition, *results, *lists, *schemas, *policy,
                                          *sessions, *changes, *tasks, shards, 0);
      HttpEndpoint::Options endpoint_options;
      endpoint_options.metrics = [] { return std::string("a_metric 1\n"); };
      endpoint_options.sse_sessions = std::make_shared<SseSessions>(*sessions);
      endpoint_options.not_ready = [this] { return not_ready; };
      endpoint = std::make_unique<HttpEndpoint>(*service, std::move(endpoint_options));
    }
    return connect();
  }
  /// The reply to a request on a connection of its own, which ends with `end`.
  std::string ask(std::string_view request, std::string_view end) {
    Peer peer = connect_to_endpoint();
    peer.send(request);
    EXPECT_TRUE(peer.expect(end)) << request << "\n" << peer.received;
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

  StreamPolicy streams_policy{{}, std::size_t{64} << 20U, 100, 100};
  StreamManager manager{loop, streams_policy, 0, 1};
  ServerDefinition definition;
  AccessPolicy::Options access;
  SessionLimits session_limits;
  std::unique_ptr<SessionRegistry> sessions;
  std::unique_ptr<Changes> changes;
  std::unique_ptr<TaskStore> tasks;
  std::string not_ready;
  std::unique_ptr<AccessPolicy> policy;
  std::unique_ptr<ResultWriter> results;
  std::unique_ptr<FeatureLists> lists;
  std::unique_ptr<ToolSchemas> schemas;
  std::unique_ptr<Service> service;
  std::unique_ptr<HttpEndpoint> endpoint;
  std::vector<std::shared_ptr<PendingRequest>> calls;
  std::vector<std::shared_ptr<ChunkStream>> runs;
};

}  // namespace sluice
