#include "engine/llama/llama_engine.hpp"

#include <atomic>
#include <cmath>
#include <condition_variable>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <latch>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "core/manual_executor.hpp"
#include "core/text/utf8.hpp"
#include "engine/llama/llama_engine_test_support.hpp"
#include "engine/llama/model/model_test_support.hpp"
#include "json/json.hpp"

namespace sluice {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::StartsWith;
using Reason = Completion::Reason;
using Phase = GenerationStatus::Phase;
using test::AnswerSink;
using test::built_in_options;
using test::greedy;
using test::Running;

class LlamaEngineTest : public test::LlamaEngineFixture {};

TEST_F(LlamaEngineTest, AnswersReadablyAndEnds) {
  load();
  Completion end;
  const std::string text = answer(greedy("Who are you?"), &end);
  EXPECT_THAT(text, StartsWith("I am Sluice Tiny, the tiny built-in model of Sluice. I can "));
  EXPECT_EQ(end.reason, Reason::stop);
  EXPECT_GT(end.usage.prompt_tokens, 5U);
  EXPECT_GE(end.usage.completion_tokens, 20U);
  EXPECT_LE(end.usage.completion_tokens, 150U);
  EXPECT_GT(end.timings.prefill, 0us);
  EXPECT_GT(end.timings.decode, 0us);

  const EngineInfo info = engine_->info();
  EXPECT_EQ(info.engine, "llama");
  EXPECT_EQ(info.model, "sluice-tiny");
  EXPECT_EQ(info.context_tokens, 1024U);
  EXPECT_EQ(info.slots, 4U);
  EXPECT_GT(info.parameters, 1'000'000U);
}

TEST_F(LlamaEngineTest, SampledAnswersAreReadableToo) {
  load();
  for (std::uint32_t seed = 0; seed < 20; ++seed) {
    GenerationRequest request;
    request.prompt = "Hello";
    request.sampling.seed = seed;
    Completion end;
    const std::string text = answer(request, &end);
    EXPECT_THAT(text, HasSubstr("I am a tiny built-in model"));
    EXPECT_EQ(end.reason, Reason::stop) << text;
    EXPECT_LE(end.usage.completion_tokens, 150U);
  }
}

TEST_F(LlamaEngineTest, ReportsTheLoadingOfTheModel) {
  std::mutex mutex;
  std::vector<ModelState> states;
  LlamaOptions options = built_in_options();
  options.on_model_state = [&](const ModelState& state) {
    const std::lock_guard lock(mutex);
    states.push_back(state);
  };
  load(std::move(options));
  engine_->shutdown();
  ASSERT_GE(states.size(), 2U);
  EXPECT_EQ(states.front().phase, ModelState::Phase::loading);
  EXPECT_EQ(states.back().phase, ModelState::Phase::ready);
  float last = 0;
  for (const ModelState& state : states) {
    EXPECT_GE(state.progress, last);
    last = state.progress;
  }
}

TEST_F(LlamaEngineTest, ParallelSequencesAnswerAsIfAlone) {
  load();
  // No stories: two words may be as likely as each other, and rounding depends on what is decoded
  // together.
  const std::vector<std::string> prompts = {"Hello",
                                            "Count from 9 down to 2",
                                            "Wer ist das? äöü 😀",
                                            "Count from 3 to 30",
                                            "What day comes after Monday?",
                                            "What is 2 + 3?"};  // must wait for a slot
  std::vector<std::string> alone;
  alone.reserve(prompts.size());
  for (const std::string& prompt : prompts) alone.push_back(answer(greedy(prompt)));
  std::vector<Running> together;
  together.reserve(prompts.size());
  for (const std::string& prompt : prompts) together.push_back(start(greedy(prompt)));
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    together[i].sink->wait();
    EXPECT_EQ(together[i].sink->text(), alone[i]) << prompts[i];
  }
}

