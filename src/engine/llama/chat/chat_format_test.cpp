#include "engine/llama/chat/chat_format.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <memory>
#include <string>
#include <string_view>

#include "engine/answer/answer_test_support.hpp"
#include "engine/llama/llama_model.hpp"
#include "engine/llama/model/model_test_support.hpp"

namespace sluice {
namespace {

using testing::EndsWith;
using testing::HasSubstr;

constexpr std::string_view kPlain =
    "{%- for m in messages -%}<|{{ m.role }}|>{{ m.content }}<|end|>{%- endfor -%}"
    "{%- if add_generation_prompt -%}<|assistant|>{%- endif -%}";

constexpr std::string_view kThinking =
    "{%- for m in messages -%}"
    "{%- if m.role == 'assistant' and '</think>' in m.content -%}"
    "<|assistant|>{{ m.content.split('</think>')[-1] }}<|end|>"
    "{%- else -%}<|{{ m.role }}|>{{ m.content }}<|end|>{%- endif -%}"
    "{%- endfor -%}"
    "{%- if add_generation_prompt -%}<|assistant|>"
    "{%- if enable_thinking is defined and not enable_thinking -%}<think>\n\n</think>\n\n"
    "{%- else -%}<think>\n{%- endif -%}{%- endif -%}";

constexpr std::string_view kTools =
    "{%- if tools -%}<|im_start|>system\n# Tools\n<tools>"
    "{%- for tool in tools %}\n{{ tool | tojson }}{%- endfor -%}\n</tools>\n"
    "For each call return <tool_call>\n"
    "{\"name\": <function-name>, \"arguments\": <args-json-object>}\n</tool_call><|im_end|>\n"
    "{%- endif -%}"
    "{%- for m in messages -%}"
    "{%- if m.role == 'assistant' and m.tool_calls -%}<|im_start|>assistant\n{{ m.content }}"
    "{%- for call in m.tool_calls -%}"
    "{%- set f = call.function if call.function else call -%}\n<tool_call>\n"
    "{\"name\": \"{{ f.name }}\", \"arguments\": {{ f.arguments | tojson }}}\n</tool_call>"
    "{%- endfor -%}<|im_end|>\n"
    "{%- elif m.role == 'tool' -%}<|im_start|>user\n<tool_response>\n{{ m.content }}\n"
    "</tool_response><|im_end|>\n"
    "{%- else -%}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{%- endif -%}"
    "{%- endfor -%}"
    "{%- if add_generation_prompt -%}<|im_start|>assistant\n{%- endif -%}";

/// A model with a given template, and its chat format.
class Fixture {
 public:
  explicit Fixture(std::string_view chat_template) : file_("chat-format.gguf") {
    write(file_, test::ZeroModel{.chat_template = std::string(chat_template),
                                 .control_tokens = {"<|im_start|>", "<|im_end|>"}}
                     .build());
    LlamaOptions options;
    options.model_path = file_.path();
    options.backend = "cpu";
    options.slots = 1;
    auto loaded = load_model(options, [](float) { return true; });
    EXPECT_TRUE(loaded) << loaded.error().message;
    model_ = std::move(*loaded);
    format_ = std::make_unique<ChatFormat>(model_.model.get());
  }
  const ChatFormat& operator*() const { return *format_; }
  const ChatFormat* operator->() const { return format_.get(); }

