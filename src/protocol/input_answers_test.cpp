#include "protocol/input_answers.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/sharing/memory_budget.hpp"
#include "rpc/error_codes.hpp"

namespace sluice {
namespace {

using ::testing::HasSubstr;

struct Case {
  std::string_view answer;
  std::string_view why;  // empty: the answer is valid
};

void check(const InputRequest& request, std::initializer_list<Case> cases) {
  for (const Case& c : cases) {
    const Result<void> checked = check_answer(request, parse_json(c.answer).value());
    if (c.why.empty()) {
      EXPECT_TRUE(checked) << c.answer << checked.error().message;
      continue;
    }
    ASSERT_FALSE(checked) << c.answer;
    EXPECT_EQ(checked.error().code, kInvalidParams);
    EXPECT_THAT(checked.error().message,
                HasSubstr("The client's answer to " + request.method + " does not match"));
    EXPECT_THAT(checked.error().message, HasSubstr(c.why)) << c.answer;
  }
}

// The loop checks answers, so one that takes long is refused.
TEST(CheckAnswer, WhatTakesLongToCheckIsRefused) {
  const InputRequest request{"q", "sampling/createMessage", {}};
  const auto sampled = [](std::size_t blocks) {
    std::string content;
    for (std::size_t i = 0; i < blocks; ++i) {
      content += std::string(content.empty() ? "" : ",") + R"({"type":"text","text":"x"})";
    }
    return R"({"role":"assistant","model":"m","content":[)" + content + "]}";
  };
  check(request, {{sampled(100), ""}, {sampled(3'000), "cannot be checked: it takes more than"}});
}

TEST(CheckAnswer, ElicitationFollowsTheRequestedSchema) {
  const json::value params = parse_json(R"({"message":"Who?","requestedSchema":{"type":"object",
      "properties":{"name":{"type":"string","minLength":1},"age":{"type":"integer"},
        "mail":{"type":"string","format":"email"},
        "colours":{"type":"array","items":{"enum":["red","blue"]}}},
      "required":["name"]}})")
                                 .value();
  check({"who", "elicitation/create", params.get_object()},
        {
            {R"({"action":"accept","content":{"name":"Ann","age":7,"mail":"a@b.example"}})", ""},
            {R"({"action":"accept","content":{"name":"Ann","colours":["red"]}})", ""},
            {R"({"action":"decline"})", ""},
            {R"({"action":"cancel","content":{"name":1}})", ""},
            {R"({"action":"accept","content":{"age":7}})", "content: "},
            {R"({"action":"accept"})", "content: "},
            {R"({"action":"accept","content":{"name":"Ann","age":"7"}})",
             "content.age: expected integer, got string"},
            {R"({"action":"accept","content":{"name":"Ann","mail":"nobody"}})", "content.mail: "},
            {R"({"action":"accept","content":{"name":"Ann","colours":["red","pink"]}})",
             "content.colours[1]: "},
            {R"({"action":"accept","content":"Ann"})", "result.content: expected object"},
            {R"({"action":"maybe"})", "result.action: "},
            {R"({"content":{"name":"Ann"}})", "result: "},
            {R"("Ann")", "result: expected object"},
        });
}

TEST(CheckAnswer, AUrlIsAnsweredWithoutContent) {
  check({"pay", "elicitation/create", {{"mode", "url"}, {"url", "https://pay.example"}}},
        {{R"({"action":"accept"})", ""}, {R"({"action":1})", "result.action"}});
}

TEST(CheckAnswer, ASchemaThatIsNoneIsTheServersFault) {
  const InputRequest request{
      "who", "elicitation/create", {{"requestedSchema", {{"type", "strnig"}}}}};
  const auto checked =
      check_answer(request, parse_json(R"({"action":"accept","content":{}})").value());
  ASSERT_FALSE(checked);
  EXPECT_EQ(checked.error().code, kInternalError);
}

TEST(CheckAnswer, SampledMessagesHaveRoleModelAndContent) {
  check(
      {"ask", "sampling/createMessage", {}},
      {
          {R"({"role":"assistant","model":"m","content":{"type":"text","text":"hi"}})", ""},
          {R"({"role":"assistant","model":"m","stopReason":"toolUse","content":[
               {"type":"text","text":"hi"},{"type":"tool_use","id":"1","name":"t","input":{}}]})",
           ""},
          {R"({"role":"assistant","model":"m",
               "content":{"type":"image","data":"aGk=","mimeType":"image/png"}})",
           ""},
          {R"({"role":"robot","model":"m","content":{"type":"text","text":"hi"}})", "result.role"},
          {R"({"role":"user","content":{"type":"text","text":"hi"}})", "result: "},
          {R"({"role":"user","model":"m","content":"hi"})", "result.content: expected object"},
          {R"({"role":"user","model":"m","content":{"text":"hi"}})", "result.content: "},
          {R"({"role":"user","model":"m","content":{"type":"video"}})", "result.content.type"},
          {R"({"role":"user","model":"m","content":[{"type":"text"}]})", "result.content[0]"},
          {R"({"role":"user","model":"m","content":{"type":"tool_use","id":"1","name":"t"}})",
           "result.content"},
          {R"({"role":"user","model":"m","content":{"type":"audio","data":"a"}})",
           "result.content"},
      });
}

TEST(CheckAnswer, AnAnswerHasALimitOfValues) {
  json::array list(kMaxAnswerValues - 3);
  const auto check_list = [&] {
    return check_answer({"ask", "any", {}}, json::value{{"z", list}});
  };
  EXPECT_TRUE(check_list());
  list.push_back(nullptr);
  const auto refused = check_list();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, kInvalidParams);
  EXPECT_THAT(refused.error().message, HasSubstr("more than 16384 values"));
}

TEST(AskedInputs, LongAnswersAreOnTheMemoryOfTheQuestions) {
  MemoryBudget budget(std::size_t{1} << 20U);
  const std::vector<InputRequest> requests = {{"a", "any", {}}, {"b", "any", {}}};
  {
    AskedInputs asked(requests, MemoryHold(std::make_shared<MemoryShare>(budget)));
    ASSERT_TRUE(asked.take(0, json::value{{"short", "x"}}));
    EXPECT_EQ(budget.used(), 0U);
    const auto refused =
        asked.take(1, json::value{{"text", std::string(std::size_t{2} << 20U, 'x')}});
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, kLimitReached);
    EXPECT_FALSE(asked.answered(1));
    ASSERT_TRUE(asked.take(1, json::value{{"list", json::array(10'000)}}));
    EXPECT_TRUE(asked.complete());
    EXPECT_GT(budget.used(), 10'000 * sizeof(json::value));
  }
  EXPECT_EQ(budget.used(), 0U);
}

TEST(CheckAnswer, RootsAreFiles) {
  check({"roots", "roots/list", {}},
        {
            {R"({"roots":[]})", ""},
            {R"({"roots":[{"uri":"file:///home","name":"home"}]})", ""},
            {R"({"roots":[{"uri":"https://a.example"}]})", "result.roots[0].uri"},
            {R"({"roots":[{"name":"home"}]})", "result.roots[0]"},
            {R"({"roots":[{"uri":"file:///","name":1}]})", "result.roots[0].name"},
            {R"({"roots":{}})", "result.roots: expected array"},
            {R"({})", "result: "},
        });
}

}  // namespace
}  // namespace sluice
