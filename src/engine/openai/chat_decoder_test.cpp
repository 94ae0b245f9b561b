#include "engine/openai/chat_decoder.hpp"

#include <cstddef>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "engine/openai/decoder_test_support.hpp"
#include "json/json.hpp"
#include "rpc/error_codes.hpp"

namespace sluice {
namespace {

using ::testing::HasSubstr;

class ChatDecoderTest : public ::testing::Test {
 protected:
  std::string read(const std::string& stream) {
    return read_answer<ChatDecoder>(stream, {}, repairs);
  }
  static std::string delta(std::string_view members, std::string_view finish = "null") {
    return R"({"choices":[{"index":0,"delta":{)" + std::string(members) + R"(},"finish_reason":)" +
           std::string(finish) + "}]}";
  }

  /// A piece of a call; what is empty is left out, and so is an index below 0.
  static std::string piece(std::string_view id, std::string_view name, const std::string& arguments,
                           int index = -1) {
    json::object function{{"arguments", arguments}};
    if (!name.empty()) function["name"] = name;
    json::object call{{"function", function}};
    if (!id.empty()) call["id"] = id;
    if (index >= 0) call["index"] = index;
    return delta(R"("tool_calls":[)" + to_json(call) + "]");
  }
  std::string read_calls(std::initializer_list<std::string> pieces) {
    std::string stream;
    for (const std::string& each : pieces) stream += events_of({each});
    return read(stream + events_of({delta("", R"("tool_calls")")}));
  }

  AnswerRepairs repairs;  // of the last answer that was read
};

TEST_F(ChatDecoderTest, OfOpenAi) {
  EXPECT_EQ(
      read(events_of(
          {R"({"id":"c","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"role":"assistant","content":"","refusal":null},"logprobs":null,"finish_reason":null}],"usage":null,"obfuscation":"x"})",
           delta(R"("content":"Grüß ")"), delta(R"("content":"dich \ud83d\ude00")"),
           delta("", R"("stop")"),
           R"({"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":4,"prompt_tokens_details":{"cached_tokens":5}}})",
           "[DONE]"})),
      "Grüß dich \U0001F600|||stop 9/5/4");
  EXPECT_TRUE(repairs.empty());
}

TEST_F(ChatDecoderTest, OfLlamaServer) {
  EXPECT_EQ(
      read(": ping\n\n" +
           events_of(
               {delta(R"("role":"assistant","content":null)"),
                delta(R"("reasoning_content":"Hm.")"), delta(R"("content":"Yes")"),
                R"({"choices":[{"index":0,"delta":{},"finish_reason":"length"}],"timings":{}})",
                R"({"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":2}})", "[DONE]"})),
      "Yes|Hm.||length 3/0/2");
}

TEST_F(ChatDecoderTest, OfVllm) {
  // Its last piece has text and the reason together, and each has the usage so far.
  EXPECT_EQ(
      read(events_of({R"({"choices":[{"index":0,"delta":{"role":"assistant","content":""}}]})",
                      delta(R"("reasoning":"Hm.","reasoning_content":"Hm.")"),
                      R"({"choices":[{"index":0,"delta":{"content":"Yes"},"finish_reason":"stop",)"
                      R"("stop_reason":null}],"usage":{"prompt_tokens":3,"completion_tokens":2}})",
                      "[DONE]"})),
      "Yes|Hm.||stop 3/0/2");
}