TEST_F(LlamaEngineTest, TheSameSeedGivesTheSameAnswer) {
  load();
  const auto with_seed = [&](std::uint32_t seed) {
    GenerationRequest request;
    request.prompt = "Tell me a story";
    request.sampling.temperature = 1.5F;
    request.sampling.seed = seed;
    return answer(request);
  };
  bool differ = false;
  for (const std::uint32_t seed : {0U, 1U, 2U, 3U, 0xFFFFFFFFU}) {
    const std::string first = with_seed(seed);
    EXPECT_EQ(first, with_seed(seed)) << seed;
    differ = differ || first != with_seed(99);
  }
  EXPECT_TRUE(differ);
}

TEST_F(LlamaEngineTest, DoesNotComputeACommonBeginningAgain) {
  load();
  GenerationRequest first;
  first.sampling.temperature = 0;
  first.messages = {{.role = "user", .content = "Tell me a story."}};
  Completion end;
  const std::string said = answer(first, &end);
  EXPECT_EQ(end.usage.cached_tokens, 0U);
  const std::uint32_t whole = end.usage.prompt_tokens + end.usage.completion_tokens;

  GenerationRequest second = first;
  second.messages.push_back({.role = "assistant", .content = said});
  second.messages.push_back({.role = "user", .content = "Hello"});
  const std::string again = answer(second, &end);
  EXPECT_EQ(end.usage.cached_tokens, whole);
  EXPECT_EQ(engine_->stats().cached_tokens, whole);

  EXPECT_EQ(answer(second, &end), again);
  EXPECT_EQ(end.usage.cached_tokens, end.usage.prompt_tokens - 1);
}

TEST_F(LlamaEngineTest, CopiesACommonBeginningFromASlotInUse) {
  LlamaOptions options = built_in_options();
  options.slots = 2;
  options.pause_grace = 1h;
  load(std::move(options));
  const std::string prompt(300, 'x');
  const std::string expected = answer(greedy(prompt));
  const Running busy = start(greedy(prompt), 1);
  busy.sink->wait_for_deltas(1);
  Completion end;
  EXPECT_EQ(answer(greedy(prompt), &end), expected);
  EXPECT_EQ(end.usage.cached_tokens, end.usage.prompt_tokens - 1);
  EXPECT_FALSE(busy.sink->completed());
}

TEST_F(LlamaEngineTest, EndsAtMaxTokens) {
  load();
  GenerationRequest request = greedy("Hello");
  request.max_tokens = 5;
  Completion end;
  const std::string text = answer(request, &end);
  EXPECT_THAT(answer(greedy("Hello")), StartsWith(text));
  EXPECT_EQ(end.reason, Reason::length);
  EXPECT_EQ(end.usage.completion_tokens, 5U);
}

TEST_F(LlamaEngineTest, EndsWhenTheContextIsFull) {
  LlamaOptions options = built_in_options();
  options.context_tokens = 40;
  load(std::move(options));
  Completion end;
  EXPECT_THAT(answer(greedy("Count from 1 to 50"), &end), StartsWith("1, 2, 3"));
  EXPECT_EQ(end.reason, Reason::length);
  EXPECT_EQ(end.usage.prompt_tokens + end.usage.completion_tokens, 40U);
}

TEST_F(LlamaEngineTest, StopStringsEndTheAnswerAcrossTokens) {
  load();
  GenerationRequest request = greedy("Hello");
  request.stop = {"nothing like this", "uilt-in mod"};
  Completion end;
  EXPECT_EQ(answer(request, &end), "Hello! I am a tiny b");
  EXPECT_EQ(end.reason, Reason::stop);
}

TEST_F(LlamaEngineTest, AStopStringThatDoesNotComeUpLosesNothing) {
  load();
  GenerationRequest request = greedy("Hello");
  request.stop = {"tools.!"};  // the answer ends with "tools."
  EXPECT_EQ(answer(request), answer(greedy("Hello")));
}

TEST_F(LlamaEngineTest, FollowsAGrammar) {
  load();
  GenerationRequest request = greedy("Yes or no?");
  request.grammar = R"(root ::= "<" ("yes" | "no") ">" [0-9] [0-9])";
  Completion end;
  EXPECT_THAT(answer(request, &end), testing::MatchesRegex("<(yes|no)>[0-9][0-9]"));
  EXPECT_EQ(end.reason, Reason::stop);
}

