// A run is traced: its spans reach a collector, and its calls carry their context.

#include "sluice/spans.hpp"

#include <chrono>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "agent_test_support.hpp"
#include "json/json.hpp"
#include "scripted_model.hpp"
#include "sluice/agent.hpp"
#include "sluice/authenticator.hpp"
#include "sluice/serve.hpp"
#include "sluice/server.hpp"

namespace sluice {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::SizeIs;

/// A collector of OpenTelemetry, as far as an exporter sees it.
class Collector {
 public:
  explicit Collector(std::vector<int> statuses = {}) : statuses_(std::move(statuses)) {}

  [[nodiscard]] std::string url() const {
    return "http://127.0.0.1:" + std::to_string(serving_.port()) + "/v1/traces";
  }
  [[nodiscard]] std::vector<json::value> requests() const {
    const std::lock_guard lock(mutex_);
    return requests_;
  }
  /// The names of all spans, with their traces.
  [[nodiscard]] std::multimap<std::string, std::string> spans() const {
    std::multimap<std::string, std::string> out;
    for (const json::value& request : requests()) {
      const json::value& scope = request.at("resourceSpans").at(0).at("scopeSpans").at(0);
      for (const json::value& span : scope.at("spans").as_array()) {
        out.emplace(span.at("name").as_string(), span.at("traceId").as_string());
      }
    }
    return out;
  }

 private:
  RouteReply answer(const RouteRequest& request) {
    const std::lock_guard lock(mutex_);
    EXPECT_EQ(request.head.field("Content-Type").value_or(""), "application/json");
    EXPECT_EQ(request.head.field("X-Key").value_or(""), "k");
    const int status = answers_ < statuses_.size() ? statuses_[answers_] : 200;
    ++answers_;
    if (status == 200) requests_.push_back(parse_json(request.body).value());
    return {.status = status, .content_type = "application/json", .body = "{}"};
  }

  std::vector<int> statuses_;  // of the first replies
  std::size_t answers_ = 0;
  mutable std::mutex mutex_;
  std::vector<json::value> requests_;
  Serving serving_ =
      start(Server("collector", "1"),
            http{.port = 0,
                 .routes = {{.method = "POST",
                             .path = "/v1/traces",
                             .answer =
                                 [this](const RouteRequest& request) { return answer(request); }}}},
            ServeOptions{.threads = 1})
          .value();
};

/// Runs an agent whose tool says which trace it is called in.
std::string trace_of_a_call(AgentOptions options, const TraceContext* parent = nullptr) {
  Server server("tools", "1");
  server.tool("trace", "Says its trace", [](Nothing, Call& call) {
    return std::string(call.trace() == nullptr ? "none" : call.trace()->trace_id());
  });
  options.servers = {{.label = "tools", .client = connect(server)}};
  const ScriptedModel model({calls("trace"), says("Done.")});
  const Agent agent(model.model(), std::move(options));
  EXPECT_TRUE(agent.run("Go", "", parent).result().is_completed());
  return model.asked(1).messages.back().content;
}

TEST(AgentSpans, ACollectorGetsTheSpansOfARunAndItsServersTheContext) {
  const Collector collector;
  const std::string trace = trace_of_a_call(
      {.spans = otlp_exporter({.url = collector.url(), .headers = {{"X-Key", "k"}}})});
  // All is sent once the exporter is gone.
  const auto spans = collector.spans();
  EXPECT_THAT(spans, SizeIs(4));
  EXPECT_THAT(spans, Contains(std::pair("execute_tool trace", trace)));
  EXPECT_THAT(spans, Contains(std::pair("invoke_agent agent", trace)));
}

TEST(AgentSpans, WhatACollectorWantsAgainIsSentAgain) {
  const Collector collector({503, 429});
  trace_of_a_call({.spans = otlp_exporter({.url = collector.url(), .headers = {{"X-Key", "k"}}})});
  EXPECT_THAT(collector.spans(), SizeIs(4));
}

TEST(AgentSpans, WhatACollectorRefusesIsDropped) {
  const Collector collector({400});
  trace_of_a_call({.spans = otlp_exporter({.url = collector.url(), .headers = {{"X-Key", "k"}}})});
  EXPECT_THAT(collector.spans(), SizeIs(0));
}

TEST(AgentSpans, WhoIsNotThereIsWaitedForOnlySoLong) {
  trace_of_a_call({.spans = otlp_exporter({.url = "http://127.0.0.1:1/v1/traces",
                                           .patience = std::chrono::milliseconds(1)})});
}

TEST(AgentSpans, ARunGoesOnWithTheTraceOfWhoCallsIt) {
  const TraceContext parent{.traceparent =
                                "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"};
  EXPECT_THAT(trace_of_a_call({}, &parent), HasSubstr("0af7651916cd43dd8448eb211c80319c"));
  EXPECT_THAT(trace_of_a_call({}), HasSubstr("none"));
}

TEST(AgentSpans, WhatIsNoCollectorIsRefused) {
  EXPECT_THROW(otlp_exporter({.url = "localhost:4318"}), Error);
  EXPECT_THROW(otlp_exporter({.url = "ws://localhost:4318"}), Error);
  EXPECT_THROW(otlp_exporter({.headers = {{"a b", "c"}}}), Error);
  EXPECT_THROW(otlp_exporter({.headers = {{"a", "b\nc"}}}), Error);
}

}  // namespace
}  // namespace sluice
