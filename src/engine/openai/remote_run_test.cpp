#include "engine/openai/remote_run.hpp"

#include <chrono>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "engine/openai/http_source.hpp"
#include "net/client/client_test_support.hpp"
#include "rpc/error_codes.hpp"

namespace sluice {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

struct TestSink final : GenerationSink {
  bool on_delta(Delta delta) override {
    text.append(delta.text);
    ++deltas;
    return !is_small;
  }
  void on_complete(Completion completion) override {
    EXPECT_FALSE(end);
    end = std::move(completion);
  }

  std::string text;
  int deltas = 0;
  bool is_small = false;  // it is full after each delta
  std::optional<Completion> end;
};

class RemoteRunTest : public ::testing::Test {
 protected:
  void begin(Duration idle_timeout = 10s) {
    run = std::make_shared<RemoteRun>(
        loop,
        RemoteRunOptions{.make_decoder = [] { return make_decoder(ModelApi::chat, {}); },
                         .idle_timeout = idle_timeout},
        sink, [this](const Completion&, AnswerRepairs) { ++ends; });
    run->begin(std::make_unique<HttpSource>(
        http,
        HttpClientRequest{.method = "POST", .url = server.url(), .body = "?", .is_patient = true}));
  }
  void finish() {
    EXPECT_TRUE(run_until(loop, [this] { return sink->end.has_value(); }));
    EXPECT_EQ(ends, 1);
  }
  static std::string said(std::string_view text) {
    return R"(data: {"choices":[{"delta":{"content":")" + std::string(text) + "\"}}]}\n\n";
  }
  static constexpr std::string_view kStream =
      "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n";
  static constexpr std::string_view kEnd =
      "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";
  static std::string refusal(std::string_view status,
                             std::string_view body = R"({"error":{"message":"enough"}})") {
    return "HTTP/1.1 " + std::string(status) +
           "\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + std::string(body);
  }

  EventLoop loop;
  ScriptedServer server{loop};
  HttpClient http{loop};
  std::shared_ptr<TestSink> sink = std::make_shared<TestSink>();
  std::shared_ptr<RemoteRun> run;
  int ends = 0;
};

TEST_F(RemoteRunTest, DeliversAnAnswer) {
  begin();
  EXPECT_EQ(run->status().phase, GenerationStatus::Phase::prefill);
  auto& peer = server.peer(0, "?");
  peer.send(std::string(kStream) + said("Yes") + said("!"));
  EXPECT_TRUE(run_until(loop, [this] { return sink->deltas == 2; }));
  EXPECT_EQ(run->status().phase, GenerationStatus::Phase::decode);
  peer.send(kEnd);
  finish();
  EXPECT_EQ(sink->text, "Yes!");
  EXPECT_EQ(sink->end->reason, Completion::Reason::stop);
  EXPECT_EQ(run->status().phase, GenerationStatus::Phase::done);
}

TEST_F(RemoteRunTest, AFullSinkHoldsUpTheServer) {
  sink->is_small = true;
  begin();
  auto& peer = server.peer(0, "?");
  peer.send(std::string(kStream) + said("a") + said("b") + said("c") + std::string(kEnd));
  EXPECT_TRUE(run_until(loop, [this] { return sink->deltas == 1; }));
  for (int i = 0; i < 20; ++i) loop.poll();
  EXPECT_EQ(sink->text, "a");
  run->resume();
  EXPECT_EQ(sink->text, "ab");
  sink->is_small = false;
  run->resume();
  finish();
  EXPECT_EQ(sink->text, "abc");
}