TEST_F(LlamaEngineTest, CharactersArriveWholeFromByteTokens) {
  load();
  GenerationRequest request = greedy("Smile!");
  request.grammar = R"(root ::= "a😀é€b")";
  const Running running = start(request);
  EXPECT_EQ(running.sink->wait().usage.completion_tokens, 11U);  // bytes
  EXPECT_EQ(running.sink->text(), "a😀é€b");
  EXPECT_EQ(running.sink->deltas(), 5U);

  request.max_tokens = 3;  // ends in the middle of the emoji
  EXPECT_EQ(answer(request), "a\uFFFD");
}

/// Some beginnings look like those of a character of the set, but no character begins like this:
/// half of a surrogate pair (ED A0), too long a form (E0 9C, F0 8F), beyond the last one (F4 90).
TEST_F(LlamaEngineTest, NoTokenBeginsWhatIsNoCharacter) {
  load();
  GenerationRequest request = greedy("x");
  request.sampling.temperature = 10;
  request.sampling.top_k = 0;
  request.sampling.top_p = 1;
  request.sampling.min_p = 0;
  for (const std::string set : {R"([\uD700-\uE0FF])", R"([^\x00-\uCFFF\uF000-\U0010FFFF])",
                                R"([\u0700-\u0900])", R"([\uF000-\U000100FF])", "."}) {
    request.grammar = "root ::= " + set + "{20}";
    for (std::uint32_t seed = 0; seed < 10; ++seed) {
      request.sampling.seed = seed;
      EXPECT_EQ(count_characters(answer(request)), 20U) << set;
    }
  }
}

TEST_F(LlamaEngineTest, FollowsAJsonSchema) {
  load();
  GenerationRequest request = greedy("Describe yourself as JSON.");
  request.json_schema = R"({
    "type": "object",
    "properties": {
      "answer": {"type": "string", "maxLength": 80},
      "mood": {"enum": ["calm", "busy"]},
      "words": {"type": "integer", "minimum": 0},
      "tags": {"type": "array", "items": {"enum": ["a", "b"]}, "minItems": 1, "maxItems": 3},
      "done": {"type": "boolean"}
    },
    "required": ["answer", "mood", "words", "tags", "done"],
    "additionalProperties": false
  })";
  for (const float temperature : {0.0F, 1.0F}) {
    request.sampling.temperature = temperature;
    request.sampling.seed = 5;
    Completion end;
    const std::string text = answer(request, &end);
    ASSERT_EQ(end.reason, Reason::stop) << text;
    const auto value = parse_json(text);
    ASSERT_TRUE(value) << text;
    const json::object& object = value->as_object();
    EXPECT_EQ(object.size(), 5U);
    EXPECT_TRUE(object.at("answer").is_string());
    EXPECT_THAT(std::string(object.at("mood").as_string()), testing::AnyOf("calm", "busy"));
    EXPECT_GE(object.at("words").as_int64(), 0);
    EXPECT_GE(object.at("tags").as_array().size(), 1U);
    EXPECT_LE(object.at("tags").as_array().size(), 3U);
    EXPECT_TRUE(object.at("done").is_bool());
  }
}

constexpr const char* kEchoTool =
    R"([{"name": "echo", "description": "Returns the text it is given",
    "inputSchema": {"type": "object", "properties": {"text": {"type": "string"}},
                    "required": ["text"]}}])";

TEST_F(LlamaEngineTest, CallsATool) {
  load();
  GenerationRequest request = greedy("Echo the text hello");
  request.tools = kEchoTool;
  Completion end;
  EXPECT_EQ(answer(request, &end), R"({"name":"echo","arguments":{"text":"hello"}})");
  EXPECT_EQ(end.reason, Reason::tool_calls);
}