TEST_F(ChatDecoderTest, OfOllama) {
  const auto chunk = [](std::string_view choices, std::string_view more = "") {
    return R"({"id":"chatcmpl-7","object":"chat.completion.chunk","created":1764300000,)"
           R"("model":"qwen3:8b","system_fingerprint":"fp_ollama","choices":[)" +
           std::string(choices) + "]" + std::string(more) + "}";
  };
  const auto ollama_delta = [&](std::string_view members, std::string_view finish = "null") {
    return chunk(R"({"index":0,"delta":{"role":"assistant",)" + std::string(members) +
                 R"(},"finish_reason":)" + std::string(finish) + "}");
  };
  const std::string usage =
      chunk("", R"(,"usage":{"prompt_tokens":133,"completion_tokens":91,"total_tokens":224})");
  // It calls reasoning `reasoning`, with an empty text beside it.
  EXPECT_EQ(read(events_of({ollama_delta(R"("content":"","reasoning":"Grüße")"),
                            ollama_delta(R"("content":"Hällo")"),
                            ollama_delta(R"("content":"")", R"("stop")"), usage, "[DONE]"})),
            "Hällo|Grüße||stop 133/0/91");
  EXPECT_TRUE(repairs.empty());
  // It sends a call whole, one a chunk.
  const auto ollama_call = [&](std::string_view id, int index, const std::string& city) {
    return ollama_delta(R"("content":"","tool_calls":[{"id":")" + std::string(id) +
                        R"(","index":)" + std::to_string(index) +
                        R"(,"type":"function","function":{"name":"weather","arguments":)" +
                        R"("{\"city\":\")" + city + R"(\"}"}}])");
  };
  EXPECT_EQ(read(events_of({ollama_call("call_mq0", 0, "Łódź"), ollama_call("call_mq1", 1, "Oslo"),
                            ollama_delta(R"("content":"")", R"("tool_calls")"), usage, "[DONE]"})),
            R"(||{"name":"weather","arguments":{"city":"Łódź"}})"
            R"({"name":"weather","arguments":{"city":"Oslo"}}|tool_calls 133/0/91)");
  EXPECT_TRUE(repairs.empty());
  // Older ones gave all calls the index 0, and ended with "stop".
  EXPECT_EQ(read(events_of({ollama_call("call_mq0", 0, "Bonn"), ollama_call("call_mq1", 0, "Oslo"),
                            ollama_delta(R"("content":"")", R"("stop")"), "[DONE]"})),
            R"(||{"name":"weather","arguments":{"city":"Bonn"}})"
            R"({"name":"weather","arguments":{"city":"Oslo"}}|tool_calls 0/0/0)");
  EXPECT_TRUE(repairs.has(Repair::call_index));
}

TEST_F(ChatDecoderTest, PutsCallsTogether) {
  EXPECT_EQ(
      read(events_of(
          {delta(
               R"("tool_calls":[{"index":0,"id":"a","type":"function","function":{"name":"add","arguments":""}}])"),
           delta(
               R"("tool_calls":[{"index":1,"id":"b","function":{"name":"now","arguments":"{}"}}])"),
           delta(
               R"("tool_calls":[{"index":0,"id":null,"function":{"name":null,"arguments":"{\"a\":"}}])"),
           delta(R"("tool_calls":[{"index":0,"function":{"arguments":"1}"}}])"),
           delta("", R"("tool_calls")"), "[DONE]"})),
      R"(||{"name":"add","arguments":{"a":1}}{"name":"now","arguments":{}}|tool_calls 0/0/0)");
  EXPECT_TRUE(repairs.empty());
}

TEST_F(ChatDecoderTest, RepairsCallsOfSloppyServers) {
  // No index, no id, the name in each piece, an object for arguments, "stop" for a reason.
  EXPECT_EQ(
      read(events_of(
          {delta(R"("tool_calls":[{"function":{"name":"add","arguments":"{\"a\":"}}])"),
           delta(R"("tool_calls":[{"function":{"arguments":"1}"}}])"),
           delta(R"("tool_calls":[{"id":"","function":{"name":"now","arguments":{"b":2}}}])"),
           delta("", R"("stop")")})),
      R"(||{"name":"add","arguments":{"a":1}}{"name":"now","arguments":{"b":2}}|tool_calls 0/0/0)");
  EXPECT_TRUE(repairs.has(Repair::call_index));
  read(events_of({delta(R"("tool_calls":[{"index":0,"function":{"name":"add","arguments":"{"}}])"),
                  delta(R"("tool_calls":[{"index":0,"function":{"name":"add","arguments":"}"}}])"),
                  delta("", R"("stop")")}));
  EXPECT_TRUE(repairs.has(Repair::call_name));
}