TEST_F(RemoteRunTest, WhatIsNotReadStaysInTheSocket) {
  sink->is_small = true;
  begin();
  auto& peer = server.peer(0, "?");
  peer.send(std::string(kStream) + said("a"));
  EXPECT_TRUE(run_until(loop, [this] { return sink->deltas == 1; }));
  const std::string much = said(std::string(100'000, 'x'));
  constexpr std::size_t kMost = std::size_t{64} << 20U;
  std::size_t sent = 0;
  std::size_t events = 0;
  std::string_view rest;
  for (int refused = 0; refused < 20 && sent < kMost;) {
    if (rest.empty()) {
      rest = much;
      ++events;
    }
    const std::size_t taken = peer.offer(rest);
    sent += taken;
    rest.remove_prefix(taken);
    refused = taken == 0 ? refused + 1 : 0;
    loop.poll();
  }
  EXPECT_LT(sent, kMost);
  EXPECT_EQ(sink->deltas, 1);
  sink->is_small = false;
  run->resume();
  peer.send(rest);
  peer.send(kEnd);
  finish();
  EXPECT_EQ(sink->text.size(), 1 + events * 100'000);
}

TEST_F(RemoteRunTest, IsCancelledAtTheServerToo) {
  begin();
  auto& peer = server.peer(0, "?");
  peer.send(std::string(kStream) + said("a"));
  EXPECT_TRUE(run_until(loop, [this] { return sink->deltas == 1; }));
  run->cancel();
  finish();
  EXPECT_EQ(sink->end->reason, Completion::Reason::cancelled);
  EXPECT_EQ(sink->end->usage.completion_tokens, 1U) << "those that came";
  EXPECT_TRUE(run_until(loop, [&peer] { return peer.gone; }));
  run->cancel();
}

TEST_F(RemoteRunTest, ABusyServerIsAskedAgain) {
  begin();
  server.peer(0, "?").send(refusal("503 Service Unavailable"));
  const auto& again = [this](std::size_t n) -> ScriptedServer::Peer& {
    // The connection may be another one, or the kept one.
    run_until(loop, [this, n] {
      std::size_t asked = 0;
      for (const auto& peer : server.peers) {
        for (char c : peer->received) asked += c == '?' ? 1 : 0;
      }
      return asked > n;
    });
    return *server.peers.back();
  };
  again(1).send(std::string(kStream) + said("Yes") + std::string(kEnd));
  finish();
  EXPECT_EQ(sink->text, "Yes");
}

TEST_F(RemoteRunTest, ARefusalSaysWhatTheServerSays) {
  begin();
  server.peer(0, "?").send(refusal("400 Bad Request"));
  finish();
  EXPECT_EQ(sink->end->reason, Completion::Reason::error);
  EXPECT_EQ(sink->end->error->code, kInvalidParams);
  EXPECT_THAT(sink->end->error->message, HasSubstr("HTTP 400: enough"));
}

TEST_F(RemoteRunTest, ARefusalMayBeInAnArray) {
  begin();
  server.peer(0, "?").send(refusal("400 Bad Request", R"([{"error":{"message":"no signature"}}])"));
  finish();
  EXPECT_THAT(sink->end->error->message, HasSubstr("HTTP 400: no signature"));
}

TEST_F(RemoteRunTest, ARefusalMayHaveHalfACharacter) {
  begin();
  server.peer(0, "?").send(refusal("400 Bad Request", R"({"error":{"message":"not \ud83d"}})"));
  finish();
  EXPECT_THAT(sink->end->error->message, HasSubstr("HTTP 400: not \uFFFD"));
}

TEST_F(RemoteRunTest, WhatTheServerHasToldOfACancelledAnswerHolds) {
  begin();
  auto& peer = server.peer(0, "?");
  peer.send(std::string(kStream) + said("a") + said("b") +
            "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":9,\"completion_tokens\":1}}\n\n");
  EXPECT_TRUE(run_until(loop, [this] { return sink->deltas == 2; }));
  for (int i = 0; i < 20; ++i) loop.poll();
  run->cancel();
  finish();
  EXPECT_EQ(sink->end->usage.completion_tokens, 1U);
  EXPECT_EQ(sink->end->usage.prompt_tokens, 9U);
}

TEST_F(RemoteRunTest, AnAnswerThatHasBegunIsNotAskedForAgain) {
  begin();
  auto& peer = server.peer(0, "?");
  peer.send(std::string(kStream) + said("Ye"));
  EXPECT_TRUE(run_until(loop, [this] { return sink->deltas == 1; }));
  peer.close();
  finish();
  EXPECT_EQ(sink->end->reason, Completion::Reason::error);
  EXPECT_THAT(sink->end->error->message, HasSubstr("before it was whole"));
  EXPECT_EQ(server.peers.size(), 1U);
}

TEST_F(RemoteRunTest, ASilentServerIsGivenUp) {
  begin(20ms);
  server.peer(0, "?").send(kStream);
  finish();
  EXPECT_EQ(sink->end->error->code, kTimedOut);
}

TEST_F(RemoteRunTest, ASinkThatIsFullForLongIsNotASilentServer) {
  sink->is_small = true;
  begin(100ms);
  auto& peer = server.peer(0, "?");
  peer.send(std::string(kStream) + said("a"));
  const auto enough = std::chrono::steady_clock::now() + 250ms;
  EXPECT_TRUE(run_until(loop, [&] { return std::chrono::steady_clock::now() > enough; }));
  EXPECT_FALSE(sink->end);
  peer.send(kEnd);
  run->resume();
  finish();
  EXPECT_EQ(sink->end->reason, Completion::Reason::stop);
}

}  // namespace
}  // namespace sluice
