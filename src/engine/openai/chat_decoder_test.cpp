#include "engine/openai/chat_decoder.hpp"

#include <cstddef>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>
#include <string_view>
#include <vector>

#include "net/http/sse.hpp"

namespace sluice {
namespace {

using ::testing::HasSubstr;

/// An answer as a line: its texts, reasoning and calls, and how it ended.
std::string shown(const std::vector<Delta>& deltas, const Result<Completion>& end) {
  std::string text;
  std::string reasoning;
  std::string calls;
  for (const Delta& delta : deltas) {
    switch (delta.kind) {
      case Delta::Kind::text:
        text.append(delta.text);
        break;
      case Delta::Kind::reasoning:
        reasoning.append(delta.text);
        break;
      case Delta::Kind::tool_call:
        calls.append(delta.text);
        break;
    }
  }
  const std::string ending = end ? std::string(to_string(end->reason)) + " " +
                                       std::to_string(end->usage.prompt_tokens) + "/" +
                                       std::to_string(end->usage.cached_tokens) + "/" +
                                       std::to_string(end->usage.completion_tokens)
                                 : "error: " + end.error().message;
  return text + "|" + reasoning + "|" + calls + "|" + ending;
}

class ChatDecoderTest : public ::testing::Test {
 protected:
  /// What comes of a stream that arrives in two pieces.
  std::string read(std::string_view stream, std::size_t cut) {
    SseDecoder events;
    decoder = ChatDecoder();
    std::vector<Delta> deltas;
    Result<void> taken;
    for (const std::string_view piece : {stream.substr(0, cut), stream.substr(cut)}) {
      const Result<void> fed = events.feed(piece, [&](const SseEvent& event) {
        if (taken) taken = decoder.take(event.data, deltas);
      });
      EXPECT_TRUE(fed);
    }
    if (!taken) return "error: " + taken.error().message;
    const Result<Completion> end = decoder.end(deltas);
    return shown(deltas, end);
  }
  /// The same for each place where the stream can be cut, which must make no difference.
  std::string read(const std::string& stream) {
    const std::string whole = read(stream, 0);
    for (std::size_t cut = 1; cut <= stream.size(); ++cut) {
      EXPECT_EQ(read(stream, cut), whole) << "cut at " << cut;
    }
    return whole;
  }
  /// A stream with these events.
  static std::string events(std::initializer_list<std::string_view> all) {
    std::string stream;
    for (const std::string_view each : all) stream.append("data: ").append(each).append("\n\n");
    return stream;
  }
  static std::string delta(std::string_view members, std::string_view finish = "null") {
    return R"({"choices":[{"index":0,"delta":{)" + std::string(members) + R"(},"finish_reason":)" +
           std::string(finish) + "}]}";
  }

  ChatDecoder decoder;
};

TEST_F(ChatDecoderTest, OfOpenAi) {
  EXPECT_EQ(
      read(events(
          {R"({"id":"c","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"role":"assistant","content":"","refusal":null},"logprobs":null,"finish_reason":null}],"usage":null,"obfuscation":"x"})",
           delta(R"("content":"Grüß ")"), delta(R"("content":"dich \ud83d\ude00")"),
           delta("", R"("stop")"),
           R"({"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":4,"prompt_tokens_details":{"cached_tokens":5}}})",
           "[DONE]"})),
      "Grüß dich \U0001F600|||stop 9/5/4");
  EXPECT_EQ(decoder.repairs(), ChatRepairs());
}

TEST_F(ChatDecoderTest, OfLlamaServer) {
  EXPECT_EQ(
      read(": ping\n\n" +
           events({delta(R"("role":"assistant","content":null)"),
                   delta(R"("reasoning_content":"Hm.")"), delta(R"("content":"Yes")"),
                   R"({"choices":[{"index":0,"delta":{},"finish_reason":"length"}],"timings":{}})",
                   R"({"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":2}})",
                   "[DONE]"})),
      "Yes|Hm.||length 3/0/2");
}

TEST_F(ChatDecoderTest, OfVllm) {
  // Its last piece has text and the reason together, and each has the usage so far.
  EXPECT_EQ(
      read(events({R"({"choices":[{"index":0,"delta":{"role":"assistant","content":""}}]})",
                   delta(R"("reasoning":"Hm.","reasoning_content":"Hm.")"),
                   R"({"choices":[{"index":0,"delta":{"content":"Yes"},"finish_reason":"stop",)"
                   R"("stop_reason":null}],"usage":{"prompt_tokens":3,"completion_tokens":2}})",
                   "[DONE]"})),
      "Yes|Hm.||stop 3/0/2");
}

TEST_F(ChatDecoderTest, PutsCallsTogether) {
  EXPECT_EQ(
      read(events(
          {delta(
               R"("tool_calls":[{"index":0,"id":"a","type":"function","function":{"name":"add","arguments":""}}])"),
           delta(
               R"("tool_calls":[{"index":1,"id":"b","function":{"name":"now","arguments":"{}"}}])"),
           delta(
               R"("tool_calls":[{"index":0,"id":null,"function":{"name":null,"arguments":"{\"a\":"}}])"),
           delta(R"("tool_calls":[{"index":0,"function":{"arguments":"1}"}}])"),
           delta("", R"("tool_calls")"), "[DONE]"})),
      R"(||{"name":"add","arguments":{"a":1}}{"name":"now","arguments":{}}|tool_calls 0/0/0)");
  EXPECT_EQ(decoder.repairs(), ChatRepairs());
}