TEST_F(ChatDecoderTest, CallsWithTheSameIndexAreTakenApart) {
  // By their ids, also when their pieces are mixed.
  EXPECT_EQ(
      read(events_of(
          {delta(
               R"("tool_calls":[{"index":0,"id":"a","function":{"name":"add","arguments":"{\"a\":"}}])"),
           delta(
               R"("tool_calls":[{"index":0,"id":"b","function":{"name":"add","arguments":"{\"b\":"}}])"),
           delta(R"("tool_calls":[{"index":0,"id":"a","function":{"arguments":"1}"}}])"),
           delta(R"("tool_calls":[{"index":0,"id":"b","function":{"arguments":"2}"}}])"),
           delta("", R"("tool_calls")")})),
      R"(||{"name":"add","arguments":{"a":1}}{"name":"add","arguments":{"b":2}}|tool_calls 0/0/0)");
  EXPECT_TRUE(repairs.has(Repair::call_index));
  // By their names, or because the arguments of the first are whole.
  EXPECT_EQ(
      read(events_of(
          {delta(
               R"("tool_calls":[{"index":0,"function":{"name":"add","arguments":"{\"a\":\"}\"}"}}])"),
           delta(R"("tool_calls":[{"index":0,"function":{"name":"add","arguments":"{\"b\":2}"}}])"),
           delta(R"("tool_calls":[{"index":0,"function":{"name":"now","arguments":"{}"}}])"),
           delta("", R"("tool_calls")")})),
      R"(||{"name":"add","arguments":{"a":"}"}}{"name":"add","arguments":{"b":2}})"
      R"({"name":"now","arguments":{}}|tool_calls 0/0/0)");
  EXPECT_TRUE(repairs.has(Repair::call_index));
  EXPECT_TRUE(repairs.has(Repair::call_id));
}

TEST_F(ChatDecoderTest, PartsOfCallsHaveTheIdAndTheNameOfTheirCall) {
  const AnswerOptions options{.made_id = "made_", .has_call_parts = true};
  EXPECT_EQ(
      read_answer<ChatDecoder>(
          events_of(
              {delta(
                   R"("tool_calls":[{"index":0,"id":"a","function":{"name":"add","arguments":""}}])"),
               delta(R"("tool_calls":[{"index":0,"function":{"arguments":"{\"a\":"}}])"),
               delta(R"("tool_calls":[{"index":1,"function":{"arguments":"{"}}])"),
               delta(R"("tool_calls":[{"index":0,"function":{"arguments":"1}"}}])"),
               delta(
                   R"("tool_calls":[{"index":1,"id":"a","function":{"name":"now","arguments":"}"}}])"),
               delta("", R"("tool_calls")")}),
          options, repairs),
      R"(||a={"name":"add","arguments":{"a":1}}made_1={"name":"now","arguments":{}}|)"
      R"([a add {"a":][a add 1}][made_1 now {}]|tool_calls 0/0/0)");
  EXPECT_TRUE(repairs.has(Repair::call_id));
  EXPECT_FALSE(repairs.has(Repair::call_index));
}

TEST_F(ChatDecoderTest, CountsTokensOfReasoning) {
  EXPECT_EQ(
      read(events_of(
          {delta(R"("content":"Yes")", R"("stop")"),
           R"({"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":40,"completion_tokens_details":{"reasoning_tokens":30}}})",
           "[DONE]"})),
      "Yes|||stop 9/0/40/30");
}

TEST_F(ChatDecoderTest, AnAnswerThatIsNotStreamedIsOneToo) {
  ChatDecoder decoder;
  std::vector<Delta> deltas;
  ASSERT_TRUE(decoder.take({},
                           R"({"choices":[{"message":{"role":"assistant","content":"Yes"},)"
                           R"("finish_reason":"stop"}],"usage":{"prompt_tokens":1}})",
                           deltas));
  const Result<Completion> end = decoder.end(deltas);
  EXPECT_EQ(shown(deltas, end), "Yes|||stop 1/0/0");
}

TEST_F(ChatDecoderTest, WhatBreaksOffIsNoAnswer) {
  EXPECT_THAT(read(events_of({delta(R"("content":"Ye")")})), HasSubstr("before it was whole"));
  EXPECT_THAT(read(""), HasSubstr("before it was whole"));
  // A server that says that it is done has only forgotten to say why.
  EXPECT_EQ(read(events_of({delta(R"("content":"Yes")"), "[DONE]"})), "Yes|||stop 0/0/0");
  EXPECT_TRUE(repairs.has(Repair::finish_reason));
}

