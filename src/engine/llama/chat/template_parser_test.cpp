#include "engine/llama/chat/template_parser.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>
#include <string_view>
#include <vector>

#include "engine/answer/answer_test_support.hpp"
#include "engine/llama/chat/text_template.hpp"

namespace sluice {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr std::string_view kQwen =
    "{%- if tools -%}<|im_start|>system\n# Tools\n<tools>"
    "{%- for tool in tools %}\n{{ tool | tojson }}{%- endfor -%}\n</tools>\n"
    "For each call return <tool_call>\n"
    "{\"name\": <function-name>, \"arguments\": <args-json-object>}\n</tool_call><|im_end|>\n"
    "{%- endif -%}"
    "{%- for m in messages -%}"
    "{%- if m.role == 'assistant' -%}<|im_start|>assistant\n"
    "{%- if m.reasoning_content -%}<think>\n{{ m.reasoning_content }}\n</think>\n\n{%- endif -%}"
    "{{ m.content }}"
    "{%- for call in m.tool_calls -%}"
    "{%- set f = call.function if call.function else call -%}\n<tool_call>\n"
    "{\"name\": \"{{ f.name }}\", \"arguments\": {{ f.arguments | tojson }}}\n</tool_call>"
    "{%- endfor -%}<|im_end|>\n"
    "{%- else -%}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{%- endif -%}"
    "{%- endfor -%}"
    "{%- if add_generation_prompt -%}<|im_start|>assistant\n{%- endif -%}";

/// The reader of answers to a request that offers the tool f.
AnswerReader::Options reader() {
  static const auto format = *make_chat_template({.text = std::string(kQwen)});
  GenerationRequest request;
  request.prompt = "Hi";
  request.tools = R"([{"name":"f","inputSchema":{"type":"object","properties":{"a":{}}}}])";
  return std::move(format->render(std::move(request))->reader);
}

/// What is read of an answer that comes in pieces of some bytes.
test::ReadAnswer read(std::string_view text, std::size_t piece = 7) {
  std::vector<std::string> pieces;
  for (; !text.empty(); text.remove_prefix(std::min(piece, text.size()))) {
    pieces.emplace_back(text.substr(0, piece));
  }
  return test::read_answer(reader(), pieces);
}

std::string call(std::string_view name = "f") {
  return "<tool_call>\n{\"name\": \"" + std::string(name) +
         "\", \"arguments\": {\"a\": 1}}\n</tool_call>";
}

constexpr std::string_view kRead = R"({"name":"f","arguments":{"a":1}})";

TEST(TemplateParser, CallsAreReadWhereverTheyStand) {
  for (const auto& [answer, text] : {
           std::pair(call(), ""),
           std::pair("Hi " + call(), "Hi "),
           std::pair(call() + "bye", "bye"),
           std::pair("Hi " + call() + "\nbye", "Hi \nbye"),
           std::pair("<think>\nWhy <tool_call>?\n</think>Hi " + call(), "Hi "),
       }) {
    const auto got = read(answer);
    EXPECT_EQ(got.text, text) << answer;
    EXPECT_THAT(got.calls, ElementsAre(kRead)) << answer;
    EXPECT_EQ(got.ending, AnswerReader::Ending::calls) << answer;
  }
  const auto two = read("1" + call() + "2" + call() + "\n" + call() + "3");
  EXPECT_EQ(two.text, "123");
  EXPECT_THAT(two.calls, ElementsAre(kRead, kRead, kRead));
}

TEST(TemplateParser, WhatIsNoCallIsTextAsItIsWritten) {
  for (const std::string& answer :
       {call("g"), "I call it." + call("g") + " The weather is fine.",
        std::string("<tool_call>\n{\"name\": \"f\"}\n</tool_call> behind"),
        std::string("To call a tool I would write <tool_call>\n and so on. That is all."),
        std::string("<tool_call>\n{\"name\": \"f\", \"argu"),
        std::string("<tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\": 1"),
        std::string("<tool_call>nonsense</tool_call>")}) {
    const auto got = read(answer);
    EXPECT_EQ(got.text, answer);
    EXPECT_THAT(got.calls, IsEmpty());
    EXPECT_EQ(got.ending, AnswerReader::Ending::text) << answer;
  }
  const auto mixed = read(call() + "\n" + call("g") + "\n" + call());
  EXPECT_EQ(mixed.text, "\n" + call("g") + "\n");
  EXPECT_THAT(mixed.calls, ElementsAre(kRead, kRead));
}

TEST(TemplateParser, TheMarkOfTheLastEndMayBeMissing) {
  const auto got = read("<tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\": 1}}\n");
  EXPECT_EQ(got.text, "");
  EXPECT_THAT(got.calls, ElementsAre(kRead));
}

TEST(TemplateParser, ManyMarksOfCallsThatAreNoneAreText) {
  std::string answer;
  for (int i = 0; i < 1000; ++i) answer += "<tool_call>{\"name\": \"f\", \"arguments\": {\"a\": \"";
  const auto got = read(answer, 1000);
  EXPECT_EQ(got.text, answer);
}

}  // namespace
}  // namespace sluice
