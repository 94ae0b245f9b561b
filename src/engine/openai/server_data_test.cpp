#include "engine/openai/server_data.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "engine/openai/chat_decoder.hpp"
#include "engine/openai/chat_request.hpp"

namespace sluice {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kServer = "https://api.model.test:443";

/// What is kept of an answer with these deltas.
std::string kept_of(const std::vector<std::string>& deltas) {
  ChatDecoder decoder({.server = kServer});
  std::vector<Delta> said;
  for (const std::string& each : deltas) {
    EXPECT_TRUE(decoder.take({}, R"({"choices":[{"index":0,"delta":)" + each + "}]}", said));
  }
  EXPECT_TRUE(decoder.take({}, "[DONE]", said));
  const auto end = decoder.end(said);
  EXPECT_TRUE(end);
  return end ? end->server_data : "";
}

/// The next request of a conversation whose answer has two calls.
std::string next_request(const std::string& kept, std::string_view server) {
  GenerationRequest request;
  request.messages = {{.role = "user", .content = "Add"},
                      {.role = "assistant",
                       .tool_calls = {{.id = "a", .name = "add", .arguments = "{}"},
                                      {.id = "b", .name = "add", .arguments = "{}"}},
                       .server_data = kept},
                      {.role = "tool", .content = "1", .tool_call_id = "a"},
                      {.role = "tool", .content = "2", .tool_call_id = "b"}};
  return *chat_request(request, "m", kCommonDialect, server);
}

std::string call(int index, std::string_view more = "") {
  return R"({"tool_calls":[{"index":)" + std::to_string(index) + R"(,"id":"c)" +
         std::to_string(index) + R"(","function":{"name":"add","arguments":"{}"})" +
         std::string(more) + "}]}";
}

TEST(ServerDataTest, ReasoningGoesBackWithTheCallsThatItCameWith) {
  const std::string kept = kept_of(
      {R"({"reasoning_content":"I "})", R"({"reasoning_content":"think"})", call(0), call(1)});
  EXPECT_THAT(next_request(kept, kServer), HasSubstr(R"("reasoning_content":"I think")"));
  EXPECT_THAT(next_request(kept, "https://other.test:443"), Not(HasSubstr("I think")));
}

TEST(ServerDataTest, TheSignatureOfACallGoesBackWithIt) {
  constexpr const char* kSignature = R"(,"extra_content":{"google":{"thought_signature":"SIG"}})";
  const std::string kept = kept_of({call(0), call(1, kSignature)});
  EXPECT_THAT(next_request(kept, kServer),
              HasSubstr(R"("id":"b","type":"function","function":{"name":"add","arguments":"{}"})" +
                        std::string(kSignature)));
  EXPECT_THAT(next_request(kept, kServer), Not(HasSubstr("reasoning")));
}

TEST(ServerDataTest, NothingIsKeptOfWhatNobodyDemandsBack) {
  EXPECT_EQ(kept_of({call(0)}), "");
  EXPECT_EQ(kept_of({R"({"reasoning_content":"Hm"})", R"({"content":"No"})"}), "") << "no calls";
  EXPECT_EQ(
      kept_of({R"({"reasoning_content":")" + std::string(ServerData::kMaxBytes, 'x') + R"(y"})",
               call(0)}),
      "")
      << "too long";
}

TEST(ServerDataTest, WhatWasKeptAndIsBrokenIsIgnored) {
  const std::string plain = next_request("", kServer);
  for (const char* const broken : {"{", "[]", R"({"server":"https://api.model.test:443"})"}) {
    EXPECT_EQ(next_request(broken, kServer), plain) << broken;
  }
}

TEST(ServerDataTest, OfWhatIsDamagedNothingElseIsTaken) {
  const std::string sound = next_request("", kServer);
  const auto damaged = [](const std::string& members) {
    return R"({"server":")" + std::string(kServer) + "\"," + members + "}";
  };
  for (const char* const members :
       {R"("message":{"tool_calls":{},"role":"system","content":5},"calls":{})",
        R"("message":{"reasoning_content":{}},"calls":{"0":{"extra_content":"x"}})",
        R"("calls":{"0":{"id":"evil","function":5,"type":null},"1":[],"7":{}})",
        R"("message":[],"calls":[])"}) {
    EXPECT_EQ(next_request(damaged(members), kServer), sound) << members;
  }
}

}  // namespace
}  // namespace sluice