TEST_F(ChatDecoderTest, ErrorsInTheStreamAreTheServers) {
  EXPECT_EQ(read(events_of(
                {delta(R"("content":"Ye")"),
                 R"({"error":{"code":500,"message":"out\nof memory","type":"server_error"}})"})),
            "error: The model's server failed: out of memory");
  EXPECT_EQ(read(events_of({R"({"error":"overloaded"})"})),
            "error: The model's server failed: overloaded");
  EXPECT_THAT(read(events_of({"{"})), HasSubstr("cannot be read"));
  EXPECT_THAT(read(events_of({"[]"})), HasSubstr("no JSON object"));
  EXPECT_THAT(read(events_of({delta("", R"("content_filter")")})), HasSubstr("content filter"));
}

TEST_F(ChatDecoderTest, CallsThatCannotBeMadeAreErrors) {
  const auto call = [](std::string_view function) {
    return delta(R"("tool_calls":[{"index":0,"function":{)" + std::string(function) + "}}]");
  };
  EXPECT_THAT(read(events_of({call(R"("arguments":"{}")"), delta("", R"("stop")")})),
              HasSubstr("without a name"));
  EXPECT_THAT(
      read(events_of({call(R"("name":"add","arguments":"{\"a\"")"), delta("", R"("length")")})),
      HasSubstr("cut off within a call"));
}

TEST_F(ChatDecoderTest, ArgumentsThatAreNoObjectAreDeliveredAsText) {
  for (const std::string_view arguments : {R"({\"a\")", "[]", "1", "no"}) {
    const std::string call =
        delta(R"("tool_calls":[{"index":0,"function":{"name":"add","arguments":")" +
              std::string(arguments) + "\"}}]");
    EXPECT_THAT(read(events_of({call, delta("", R"("stop")")})),
                HasSubstr(R"("arguments":")" + std::string(arguments) + "\""));
    EXPECT_TRUE(repairs.has(Repair::call_arguments));
  }
}

TEST_F(ChatDecoderTest, CallsWithOneIdAreTwoIfTheFirstIsWhole) {
  const auto call = [](std::string_view name) {
    return delta(R"("tool_calls":[{"id":"c","function":{"name":")" + std::string(name) +
                 R"(","arguments":"{\"a\":1}"}}])");
  };
  const std::string answer = read(events_of({call("one"), call("two"), delta("", R"("stop")")}));
  EXPECT_THAT(answer, HasSubstr(R"("name":"one")"));
  EXPECT_THAT(answer, HasSubstr(R"("name":"two")"));
}

TEST_F(ChatDecoderTest, ACallWhoseIdIsInItsFirstPieceAloneIsOne) {
  // Arguments that grow are no object together. The model hears of that.
  EXPECT_EQ(read_calls({piece("c", "go", "{}", 0), piece("", "go", R"({"a":1})", 0),
                        piece("", "go", R"({"a":1,"b":2})", 0)}),
            R"(||{"name":"go","arguments":"{}{\"a\":1}{\"a\":1,\"b\":2}"}|tool_calls 0/0/0)");
  EXPECT_EQ(read_calls({piece("c", "go", R"({"a":)", 0), piece("", "go", "1}", 0)}),
            R"(||{"name":"go","arguments":{"a":1}}|tool_calls 0/0/0)");
}

TEST_F(ChatDecoderTest, ACallThatComesAgainWholeIsOne) {
  constexpr std::string_view kOne = R"(||{"name":"go","arguments":{"a":1}}|tool_calls 0/0/0)";
  const std::string all = R"({"a":1})";
  EXPECT_EQ(read_calls({piece("c", "go", all, 0), piece("c", "go", all, 0)}), kOne);
  EXPECT_EQ(read_calls({piece("c", "go", all, 0), piece("", "go", all, 0)}), kOne);
  EXPECT_EQ(read_calls({piece("c", "go", all), piece("c", "go", all)}), kOne);
  EXPECT_EQ(read_calls({piece("c", "go", R"({"a")", 0), piece("", "", ":1}", 0),
                        piece("c", "go", all, 0)}),
            kOne);
  EXPECT_TRUE(repairs.has(Repair::call_name));
  // Without an id, it may be another call.
  EXPECT_EQ(read_calls({piece("", "go", all, 0), piece("", "go", all, 0)}),
            R"(||{"name":"go","arguments":{"a":1}}{"name":"go","arguments":{"a":1}})"
            R"(|tool_calls 0/0/0)");
}