 private:
  const test::TemporaryFile file_;
  LoadedModel model_;
  std::unique_ptr<ChatFormat> format_;
};

GenerationRequest ask(std::string text) {
  GenerationRequest request;
  request.prompt = std::move(text);
  return request;
}

/// Reads an answer that arrives character by character.
test::ReadAnswer read(AnswerReader::Options options, std::string_view answer) {
  std::vector<std::string> pieces;
  for (const char c : answer) pieces.emplace_back(1, c);
  return test::read_answer(std::move(options), pieces);
}

TEST(ChatFormat, RendersMessagesAndPrompts) {
  const Fixture format(kPlain);
  EXPECT_TRUE(format->is_explicit());
  EXPECT_EQ(format->render(ask("Hi"))->text, "<|user|>Hi<|end|><|assistant|>");
  GenerationRequest request;
  request.messages = {{.role = "system", .content = "Be brief."},
                      {.role = "user", .content = "Grüße 😀"},
                      {.role = "assistant", .content = "Yes?"},
                      {.role = "user", .content = "No."}};
  EXPECT_EQ(format->render(request)->text,
            "<|system|>Be brief.<|end|><|user|>Grüße 😀<|end|><|assistant|>Yes?<|end|>"
            "<|user|>No.<|end|><|assistant|>");
}

TEST(ChatFormat, WhatIsSaidIsNotOfTheTemplatesFormat) {
  const Fixture format(kTools);
  GenerationRequest request = ask("<|im_end|>?");
  request.tools = R"([{"name":"<|im_start|>","description":"Ends in <|im_"}])";
  const auto prompt = format->render(request);
  ASSERT_TRUE(prompt);
  ASSERT_FALSE(prompt->mark.empty());
  EXPECT_THAT(prompt->text, HasSubstr("<|im_start|>user\n<" + prompt->mark + "|im_end|>?"));
  EXPECT_THAT(prompt->text, HasSubstr("\"<" + prompt->mark + "|im_start|>\""));
  EXPECT_THAT(prompt->text, HasSubstr("Ends in <" + prompt->mark + "|im_\""));
  const auto ordinary = format->render(ask("Is 1 < 2?"));
  EXPECT_TRUE(ordinary->mark.empty());
  EXPECT_NE(format->render(request)->mark, prompt->mark);
}

TEST(ChatFormat, FallsBackToChatMl) {
  for (const std::string_view none : {"", "{% nonsense"}) {
    const Fixture format(none);
    EXPECT_FALSE(format->is_explicit());
    EXPECT_EQ(format->render(ask("Hi"))->text,
              "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n");
  }
}

TEST(ChatFormat, SeparatesTheReasoningThatTheTemplateOpens) {
  const Fixture format(kThinking);
  auto prompt = format->render(ask("Hi"));
  ASSERT_TRUE(prompt);
  EXPECT_THAT(prompt->text, EndsWith("<|assistant|><think>"));
  EXPECT_TRUE(prompt->reader.reasoning_open);
  const test::ReadAnswer answer =
      read(std::move(prompt->reader), "Let me see.\n</think>\n\nHello.");
  EXPECT_EQ(answer.reasoning, "Let me see.\n");
  EXPECT_EQ(answer.text, "Hello.");
}

TEST(ChatFormat, SeparatesReasoningThatOnlyTheModelMarks) {
  const Fixture format(kPlain);
  auto prompt = format->render(ask("Hi"));
  const test::ReadAnswer answer = read(std::move(prompt->reader), "<think>Hm.</think>Hello.");
  EXPECT_EQ(answer.reasoning, "Hm.");
  EXPECT_EQ(answer.text, "Hello.");
}

TEST(ChatFormat, ConstrainedAnswersHaveNoReasoning) {
  const Fixture format(kThinking);
  GenerationRequest request = ask("Hi");
  request.json_schema = "{}";
  auto prompt = format->render(request);
  ASSERT_TRUE(prompt);
  EXPECT_THAT(prompt->text, HasSubstr("<think>\n\n</think>"));
  EXPECT_EQ(read(std::move(prompt->reader), "\"<think>\"").text, "\"<think>\"");
}

constexpr std::string_view kAdd =
    R"([{"name":"add","description":"Adds","inputSchema":{"type":"object",)"
    R"("properties":{"a":{"type":"integer"},"b":{"type":"integer"}},"required":["a","b"]}}])";

TEST(ChatFormat, OffersToolsAndReadsTheirCalls) {
  const Fixture format(kTools);
  GenerationRequest request = ask("What is 1 + 2?");
  request.tools = kAdd;
  auto prompt = format->render(request);
  ASSERT_TRUE(prompt) << prompt.error().message;
  EXPECT_THAT(prompt->text, HasSubstr("\"name\": \"add\""));
  EXPECT_THAT(prompt->text, HasSubstr("\"required\": [\"a\", \"b\"]"));
  EXPECT_NE(prompt->tool_grammar, nullptr);
  EXPECT_TRUE(prompt->grammar_lazy);
  const test::ReadAnswer answer =
      read(std::move(prompt->reader),
           "I add.\n<tool_call>\n{\"name\": \"add\", \"arguments\": {\"a\": 1, \"b\": 2}}\n"
           "</tool_call>");
  EXPECT_THAT(answer.text, HasSubstr("I add."));
  EXPECT_THAT(answer.text, testing::Not(HasSubstr("tool_call")));
  EXPECT_THAT(answer.calls, testing::ElementsAre(R"({"name":"add","arguments":{"a":1,"b":2}})"));
}

TEST(ChatFormat, TakesToolsInOpenAiFormToo) {
  const Fixture format(kTools);
  GenerationRequest request = ask("Hi");
  request.tools =
      R"([{"type":"function","function":{"name":"now","parameters":{"type":"object"}}}])";
  EXPECT_THAT(format->render(request)->text, HasSubstr("\"name\": \"now\""));
}

TEST(ChatFormat, ReadsAnAnswerWithoutCallsWhenToolsWereOffered) {
  const Fixture format(kTools);
  GenerationRequest request = ask("Hi");
  request.tools = kAdd;
  const test::ReadAnswer answer = read(std::move(format->render(request)->reader), "Just text.");
  EXPECT_EQ(answer.text, "Just text.");
  EXPECT_TRUE(answer.calls.empty());
}

/// llama.cpp converts the parameters to a grammar, and the time for that has no limit.
TEST(ChatFormat, RefusesToolsWhoseParametersCannotBeFollowed) {
  const Fixture format(kTools);
  std::string nested = R"({"type":"string"})";
  for (int i = 0; i < 12; ++i) {
    nested = R"({"type":["object","object","object","object"],"properties":{"a":)" + nested + "}}";
  }
  GenerationRequest request = ask("Hi");
  request.tools = R"([{"name":"deep","parameters":)" + nested + "}]";
  const auto deep = format->render(request);
  ASSERT_FALSE(deep);
  EXPECT_EQ(deep.error().code, -32602);
  EXPECT_THAT(deep.error().message, testing::StartsWith("the tool \"deep\" cannot be followed: "));
  request.tools = "[";
  for (int i = 0; i < 129; ++i) request.tools += std::string(i > 0 ? "," : "") + R"({"name":"t"})";
  request.tools += "]";
  const auto many = format->render(request);
  ASSERT_FALSE(many);
  EXPECT_THAT(many.error().message, testing::HasSubstr("128"));
}

TEST(ChatFormat, NamesTheToolWhoseSchemaIsNone) {
  const Fixture format(kTools);
  GenerationRequest request = ask("Hi");
  for (const auto& [schema, why] : {
           std::pair{R"({"properties":{"a":{"type":"nope"}}})", "#/properties/a"},
           std::pair{R"({"properties":{"a":{"enum":[]}}})", "#/properties/a"},
           std::pair{R"({"properties":{"a":{"type":"string","minLength":5,"maxLength":2}}})",
                     "order"},
           std::pair{R"({"$ref":"#"})", "references"},
       }) {
    request.tools = R"([{"name":"good"},{"name":"bad","inputSchema":)" + std::string(schema) + "}]";
    const auto prompt = format->render(request);
    ASSERT_FALSE(prompt) << schema;
    EXPECT_EQ(prompt.error().code, -32602);
    EXPECT_THAT(prompt.error().message,
                testing::StartsWith("the tool \"bad\" cannot be followed: "));
    EXPECT_THAT(prompt.error().message, HasSubstr(why));
  }
}

TEST(ChatFormat, ToolsMayReferToTheirWholeSchemaAndToOthers) {
  const Fixture format(kTools);
  GenerationRequest request = ask("Hi");
  for (const std::string reference : {"#", "#tree", "https://example.org/tree"}) {
    request.tools = R"([{"name":"grow","inputSchema":{"type":"object","properties":)"
                    R"({"left":{"$ref":")" +
                    reference + R"("},"any":true}}}])";
    const auto prompt = format->render(request);
    ASSERT_TRUE(prompt) << prompt.error().message;
    EXPECT_NE(prompt->tool_grammar, nullptr);
  }
}

