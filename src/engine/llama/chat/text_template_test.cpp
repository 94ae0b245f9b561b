#include "engine/llama/chat/text_template.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>
#include <string_view>
#include <utility>

#include "engine/answer/answer_test_support.hpp"

namespace sluice {
namespace {

using ::testing::HasSubstr;

constexpr std::string_view kNamed =
    "{{ bos_token }}{%- for m in messages -%}<|{{ m.role }}|>{{ m.content }}{{ eos_token }}"
    "{%- endfor -%}{%- if add_generation_prompt -%}<|assistant|>{%- endif -%}";

std::shared_ptr<const ChatTemplate> made(ChatTemplateText text) {
  auto out = make_chat_template(text);
  EXPECT_TRUE(out) << out.error().message;
  return out ? *std::move(out) : nullptr;
}

std::string rendered(const ChatTemplate& format, GenerationRequest request) {
  auto out = format.render(std::move(request));
  return out ? out->text : "error: " + out.error().message;
}

GenerationRequest user_says(std::string text) {
  GenerationRequest request;
  request.messages = {{.role = "user", .content = std::move(text)}};
  return request;
}

TEST(TextTemplate, HasItsTokensFromFiles) {
  const auto format =
      made({.text = std::string(kNamed), .bos = "<s>", .eos = "</s>", .special_tokens = {"</s>"}});
  EXPECT_EQ(rendered(*format, user_says("Hi")), "<s><|user|>Hi</s><|assistant|>");
  EXPECT_EQ(rendered(*format, user_says("a</s>b")), "<s><|user|>a<\u200B/s>b</s><|assistant|>");
  EXPECT_TRUE(format->hides("</s>"));
  EXPECT_FALSE(format->hides("Hi"));
  EXPECT_FALSE(format->needs_special_tokens());
}

TEST(TextTemplate, OnlyWhatWouldBeATokenIsBrokenUp) {
  // It may take something out of a text, and what is left would come together.
  const auto format = made({.text = "{%- for m in messages -%}[{{ m.content.replace('--', '') }}]"
                                    "{%- endfor -%}",
                            .special_tokens = {"<|end|>", "<｜User｜>"},
                            .added_tokens = {"<call>", "word"}});
  EXPECT_EQ(rendered(*format, user_says("1 < 2, <b> <| word")), "[1 < 2, <b> <| word]");
  EXPECT_EQ(rendered(*format, user_says("<--|end|><｜User｜><call>")),
            "[<\u200B|end|><\u200B｜User｜><\u200Bcall>]");
}

TEST(TextTemplate, ShowsTheSpecialTokensThatMarkReasoning) {
  const auto format = made({.text = std::string(kNamed) + "{#- <think> </think> -#}",
                            .special_tokens = {"<think>", "</think>", "<|user|>"}});
  EXPECT_TRUE(format->needs_special_tokens());
  EXPECT_FALSE(format->hides("<think>"));
  EXPECT_TRUE(format->hides("<|user|>"));
}

TEST(TextTemplate, MayBeAnotherForTools) {
  const auto format = made(
      {.text = std::string(kNamed),
       .tool_text = "{%- for t in tools -%}{{ t | tojson }}{%- endfor -%}" + std::string(kNamed)});
  GenerationRequest request = user_says("Hi");
  EXPECT_EQ(rendered(*format, request), "<|user|>Hi<|assistant|>");
  request.tools = R"([{"name":"now"}])";
  EXPECT_THAT(rendered(*format, request), HasSubstr("\"now\""));
}

TEST(TextTemplate, ReadsAnswersUpToTheStopsOfTheRequest) {
  GenerationRequest request = user_says("Hi");
  request.stop = {"END"};
  auto chat = made({.text = std::string(kNamed)})->render(request);
  ASSERT_TRUE(chat);
  const auto answer =
      test::read_answer(std::move(chat->reader), {"<think>Hm.</think>", "No EN", "D."});
  EXPECT_EQ(answer.reasoning, "Hm.");
  EXPECT_EQ(answer.text, "No ");
}

TEST(TextTemplate, RefusesWhatIsNone) {
  const auto why = [](std::string text) {
    const auto out = make_chat_template({.path = "f.jinja", .text = std::move(text)});
    return out ? std::string() : std::to_string(out.error().code) + out.error().message;
  };
  for (const std::string_view text :
       {"{% nonsense", "{{ raise_exception('no') }}", "{% endfor %}"}) {
    EXPECT_THAT(why(std::string(text)),
                HasSubstr("422the chat template of f.jinja cannot be used: "));
  }
}

std::string repeated(std::string_view text, int times) {
  std::string out;
  for (int i = 0; i < times; ++i) out += text;
  return out;
}

/// llama.cpp would run out of stack.
TEST(TextTemplate, RefusesWhatIsNestedTooDeeply) {
  const auto why = [](std::string text) {
    const auto out = make_chat_template({.path = "f.jinja", .text = std::move(text)});
    return out ? std::string() : out.error().message;
  };
  EXPECT_THAT(why("{{ " + repeated("(", 60'000) + "1" + repeated(")", 60'000) + " }}"),
              HasSubstr("cannot be used: it has more than 100 brackets in each other"));
  EXPECT_THAT(why("{{ " + repeated("not ", 60'000) + "1 }}"), HasSubstr("a tag that is longer"));
  EXPECT_THAT(why("{{ " + repeated("1 if 0 else ", 60'000) + "2 }}"),
              HasSubstr("a tag that is longer"));
  EXPECT_THAT(why(repeated("{% if 1 %}", 60'000) + repeated("{%- endif %}", 60'000)),
              HasSubstr("more than 200 blocks in each other"));
  EXPECT_THAT(why("{% if 0 %}" + repeated("{% elif 1 %}", 60'000) + "{% endif %}"),
              HasSubstr("more than 200 blocks in each other"));
  // As deep as it may be, and much that is not nested.
  EXPECT_EQ(why("{{ " + repeated("(", 99) + "'(((" + repeated("a", 60'000) + "'" +
                repeated(")", 99) + " }}{{ messages[0].content }}" +
                repeated("{% if 1 %}{% elif 1 %}{% endif %}{% set a = [1] %}((((", 2'000) +
                repeated("{% if 1 %}", 199) + repeated("{% endif %}", 199)),
            "");
  EXPECT_EQ(why("{{ messages[0].content }}{{ " + repeated("not ", 1'300) + "1 }}"), "");
}

TEST(TextTemplate, RefusesCallsWhoseArgumentsAreNone) {
  GenerationRequest request = user_says("Hi");
  request.messages.push_back(
      {.role = "assistant", .tool_calls = {{.name = "add", .arguments = "7"}}});
  EXPECT_THAT(rendered(*made({.text = std::string(kNamed)}), request),
              HasSubstr("error: the arguments of messages[1].tool_calls[0] must be an object"));
}

}  // namespace
}  // namespace sluice
