// Streams that a real llama-server (llama.cpp de3ff815) sent of the built-in model, byte by byte.

#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sstream>
#include <string>

#include "engine/openai/chat_decoder.hpp"
#include "engine/openai/decoder_test_support.hpp"
#include "engine/openai/responses_decoder.hpp"

namespace sluice {
namespace {

using ::testing::HasSubstr;

/// The fuzz target of the decoders starts from the same streams. Their first byte is for it.
std::string recorded(const std::string& name) {
  std::ifstream file(SLUICE_SOURCE_DIR "/fuzz/corpus/model_answer/" + name);
  std::stringstream content;
  content << file.rdbuf();
  EXPECT_GT(content.str().size(), 1000U) << name;
  return content.str().substr(1);
}

constexpr const char* kCall = R"({"name":"get_weather","arguments":{"city":"Paris"}})";

TEST(RecordedStreamsTest, ATextOfLlamaServer) {
  AnswerRepairs repairs;
  EXPECT_EQ(read_answer<ChatDecoder>(recorded("llama_server_chat_text"), {}, repairs),
            "Hello! |||length 7/6/6");
  EXPECT_TRUE(repairs.empty());
  EXPECT_EQ(read_answer<ResponsesDecoder>(recorded("llama_server_responses_text"),
                                          {.max_tokens = 6}, repairs),
            "Hello! |||length 7/0/6");
  EXPECT_TRUE(repairs.has(Repair::finish_reason));
}

TEST(RecordedStreamsTest, ACallOfLlamaServer) {
  AnswerRepairs repairs;
  const std::string chat = recorded("llama_server_chat_call");
  const std::string responses = recorded("llama_server_responses_call");
  EXPECT_EQ(read_answer<ChatDecoder>(chat, {}, repairs),
            "||" + std::string(kCall) + "|tool_calls 33/32/24");
  EXPECT_TRUE(repairs.empty());
  EXPECT_EQ(read_answer<ResponsesDecoder>(responses, {}, repairs),
            "||" + std::string(kCall) + "|tool_calls 33/0/24");
  EXPECT_TRUE(repairs.empty());
  // Its calls have ids, and their arguments come in parts.
  const std::string with_parts =
      read_answer<ResponsesDecoder>(responses, {.has_call_parts = true}, repairs);
  EXPECT_THAT(with_parts,
              HasSubstr("||call_rHF5qdwSDUcemvi93Al7G05jkGEC85bC=" + std::string(kCall) + "|["));
  EXPECT_THAT(with_parts,
              HasSubstr("[call_rHF5qdwSDUcemvi93Al7G05jkGEC85bC get_weather city][call_"));
}

}  // namespace
}  // namespace sluice