TEST(ChatFormat, RefusesWhatIsNoTool) {
  const Fixture format(kTools);
  for (const std::string_view tools :
       {"{}", "[1]", "[{}]", "[", R"([{"name":7}])", R"([{"name":"a\u0000"}])", R"([{"name":" "}])",
        R"([{"name":"a "}])"}) {
    GenerationRequest request = ask("Hi");
    request.tools = tools;
    const auto prompt = format->render(request);
    ASSERT_FALSE(prompt) << tools;
    EXPECT_EQ(prompt.error().code, -32602);
  }
  GenerationRequest both = ask("Hi");
  both.tools = kAdd;
  both.json_schema = "{}";
  EXPECT_FALSE(format->render(both));
}

TEST(ChatFormat, KnowsWhetherRolesMustAlternate) {
  // As the templates of Gemma and of early models of Mistral do it.
  const std::string strict =
      "{%- for m in messages -%}"
      "{%- if (m.role == 'user') != (loop.index0 % 2 == 0) -%}"
      "{{ raise_exception('Conversation roles must alternate user/assistant/...') }}{%- endif -%}"
      "[{{ m.role }}]{{ m.content }}{%- endfor -%}"
      "{%- if add_generation_prompt -%}[assistant]{%- endif -%}";
  EXPECT_TRUE(Fixture(strict)->alternates());
  EXPECT_FALSE(Fixture(kPlain)->alternates());
  EXPECT_FALSE(Fixture("{{ raise_exception('Nothing will do') }}")->alternates());
}

TEST(ChatFormat, PassesOnThatTheTemplateRefuses) {
  const Fixture format(
      "{%- for m in messages -%}"
      "{%- if m.role != 'user' and m.role != 'assistant' -%}"
      "{{ raise_exception('Only user and assistant, not ' + m.role) }}{%- endif -%}"
      "[{{ m.role }}]{{ m.content }}{%- endfor -%}"
      "{%- if add_generation_prompt -%}[assistant]{%- endif -%}");
  GenerationRequest request;
  request.messages = {{.role = "wizard", .content = "Abracadabra"}};
  const auto prompt = format->render(request);
  ASSERT_FALSE(prompt);
  EXPECT_EQ(prompt.error().code, -32602);
  EXPECT_THAT(prompt.error().message, testing::Not(HasSubstr("wizard")));
}

}  // namespace
}  // namespace sluice
