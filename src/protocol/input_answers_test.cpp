#include "protocol/input_answers.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>
#include <string_view>

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
  check(request, {{sampled(100), ""}, {sampled(50'000), "cannot be checked: it takes more than"}});
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
