#include "engine/openai/openai_engine.hpp"

#include <future>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "net/client/client_test_support.hpp"

namespace sluice {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;

/// Keeps an answer, which comes on another thread.
class KeepingSink final : public GenerationSink {
 public:
  bool on_delta(Delta delta) override {
    const std::lock_guard lock(mutex_);
    deltas_.push_back(std::move(delta));
    return true;
  }
  void on_complete(Completion completion) override {
    const std::lock_guard lock(mutex_);
    end_ = std::move(completion);
  }
  [[nodiscard]] bool has_ended() const {
    const std::lock_guard lock(mutex_);
    return end_.has_value();
  }
  // Once it has ended.
  [[nodiscard]] const std::vector<Delta>& deltas() const { return deltas_; }
  [[nodiscard]] const Completion& end() const { return *end_; }

 private:
  mutable std::mutex mutex_;
  std::vector<Delta> deltas_;
  std::optional<Completion> end_;
};

class OpenAiEngineTest : public ::testing::Test {
 protected:
  /// The peer of the n-th request, whose body ends with "}".
  ScriptedServer::Peer& asked(std::size_t n) {
    EXPECT_TRUE(run_until(loop, [this, n] {
      std::size_t requests = 0;
      for (const auto& peer : server.peers) {
        for (std::size_t at = 0;
             (at = peer->received.find(" HTTP/1.1\r\n", at)) != std::string::npos; ++at) {
          ++requests;
        }
      }
      return requests > n;
    }));
    return *server.peers.back();
  }
  std::unique_ptr<Engine> make(ModelApi api) {
    auto made = std::async(std::launch::async, [this, api] {
      return make_openai_engine({.base = server.url("/v1"), .api = api});
    });
    const std::string models = R"({"data":[{"id":"small","owned_by":"vllm"}]})";
    asked(0).send("HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(models.size()) +
                  "\r\n\r\n" + models);
    return made.get().value();
  }

  EventLoop loop;
  ScriptedServer server{loop};
  std::shared_ptr<KeepingSink> sink = std::make_shared<KeepingSink>();
};

TEST_F(OpenAiEngineTest, PartsOfCallsComeToThoseWhoAskForThem) {
  const std::unique_ptr<Engine> engine = make(ModelApi::responses);
  for (const bool has_parts : {true, false}) {
    sink = std::make_shared<KeepingSink>();
    GenerationRequest request;
    request.prompt = "Add";
    request.stream_calls = has_parts;
    const auto generation = engine->start(request, sink, loop);
    ASSERT_TRUE(generation);
    auto& peer = asked(has_parts ? 1 : 2);
    EXPECT_THAT(peer.received, HasSubstr("POST /v1/responses HTTP/1.1\r\n"));
    EXPECT_THAT(peer.received, EndsWith(R"("stream":true})"));
    peer.send(
        "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"
        "data: {\"type\":\"response.output_item.added\",\"item\":{\"type\":\"function_call\","
        "\"id\":\"f\",\"name\":\"add\"}}\n\n"
        "data: {\"type\":\"response.function_call_arguments.delta\",\"item_id\":\"f\","
        "\"delta\":\"{\\\"a\\\":\"}\n\n"
        "data: {\"type\":\"response.function_call_arguments.delta\",\"item_id\":\"f\","
        "\"delta\":\"1}\"}\n\n"
        "data: {\"type\":\"response.completed\",\"response\":{\"usage\":{\"input_tokens\":7,"
        "\"output_tokens\":5,\"output_tokens_details\":{\"reasoning_tokens\":2}}}}\n\n");
    EXPECT_TRUE(run_until(loop, [this] { return sink->has_ended(); }));
    EXPECT_EQ(sink->end().reason, Completion::Reason::tool_calls);
    EXPECT_EQ(sink->end().usage.reasoning_tokens, 2U);
    const std::vector<Delta>& deltas = sink->deltas();
    ASSERT_EQ(deltas.size(), has_parts ? 3U : 1U);
    EXPECT_EQ(deltas.back().kind, Delta::Kind::tool_call);
    EXPECT_EQ(deltas.back().text, R"({"name":"add","arguments":{"a":1}})");
    EXPECT_EQ(deltas.back().call->name, "add");
    EXPECT_THAT(deltas.back().call->id, HasSubstr("call_"));
    if (!has_parts) continue;
    EXPECT_EQ(deltas[0].kind, Delta::Kind::tool_call_part);
    EXPECT_EQ(deltas[0].text + deltas[1].text, R"({"a":1})");
    EXPECT_EQ(deltas[0].call, deltas[2].call);
  }
  EXPECT_EQ(engine->stats().requests, 2U);
  EXPECT_EQ(engine->stats().prompt_tokens, 14U);
}

TEST_F(OpenAiEngineTest, WhatAnApiDoesNotHaveIsRefusedAtOnce) {
  const std::unique_ptr<Engine> engine = make(ModelApi::websocket);
  GenerationRequest request;
  request.prompt = "?";
  request.stop = {"a"};
  const auto generation = engine->start(request, sink, loop);
  ASSERT_FALSE(generation);
  EXPECT_THAT(generation.error().message, HasSubstr("--model-api chat"));
  request.stop.clear();
  request.is_raw = true;
  const auto raw = engine->start(request, sink, loop);
  ASSERT_FALSE(raw);
  EXPECT_THAT(raw.error().message, HasSubstr("takes no raw one"));
}

}  // namespace
}  // namespace sluice