/// The model knows nothing of such schemas: without a grammar it echoes hello, and only that.
TEST_F(LlamaEngineTest, ACallIsHeldToASchemaThatTheModelWouldBreak) {
  load();
  GenerationRequest request = greedy("Echo the text hello");
  request.tools = R"([{"name": "echo", "description": "Returns the text it is given",
      "inputSchema": {"type": "object",
                      "properties": {"text": {"enum": ["goodbye"]}, "times": {"type": "integer"}},
                      "required": ["text", "times"], "additionalProperties": false}}])";
  const auto held = parse_json(answer(request));
  ASSERT_TRUE(held);
  const json::object& arguments = held->at("arguments").as_object();
  EXPECT_EQ(arguments.at("text"), "goodbye");
  EXPECT_TRUE(arguments.at("times").is_int64());
  EXPECT_EQ(arguments.size(), 2U);
}

TEST_F(LlamaEngineTest, ACallThatIsCutOffIsAnErrorThatSaysSo) {
  load();
  GenerationRequest request = greedy("Echo the text hello");
  request.tools = kEchoTool;
  Completion whole;
  answer(request, &whole);
  ASSERT_EQ(whole.reason, Reason::tool_calls);
  for (std::uint32_t limit = 2; limit + 1 < whole.usage.completion_tokens; ++limit) {
    request.max_tokens = static_cast<int>(limit);
    const Running running = start(request);
    const Completion end = running.sink->wait();
    EXPECT_EQ(running.sink->text(), "") << limit;
    EXPECT_EQ(end.reason, Reason::error) << limit;
    ASSERT_TRUE(end.error) << limit;
    EXPECT_EQ(end.error->message,
              "The answer was cut off in a tool call, because it reached max_tokens, which is " +
                  std::to_string(limit) + "; raise it");
  }
}

TEST_F(LlamaEngineTest, CallsInTheHistoryAreWhatTheModelWrote) {
  load();
  GenerationRequest request = greedy("");
  request.tools = kEchoTool;
  request.messages = {{.role = "user", .content = "Echo the text hello"}};
  Completion asked;
  EXPECT_THAT(answer(request, &asked), HasSubstr(R"({"text":"hello"})"));
  request.messages.push_back(
      {.role = "assistant",
       .content = "",
       .tool_calls = {{.id = "1", .name = "echo", .arguments = R"({"text":"hello"})"}}});
  request.messages.push_back({.role = "tool", .content = "hello"});
  Completion answered;
  EXPECT_FALSE(answer(std::move(request), &answered).empty());
  // The last token was chosen, but not computed.
  EXPECT_GE(answered.usage.cached_tokens + 1,
            asked.usage.prompt_tokens + asked.usage.completion_tokens);
}

TEST_F(LlamaEngineTest, TakesTheTemperatureThatTheModelRecommends) {
  const test::TemporaryFile file("greedy.gguf");
  GgufWriter model = test::ZeroModel{}.build();
  model.add("general.sampling.temp", 0.0F);
  write(file, model);
  LlamaOptions options;
  options.model_path = file.path();
  options.backend = "cpu";
  load(std::move(options));
  GenerationRequest request;
  request.prompt = "Hi";
  request.max_tokens = 20;
  request.sampling.seed = 1;
  const std::string first = answer(request);
  request.sampling.seed = 2;
  EXPECT_EQ(answer(request), first);
  request.sampling.temperature = 1;
  EXPECT_NE(answer(request), first);
}

TEST_F(LlamaEngineTest, AFullSinkPausesItsSequenceAndNoOther) {
  LlamaOptions options = built_in_options();
  options.pause_grace = 1h;
  load(std::move(options));
  const std::string expected = answer(greedy("Hello"));
  const Running slow = start(greedy("Hello"), 3);
  slow.sink->wait_for_deltas(3);
  EXPECT_EQ(answer(greedy("Hello")), expected);
  EXPECT_EQ(slow.sink->deltas(), 3U);
  EXPECT_FALSE(slow.sink->completed());

  slow.sink->full_after(~std::size_t{0});
  slow.generation->resume();
  EXPECT_EQ(slow.sink->wait().reason, Reason::stop);
  EXPECT_EQ(slow.sink->text(), expected);
}

