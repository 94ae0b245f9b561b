#include "cli/questions/sampling_request.hpp"

#include <deque>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>

#include "rpc/error_codes.hpp"

namespace sluice {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

Result<GenerationRequest> request_of(std::string_view params) {
  return sampling_request(parse_json(params).value().get_object());
}

TEST(SamplingRequestTest, HasWhatTheServerSays) {
  const auto request = request_of(
      R"({"systemPrompt":"Be brief","maxTokens":7,"temperature":0.5,"stopSequences":["END"],
          "modelPreferences":{"hints":[{"name":"x"}]},
          "messages":[{"role":"user","content":{"type":"text","text":"Hello"}},
                      {"role":"assistant","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}]})");
  ASSERT_TRUE(request) << request.error().message;
  ASSERT_EQ(request->messages.size(), 3U);
  EXPECT_EQ(request->messages[0].role, "system");
  EXPECT_EQ(request->messages[0].content, "Be brief");
  EXPECT_EQ(request->messages[1].content, "Hello");
  EXPECT_EQ(request->messages[2].role, "assistant");
  EXPECT_EQ(request->messages[2].content, "a\nb");
  EXPECT_EQ(request->max_tokens, 7);
  EXPECT_EQ(request->sampling.temperature, 0.5F);
  EXPECT_THAT(request->stop, ElementsAre("END"));
}

TEST(SamplingRequestTest, TheAnswerIsLimited) {
  constexpr const char* kMessages =
      R"("messages":[{"role":"user","content":{"type":"text","text":"Hello"}}])";
  EXPECT_EQ(request_of("{" + std::string(kMessages) + "}")->max_tokens, kMaxSampledTokens);
  EXPECT_EQ(request_of("{\"maxTokens\":1000000," + std::string(kMessages) + "}")->max_tokens,
            kMaxSampledTokens);
}

TEST(SamplingRequestTest, WhatTheModelCannotReadIsRefused) {
  for (
      const char* params :
      {R"({})", R"({"messages":"Hello"})", R"({"messages":[7]})", R"({"messages":[]})",
       R"({"messages":[{"role":"user"}]})",
       R"({"messages":[{"role":"user","content":{"type":"image","data":"","mimeType":"image/png"}}]})",
       R"({"messages":[{"role":"system","content":{"type":"text","text":"a"}}]})",
       R"({"messages":[{"role":"user","content":{"type":"text","text":"a"}}],"maxTokens":"x"})",
       R"({"messages":[{"role":"user","content":{"type":"text","text":"a"}}],"tools":[]})"}) {
    const auto request = request_of(params);
    ASSERT_FALSE(request) << params;
    EXPECT_EQ(request.error().code, kInvalidParams) << params;
  }
}

TEST(SamplingRequestTest, TheResultSaysWhyItEnds) {
  EXPECT_EQ(to_json(sampling_result("Hi", "tiny", Completion::Reason::stop)),
            R"({"role":"assistant","content":{"type":"text","text":"Hi"},"model":"tiny",)"
            R"("stopReason":"endTurn"})");
  EXPECT_THAT(to_json(sampling_result("Hi", "tiny", Completion::Reason::length)),
              HasSubstr(R"("stopReason":"maxTokens")"));
}

struct SamplingTypist {
  std::deque<std::string> lines;
  std::string shown = {};
  SamplingConsent ask() {
    GenerationRequest request;
    request.messages = {{.role = "user", .content = "Tell\x1b[2J me"}};
    return ask_sampling(request, "tiny",
                        {.show = [this](std::string_view text) { shown.append(text); },
                         .read_line = [this]() -> std::optional<std::string> {
                           if (lines.empty()) return std::nullopt;
                           std::string line = std::move(lines.front());
                           lines.pop_front();
                           return line;
                         }});
  }
};

TEST(AskSamplingTest, TheUserSeesItAndDecides) {
  SamplingTypist typist{.lines = {"yes"}};
  EXPECT_EQ(typist.ask(), SamplingConsent::once);
  EXPECT_THAT(typist.shown, HasSubstr("user: Tell[2J me\n"));
  EXPECT_THAT(typist.shown, Not(HasSubstr("\x1b")));
  EXPECT_EQ((SamplingTypist{.lines = {"Always "}}.ask()), SamplingConsent::always);
  EXPECT_EQ((SamplingTypist{.lines = {"maybe", "n"}}.ask()), SamplingConsent::refused);
  EXPECT_EQ((SamplingTypist{.lines = {""}}.ask()), SamplingConsent::refused);
  EXPECT_EQ((SamplingTypist{}.ask()), SamplingConsent::refused);
}

TEST(AskSamplingTest, EndsWithSomebodyWhoNeverSaysWhat) {
  SamplingTypist typist{.lines = std::deque<std::string>(kMaxAttempts + 1, "what?")};
  EXPECT_EQ(typist.ask(), SamplingConsent::refused);
  EXPECT_EQ(typist.lines.size(), 1U);
}

}  // namespace
}  // namespace sluice