TEST_F(ChatDecoderTest, RepairsCallsOfSloppyServers) {
  // No index, no id, the name in each piece, an object for arguments, "stop" for a reason.
  EXPECT_EQ(
      read(events(
          {delta(R"("tool_calls":[{"function":{"name":"add","arguments":"{\"a\":"}}])"),
           delta(R"("tool_calls":[{"function":{"arguments":"1}"}}])"),
           delta(R"("tool_calls":[{"id":"","function":{"name":"now","arguments":{"b":2}}}])"),
           delta("", R"("stop")")})),
      R"(||{"name":"add","arguments":{"a":1}}{"name":"now","arguments":{"b":2}}|tool_calls 0/0/0)");
  EXPECT_TRUE(decoder.repairs().index);
  read(events({delta(R"("tool_calls":[{"index":0,"function":{"name":"add","arguments":"{"}}])"),
               delta(R"("tool_calls":[{"index":0,"function":{"name":"add","arguments":"}"}}])"),
               delta("", R"("stop")")}));
  EXPECT_TRUE(decoder.repairs().name_repeated);
}

TEST_F(ChatDecoderTest, AnAnswerThatIsNotStreamedIsOneToo) {
  std::vector<Delta> deltas;
  ASSERT_TRUE(decoder.take(R"({"choices":[{"message":{"role":"assistant","content":"Yes"},)"
                           R"("finish_reason":"stop"}],"usage":{"prompt_tokens":1}})",
                           deltas));
  const Result<Completion> end = decoder.end(deltas);
  EXPECT_EQ(shown(deltas, end), "Yes|||stop 1/0/0");
}

TEST_F(ChatDecoderTest, WhatBreaksOffIsNoAnswer) {
  EXPECT_THAT(read(events({delta(R"("content":"Ye")")})), HasSubstr("before it was whole"));
  EXPECT_THAT(read(""), HasSubstr("before it was whole"));
  // A server that says that it is done has only forgotten to say why.
  EXPECT_EQ(read(events({delta(R"("content":"Yes")"), "[DONE]"})), "Yes|||stop 0/0/0");
  EXPECT_TRUE(decoder.repairs().finish_reason);
}

TEST_F(ChatDecoderTest, ErrorsInTheStreamAreTheServers) {
  EXPECT_EQ(
      read(events({delta(R"("content":"Ye")"),
                   R"({"error":{"code":500,"message":"out\nof memory","type":"server_error"}})"})),
      "error: The model's server failed: out of memory");
  EXPECT_EQ(read(events({R"({"error":"overloaded"})"})),
            "error: The model's server failed: overloaded");
  EXPECT_THAT(read(events({"{"})), HasSubstr("cannot be read"));
  EXPECT_THAT(read(events({"[]"})), HasSubstr("no JSON object"));
  EXPECT_THAT(read(events({delta("", R"("content_filter")")})), HasSubstr("content filter"));
}

TEST_F(ChatDecoderTest, CallsThatCannotBeMadeAreErrors) {
  const auto call = [](std::string_view function) {
    return delta(R"("tool_calls":[{"index":0,"function":{)" + std::string(function) + "}}]");
  };
  EXPECT_THAT(read(events({call(R"("name":"add","arguments":"{\"a\"")"), delta("", R"("stop")")})),
              HasSubstr("no JSON object"));
  EXPECT_THAT(read(events({call(R"("name":"add","arguments":"[]")"), delta("", R"("stop")")})),
              HasSubstr("no JSON object"));
  EXPECT_THAT(read(events({call(R"("arguments":"{}")"), delta("", R"("stop")")})),
              HasSubstr("without a name"));
  EXPECT_THAT(
      read(events({call(R"("name":"add","arguments":"{\"a\"")"), delta("", R"("length")")})),
      HasSubstr("cut off within a call"));
}

TEST_F(ChatDecoderTest, CallsAreBounded) {
  std::vector<Delta> deltas;
  Result<void> taken;
  for (int i = 0; i < 1000 && taken; ++i) {
    taken = decoder.take(delta(R"("tool_calls":[{"index":)" + std::to_string(i) + "}]"), deltas);
  }
  ASSERT_FALSE(taken);
  EXPECT_EQ(taken.error().code, kLimitReached);
  decoder = ChatDecoder();
  const std::string part = delta(R"("tool_calls":[{"index":0,"function":{"arguments":")" +
                                 std::string(100'000, 'x') + R"("}}])");
  taken = {};
  for (int i = 0; i < 1000 && taken; ++i) taken = decoder.take(part, deltas);
  ASSERT_FALSE(taken);
  EXPECT_EQ(taken.error().code, kLimitReached);
}

}  // namespace
}  // namespace sluice