TEST_F(LlamaEngineTest, APausedSequenceYieldsItsSlotAndGoesOnLater) {
  LlamaOptions options = built_in_options();
  options.slots = 1;
  options.pause_grace = 0s;
  load(std::move(options));
  const std::string expected = answer(greedy("Hello"));
  const Running slow = start(greedy("Hello"), 3);
  slow.sink->wait_for_deltas(3);
  EXPECT_FALSE(answer(greedy("What is 2 + 3?")).empty());
  EXPECT_FALSE(answer(greedy("Tell me a story")).empty());
  EXPECT_EQ(slow.sink->deltas(), 3U);

  slow.sink->full_after(~std::size_t{0});
  slow.generation->resume();
  EXPECT_EQ(slow.sink->wait().reason, Reason::stop);
  EXPECT_EQ(slow.sink->text(), expected);
}

TEST_F(LlamaEngineTest, CancelStopsWithinOneToken) {
  LlamaOptions options = built_in_options();
  options.pause_grace = 1h;
  load(std::move(options));
  const Running running = start(greedy("Hello"), 4);
  running.sink->wait_for_deltas(4);
  running.generation->cancel();
  const Completion end = running.sink->wait();
  EXPECT_EQ(end.reason, Reason::cancelled);
  EXPECT_EQ(running.sink->deltas(), 4U);
  EXPECT_EQ(end.usage.completion_tokens, 4U);
  EXPECT_EQ(engine_->stats().cancelled, 1U);
  eventually([&] { return engine_->stats().slots_busy == 0; });
}

TEST_F(LlamaEngineTest, DestroyingTheHandleCancels) {
  LlamaOptions options = built_in_options();
  options.pause_grace = 1h;
  load(std::move(options));
  Running running = start(greedy("Hello"), 1);
  running.sink->wait_for_deltas(1);
  running.generation.reset();
  EXPECT_EQ(running.sink->wait().reason, Reason::cancelled);
}

TEST_F(LlamaEngineTest, ACancelledQueuedRequestNeverRuns) {
  LlamaOptions options = built_in_options();
  options.slots = 1;
  options.pause_grace = 1h;
  load(std::move(options));
  const Running busy = start(greedy("Hello"), 1);
  busy.sink->wait_for_deltas(1);
  const std::uint64_t prompt_tokens = engine_->stats().prompt_tokens;

  const Running waiting = start(greedy("Somebody who does not wait"));
  const Running next = start(greedy("Next"));
  eventually([&] { return next.generation->status().queue_position == 1; });
  eventually([&] { return engine_->stats().requests_queued == 2; });
  EXPECT_EQ(waiting.generation->status().phase, Phase::queued);
  waiting.generation->cancel();
  EXPECT_EQ(waiting.sink->wait().reason, Reason::cancelled);
  EXPECT_EQ(waiting.sink->deltas(), 0U);
  EXPECT_EQ(engine_->stats().prompt_tokens, prompt_tokens);
  eventually([&] { return next.generation->status().queue_position == 0; });

  busy.generation->cancel();
  EXPECT_EQ(next.sink->wait().reason, Reason::stop);
}

