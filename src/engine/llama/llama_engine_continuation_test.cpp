// Requests that go on from an earlier answer (GenerationRequest::continues).

#include <algorithm>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/llama/llama_engine_test_support.hpp"
#include "engine/llama/model/model_test_support.hpp"

namespace sluice {
namespace {

using testing::HasSubstr;
using Reason = Completion::Reason;
using test::AnswerSink;
using test::built_in_options;
using test::Running;

constexpr std::string_view kTool =
    R"([{"name":"stream_numbers","description":"Streams numbers","inputSchema":{"type":"object",)"
    R"("properties":{"count":{"type":"integer"}},"required":["count"]}}])";

class LlamaContinuationTest : public test::LlamaEngineFixture {
 protected:
  struct Answered {
    std::shared_ptr<Generation> generation;
    std::string text;
    Completion end;
  };

  static GenerationRequest asking(std::vector<ChatMessage> messages) {
    GenerationRequest request;
    request.messages = std::move(messages);
    request.sampling.temperature = 0;
    request.keeps_sequence = true;
    return request;
  }
  /// The answer to a request that goes on from `earlier`, whose last messages are `fresh`.
  static GenerationRequest going_on(const Answered& earlier, std::vector<ChatMessage> messages,
                                    std::size_t fresh = 1) {
    GenerationRequest request = asking(std::move(messages));
    request.continues = earlier.generation;
    request.new_messages = fresh;
    return request;
  }
  Answered ask(GenerationRequest request) {
    Running running = start(std::move(request));
    const Completion end = running.sink->wait();
    EXPECT_FALSE(end.error) << end.error->message;
    return {.generation = std::move(running.generation), .text = running.sink->text(), .end = end};
  }
  /// The tokens of the prompt and the answer.
  static std::uint32_t tokens_of(const Answered& answered) {
    return answered.end.usage.prompt_tokens + answered.end.usage.completion_tokens;
  }
};

TEST_F(LlamaContinuationTest, AnswersAsIfItHadReadTheWholeConversation) {
  load();
  const Answered first = ask(asking({{.role = "user", .content = "Who are you?"}}));
  EXPECT_TRUE(first.generation->keeps_sequence());
  const std::vector<ChatMessage> all = {{.role = "user", .content = "Who are you?"},
                                        {.role = "assistant", .content = first.text},
                                        {.role = "user", .content = "Count from 3 to 9"}};
  const Answered second = ask(going_on(first, all));
  EXPECT_EQ(second.end.usage.cached_tokens, tokens_of(first));
  EXPECT_EQ(second.text, "3, 4, 5, 6, 7, 8, 9.");

  engine_.reset();
  load();
  const Answered whole = ask(asking(all));
  EXPECT_EQ(whole.text, second.text);
  EXPECT_EQ(whole.end.usage.prompt_tokens, second.end.usage.prompt_tokens);
}

TEST_F(LlamaContinuationTest, ItsOwnWordsCountAndNotTheirCopy) {
  load();
  const Answered first = ask(asking({{.role = "user", .content = "Who are you?"}}));
  const std::vector<ChatMessage> all = {{.role = "user", .content = "Who are you?"},
                                        {.role = "assistant", .content = "Nobody."},
                                        {.role = "user", .content = "Count from 3 to 9"}};
  const Answered second = ask(going_on(first, all));
  EXPECT_EQ(second.end.usage.cached_tokens, tokens_of(first));
  EXPECT_GT(second.end.usage.prompt_tokens, tokens_of(first));
  EXPECT_EQ(second.text, "3, 4, 5, 6, 7, 8, 9.");
  // And again, from the second.
  std::vector<ChatMessage> more = all;
  more.push_back({.role = "assistant", .content = "Something else."});
  more.push_back({.role = "user", .content = "Count from 2 to 4"});
  const Answered third = ask(going_on(second, more));
  EXPECT_EQ(third.end.usage.cached_tokens, tokens_of(second));
  EXPECT_EQ(third.text, "2, 3, 4.");
}

TEST_F(LlamaContinuationTest, AnAnswerThatIsBrokenOffKeepsWhatWasSaid) {
  load();
  Running running =
      start(asking({{.role = "user", .content = "Count from 1 to 50"}}), 8);  // then it is full
  running.sink->wait_for_deltas(8);
  EXPECT_FALSE(running.generation->keeps_sequence());
  running.generation->cancel();
  const Completion end = running.sink->wait();
  ASSERT_EQ(end.reason, Reason::cancelled);
  const Answered first{.generation = std::move(running.generation), .text = "", .end = end};
  const Answered second = ask(going_on(first, {{.role = "user", .content = "Count from 1 to 50"},
                                               {.role = "assistant", .content = "(what it said)"},
                                               {.role = "user", .content = "Count from 3 to 9"}}));
  // The last token was chosen, but not computed.
  EXPECT_GE(second.end.usage.cached_tokens + 1, tokens_of(first));
  EXPECT_EQ(second.text, "3, 4, 5, 6, 7, 8, 9.");
}

TEST_F(LlamaContinuationTest, AStepThatIsBrokenOffCostsNothingOfWhatWasComputed) {
  load();
  for (int round = 0; round < 20; ++round) {
    Running running = start(asking({{.role = "user", .content = "Count from 1 to 50"}}));
    running.sink->wait_for_deltas(3);
    running.generation->cancel();
    const Completion end = running.sink->wait();
    ASSERT_EQ(end.reason, Reason::cancelled);
    const Answered first{.generation = std::move(running.generation), .text = "", .end = end};
    const Answered second =
        ask(going_on(first, {{.role = "user", .content = "Count from 1 to 50"},
                             {.role = "assistant", .content = "(what it said)"},
                             {.role = "user", .content = "Count from 3 to 9"}}));
    EXPECT_GE(second.end.usage.cached_tokens + 1, tokens_of(first));
    EXPECT_EQ(second.end.reason, Reason::stop);
  }
}

TEST_F(LlamaContinuationTest, GoesOnBehindACallOfATool) {
  load();
  GenerationRequest request =
      asking({{.role = "user", .content = "Stream 5 numbers and tell me the last one"}});
  request.tools = kTool;
  const Answered first = ask(std::move(request));
  ASSERT_EQ(first.end.reason, Reason::tool_calls) << first.text;
  GenerationRequest next = going_on(
      first,
      {{.role = "user", .content = "Stream 5 numbers and tell me the last one"},
       {.role = "assistant",
        .tool_calls = {{.id = "c1", .name = "stream_numbers", .arguments = R"({"count":5})"}}},
       {.role = "tool",
        .content = "2 4 6 8 10.",
        .tool_call_id = "c1",
        .tool_name = "stream_numbers"}});
  next.tools = kTool;
  const Answered second = ask(std::move(next));
  EXPECT_EQ(second.end.usage.cached_tokens, tokens_of(first));
  EXPECT_THAT(second.text, HasSubstr("10"));
}

TEST_F(LlamaContinuationTest, WhatDoesNotFitIsReadAnewFromTheMessages) {
  LlamaOptions options = built_in_options();
  options.context_tokens = 256;
  load(std::move(options));
  Answered last = ask(asking({{.role = "user", .content = "Count from 1 to 50"}}));
  const std::vector<ChatMessage> all = {{.role = "user", .content = "Count"},
                                        {.role = "assistant", .content = "Yes."},
                                        {.role = "user", .content = "Count from 2 to 4"}};
  ASSERT_GT(tokens_of(last) + 80, 256U) << "the first answer leaves room";
  const Answered next = ask(going_on(last, all));
  EXPECT_LT(next.end.usage.prompt_tokens, tokens_of(last));
  EXPECT_EQ(next.text, "2, 3, 4.");
}

TEST_F(LlamaContinuationTest, NobodyGoesOnFromTheAnswersOfOthers) {
  load();
  const Answered first = ask(asking({{.role = "user", .content = "Who are you?"}}));
  const std::vector<ChatMessage> all = {{.role = "user", .content = "Who are you?"},
                                        {.role = "assistant", .content = "Nobody."},
                                        {.role = "user", .content = "Count from 3 to 9"}};
  GenerationRequest foreign = going_on(first, all);
  foreign.principal = "somebody else";
  EXPECT_EQ(ask(std::move(foreign)).end.usage.cached_tokens, 0U);

  const std::unique_ptr<LlamaEngine> other = std::move(engine_);
  load();
  EXPECT_EQ(ask(going_on(first, all)).end.usage.cached_tokens, 0U);
}

TEST_F(LlamaContinuationTest, WhatIsNoAnswerIsNotGoneOnFrom) {
  load();
  GenerationRequest forgets = asking({{.role = "user", .content = "Who are you?"}});
  forgets.keeps_sequence = false;
  EXPECT_FALSE(ask(std::move(forgets)).generation->keeps_sequence());

  const Answered first = ask(asking({{.role = "user", .content = "Who are you?"}}));
  // The messages do not have the form that the request says.
  for (const std::size_t fresh : {std::size_t{0}, std::size_t{2}, std::size_t{3}, std::size_t{9}}) {
    const Answered next = ask(going_on(first,
                                       {{.role = "user", .content = "Hello"},
                                        {.role = "assistant", .content = "Nobody."},
                                        {.role = "user", .content = "Count from 3 to 9"}},
                                       fresh));
    EXPECT_LT(next.end.usage.prompt_tokens, tokens_of(first)) << fresh;
    EXPECT_EQ(next.text, "3, 4, 5, 6, 7, 8, 9.");
  }
}

TEST_F(LlamaContinuationTest, ATemplateThatHidesTheAnswerIsReadAnew) {
  const test::TemporaryFile file("template.gguf");
  const test::ZeroModel model{
      .chat_template =
          "{% for m in messages %}{% if m.role == 'user' %}<u>{{ m.content }}<e>"
          "{% endif %}{% endfor %}<a>",
      .control_tokens = {"<u>", "<a>", "<e>"}};
  test::write(file, model.build());
  LlamaOptions options;
  options.model_path = file.path();
  options.backend = "cpu";
  load(std::move(options));
  GenerationRequest request = asking({{.role = "user", .content = "one"}});
  request.max_tokens = 3;
  const Answered first = ask(std::move(request));
  GenerationRequest next = going_on(first, {{.role = "user", .content = "one"},
                                            {.role = "assistant", .content = "answer"},
                                            {.role = "user", .content = "two"}});
  next.max_tokens = 3;
  // <s><u>one<e><u>two<e><a>
  EXPECT_EQ(ask(std::move(next)).end.usage.prompt_tokens, 12U);
}

}  // namespace
}  // namespace sluice