TEST_F(ChatDecoderTest, AnotherNameUnderTheSameIdIsAnotherCall) {
  constexpr std::string_view kTwo =
      R"(||{"name":"one","arguments":{}}{"name":"two","arguments":{"b":1}}|tool_calls 0/0/0)";
  for (const int index : {-1, 0}) {
    EXPECT_EQ(read_calls({piece("c", "one", "", index), piece("c", "two", "", index),
                          piece("", "", R"({"b":1})", index)}),
              kTwo);
    EXPECT_EQ(read_calls({piece("c", "one", "{}", index), piece("c", "two", R"({"b":1})", index)}),
              kTwo);
  }
}

TEST_F(ChatDecoderTest, PartsOfCallsHaveNoHalfCharacters) {
  const auto of = [this](std::initializer_list<std::string> pieces) {
    std::string stream;
    for (const std::string& each : pieces) stream += events_of({piece("c", "go", each, 0)});
    return read_answer<ChatDecoder>(stream + events_of({delta("", R"("stop")")}),
                                    {.has_call_parts = true}, repairs);
  };
  EXPECT_THAT(of({R"({"a":"x\ud8)", R"(3d\)", R"(n"})"}),
              HasSubstr(R"([c go {"a":"x][c go \ufffd\n"}])"));
  EXPECT_THAT(of({R"({"a":"\ud83d)", R"(\ude00"})"}),
              HasSubstr(R"([c go {"a":"][c go \ud83d\ude00"}])"));
}

TEST_F(ChatDecoderTest, CallsAreBounded) {
  std::vector<Delta> deltas;
  const auto code_of = [&deltas](ChatDecoder& decoder, const auto& piece) {
    Result<void> taken;
    for (int i = 0; i < 1000 && taken; ++i) taken = decoder.take({}, piece(i), deltas);
    return taken ? 0 : taken.error().code;
  };
  ChatDecoder many;
  EXPECT_EQ(
      code_of(many,
              [](int i) { return delta(R"("tool_calls":[{"index":)" + std::to_string(i) + "}]"); }),
      kLimitReached);
  ChatDecoder same_index;
  EXPECT_EQ(
      code_of(same_index,
              [](int i) {
                return delta(R"("tool_calls":[{"index":0,"id":")" + std::to_string(i) + R"("}])");
              }),
      kLimitReached);
  ChatDecoder huge;
  const std::string part = delta(R"("tool_calls":[{"index":0,"function":{"arguments":")" +
                                 std::string(100'000, 'x') + R"("}}])");
  EXPECT_EQ(code_of(huge, [&part](int) { return part; }), kLimitReached);
  for (const std::string_view index : {"-1", "128", "9223372036854775807"}) {
    ChatDecoder decoder;
    const std::string piece = delta(R"("tool_calls":[{"index":)" + std::string(index) + "}]");
    EXPECT_FALSE(decoder.take({}, piece, deltas)) << index;
  }
  ChatDecoder decoder;
  const std::string long_id = delta(R"("tool_calls":[{"index":0,"id":")" +
                                    std::string(CallCollector::kMaxBytes + 1, 'x') + R"("}])");
  EXPECT_FALSE(decoder.take({}, long_id, deltas));
}

TEST_F(ChatDecoderTest, NumbersThatCannotBeReadExactlyAreLeftAsTheyAreWritten) {
  EXPECT_EQ(read_calls({piece("c1", "pay", R"({"id": 123456789012345678901})", 0)}),
            R"(||{"name":"pay","arguments":"{\"id\": 123456789012345678901}"}|tool_calls 0/0/0)");
  EXPECT_TRUE(repairs.empty());
}

}  // namespace
}  // namespace sluice