TEST_F(LlamaEngineTest, CancelBreaksOffALongPrompt) {
  const test::TemporaryFile file("slow.gguf");
  write(file, test::ZeroModel{.width = 512, .layers = 8, .hidden = 2048, .context = 8192}.build());
  LlamaOptions options;
  options.model_path = file.path();
  options.backend = "cpu";
  options.slots = 2;
  load(std::move(options));
  const Running running = start(greedy(std::string(8000, 'x')));
  eventually([&] { return running.generation->status().prefill_done > 0; });
  running.generation->cancel();
  const Completion end = running.sink->wait();
  EXPECT_EQ(end.reason, Reason::cancelled);
  const GenerationStatus status = running.generation->status();
  EXPECT_EQ(status.prefill_total, 8001U);
  EXPECT_LT(status.prefill_done, status.prefill_total);
  EXPECT_EQ(status.completion_tokens, 0U);

  // The same in steps that are shared with another answer; then shutdown() in the middle of a
  // prompt.
  const Running neighbour = start(greedy(std::string(100, 'y')));
  const Running again = start(greedy(std::string(8000, 'x')));
  eventually([&] { return again.generation->status().prefill_done > 0; });
  again.generation->cancel();
  EXPECT_EQ(again.sink->wait().reason, Reason::cancelled);
  const Running last = start(greedy(std::string(8000, 'z')));
  eventually([&] { return last.generation->status().prefill_done > 0; });
  engine_->shutdown();
  EXPECT_TRUE(last.sink->completed());
  EXPECT_TRUE(neighbour.sink->completed());
  EXPECT_LT(last.generation->status().prefill_done, 8001U);
}

TEST_F(LlamaEngineTest, ShutdownEndsEverythingAndRefusesMore) {
  LlamaOptions options = built_in_options();
  options.slots = 1;
  options.pause_grace = 1h;
  load(std::move(options));
  const Running decoding = start(greedy("Hello"), 1);
  const Running queued = start(greedy("Hello"));
  decoding.sink->wait_for_deltas(1);
  engine_->shutdown();
  EXPECT_TRUE(decoding.sink->completed());
  EXPECT_TRUE(queued.sink->completed());
  EXPECT_EQ(decoding.sink->wait().reason, Reason::cancelled);
  EXPECT_EQ(try_start(greedy("Hello")).error().code, kBusy);
  engine_->shutdown();
}

TEST_F(LlamaEngineTest, ManyThreadsMayStartAndDrop) {
  LlamaOptions options = built_in_options();
  options.max_queue = 1000;
  load(std::move(options));
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 25; ++i) {
        Running running = start(greedy("Hello"));
        if ((i + t) % 3 == 0) running.generation.reset();
        if ((i + t) % 3 == 1) running.generation->cancel();
        running.sink->wait();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  eventually([&] { return engine_->stats().slots_busy == 0; });
  EXPECT_EQ(engine_->stats().requests, 100U);
}

TEST_F(LlamaEngineTest, ALongPromptIsRead) {
  LlamaOptions options = built_in_options();
  options.context_tokens = 16'384;
  load(std::move(options));
  std::string prompt;
  while (prompt.size() <= 33'000) prompt += " number";
  GenerationRequest request = greedy(prompt);
  request.max_tokens = 10;
  Completion end;
  EXPECT_FALSE(answer(request, &end).empty());
  EXPECT_GT(end.usage.prompt_tokens, 33'000U / 14);
}

/// A model with nonsensical numbers is refused, or answers, or fails, but never ends the process.
TEST_F(LlamaEngineTest, SurvivesAVocabularyThatMakesNoSense) {
  const test::TemporaryFile file("odd-vocabulary.gguf");
  write(file, test::ZeroModel{}.build());
  std::ifstream in(file.path(), std::ios::binary);
  std::ostringstream whole;
  whole << in.rdbuf();
  for (const std::string key : {"unknown_token_id", "bos_token_id", "eos_token_id"}) {
    for (const std::uint32_t value : {0U, 2U, 150U, 10'000U, 0x7FFFFFFFU, 0xFFFFFFFFU}) {
      std::string bytes = whole.str();
      std::memcpy(bytes.data() + bytes.find(key) + key.size() + 4, &value, sizeof value);
      file.write(bytes);
      LlamaOptions options;
      options.model_path = file.path();
      options.backend = "cpu";
      engine_ = make_llama_engine(std::move(options));
      if (engine_->wait_until_loaded().phase != ModelState::Phase::ready) continue;
      GenerationRequest request = greedy("Hello");
      request.sampling.temperature = 1;
      request.max_tokens = 20;
      const auto sink = std::make_shared<AnswerSink>();
      const auto generation = engine_->start(request, sink, home_);
      if (generation) sink->wait();
    }
  }
}

}  // namespace
}  // namespace sluice
