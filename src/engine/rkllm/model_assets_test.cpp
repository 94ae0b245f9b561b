#include "engine/rkllm/model_assets.hpp"

#include <chrono>
#include <filesystem>
#include <future>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>
#include <thread>

#include "core/file_test_support.hpp"
#include "engine/rkllm/rkllm_engine_test_support.hpp"

namespace sluice::rkllm {
namespace {

using test::Answer;
using test::FakeScript;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;

class AssetsEngineTest : public test::EngineTest {
 protected:
  /// How a change ends: "done", or the error's message.
  using Outcome = std::future<std::string>;
  Outcome begin(ModelChange change) const {
    auto told = std::make_shared<std::promise<std::string>>();
    engine->change(std::move(change), [told](const Result<void>& outcome) {
      told->set_value(outcome ? "done" : outcome.error().message);
    });
    return told->get_future();
  }
  static std::string end_of(Outcome outcome) {
    const bool is_told = outcome.wait_for(std::chrono::seconds(20)) == std::future_status::ready;
    return is_told ? outcome.get() : "nothing was told";
  }
  std::string end(ModelChange change) const { return end_of(begin(std::move(change))); }

  [[nodiscard]] NamedFile file(const std::string& name, const std::string& text) const {
    std::ofstream(files.path(name)) << text;
    return {.path = files.path(name), .descriptor = {}};
  }
  [[nodiscard]] LoadLora lora(const std::string& name) const {
    return {.name = name, .file = file(name, "adapter of a cat"), .scale = 0.5F};
  }
  static GenerationRequest with_adapter(const std::string& name) {
    GenerationRequest request = prompt("Hi");
    request.lora_adapter = name;
    return request;
  }
  /// Waits until the model is there again.
  void wait_ready() const {
    const auto ready = engine->wait_ready(std::chrono::seconds(20));
    ASSERT_TRUE(ready && *ready) << engine->not_ready();
  }
  static std::size_t times(const std::string& text, const std::string& part) {
    std::size_t count = 0;
    for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
      ++count;
    }
    return count;
  }

  ::sluice::test::TemporaryDirectory files;
};

TEST_P(AssetsEngineTest, ARunUsesTheAdapterThatItNames) {
  const FakeScript script("say a\n");
  make();
  EXPECT_THAT(refusal(with_adapter("cat")), HasSubstr("there is no LoRA adapter of this name"));
  EXPECT_EQ(end(lora("cat")), "done");
  EXPECT_EQ(answer_to(with_adapter("cat")), "a|stop");
  EXPECT_EQ(answer_to(), "a|stop");
  EXPECT_THAT(script.log(), HasSubstr("load_lora " + files.path("cat") + " cat 0.500000"));
  EXPECT_EQ(times(script.log(), "lora=cat"), 1U);
  EXPECT_EQ(end(lora("cat")), "done") << "the same once more";
  EXPECT_EQ(times(script.log(), "load_lora"), 1U);
  LoadLora other = lora("cat");
  other.scale = 1;
  EXPECT_THAT(end(other), HasSubstr("another adapter has this name"));
}

TEST_P(AssetsEngineTest, AFileThatTheRuntimeRefusesIsNoAdapter) {
  const FakeScript script("say a\n");
  make();
  EXPECT_THAT(end(LoadLora{.name = "cat", .file = file("cat", "foreign")}),
              HasSubstr("The runtime returned -1"));
  EXPECT_THAT(refusal(with_adapter("cat")), HasSubstr("there is no LoRA adapter"));
  EXPECT_EQ(answer_to(), "a|stop");
  EXPECT_EQ(end(lora("cat")), "done") << "the name is free";
}

TEST_P(AssetsEngineTest, SixteenAdaptersAreLoaded) {
  make();
  for (std::size_t i = 0; i < LoadLora::kMost; ++i) {
    ASSERT_EQ(end(lora("cat" + std::to_string(i))), "done");
  }
  EXPECT_THAT(end(lora("dog")), HasSubstr("there are 16 adapters"));
}

TEST_P(AssetsEngineTest, AChangeWaitsForTheRunUnderWay) {
  const FakeScript script("say a\nblock\n");
  make();
  const auto answer = std::make_shared<Answer>();
  auto run = ask(answer);
  ASSERT_TRUE(answer->says("a"));
  Outcome loaded = begin(lora("cat"));
  Outcome again = begin(lora("cat"));
  EXPECT_THAT(script.log(), Not(HasSubstr("load_lora")));
  run->cancel();
  EXPECT_EQ(end_of(std::move(loaded)), "done");
  EXPECT_EQ(end_of(std::move(again)), "done");
}

TEST_P(AssetsEngineTest, EightChangesWait) {
  const FakeScript script("say a\nblock\n");
  make();
  const auto answer = std::make_shared<Answer>();
  auto run = ask(answer);
  ASSERT_TRUE(answer->says("a"));
  std::vector<Outcome> waiting;
  for (int i = 0; i < 8; ++i) waiting.push_back(begin(ReleasePromptCache{}));
  EXPECT_THAT(end(ReleasePromptCache{}), HasSubstr("Too many changes"));
  run->cancel();
  for (Outcome& each : waiting) EXPECT_EQ(end_of(std::move(each)), "done");
}

TEST_P(AssetsEngineTest, ANewProcessLoadsEverythingAgain) {
  const FakeScript script("say a\ncrash\n");
  make();
  EXPECT_EQ(end(lora("cat")), "done");
  EXPECT_EQ(end(LoadPromptCache{.file = file("old", "cache")}), "done");
  EXPECT_EQ(end(LoadPromptCache{.file = file("new", "cache")}), "done");
  EXPECT_THAT(answer_to(with_adapter("cat")), HasSubstr("has died"));
  wait_ready();
  EXPECT_EQ(times(script.log(), "load_lora"), 2U);
  EXPECT_EQ(times(script.log(), "load_prompt_cache " + files.path("old")), 1U);
  EXPECT_EQ(times(script.log(), "load_prompt_cache " + files.path("new")), 2U);
  EXPECT_EQ(end(ReleasePromptCache{}), "done");
  EXPECT_THAT(answer_to(with_adapter("cat")), HasSubstr("has died"));
  wait_ready();
  EXPECT_EQ(times(script.log(), "load_lora"), 3U);
  EXPECT_EQ(times(script.log(), "release_prompt_cache"), 1U);
  EXPECT_EQ(times(script.log(), "load_prompt_cache"), 3U);
}

TEST_P(AssetsEngineTest, WhatCannotBeLoadedAgainIsLostAndRunsAreTold) {
  const FakeScript script("say a\ncrash\n");
  make();
  EXPECT_EQ(end(lora("cat")), "done");
  EXPECT_EQ(end(lora("dog")), "done");
  std::filesystem::remove(files.path("cat"));
  EXPECT_THAT(answer_to(), HasSubstr("has died"));
  wait_ready();
  EXPECT_THAT(refusal(with_adapter("cat")), HasSubstr("there is no LoRA adapter"));
  EXPECT_THAT(answer_to(with_adapter("dog")), HasSubstr("a|error"));
}

TEST_P(AssetsEngineTest, ARunThatWaitedIsNotBegunWithoutWhatItNames) {
  const FakeScript script("abort hang\nsay a\nhang\n");
  make();
  EXPECT_EQ(end(lora("cat")), "done");
  const auto first = std::make_shared<Answer>();
  auto hangs = ask(first);
  ASSERT_TRUE(first->says("a"));
  const auto second = std::make_shared<Answer>();
  const auto waits = ask(second, with_adapter("cat"));
  while (engine->stats().requests_queued != 1) std::this_thread::yield();
  std::filesystem::remove(files.path("cat"));
  hangs->cancel();
  EXPECT_THAT(second->end(), HasSubstr("|error: there is no LoRA adapter of this name"));
  EXPECT_THAT(script.log(), Not(HasSubstr("lora=cat")));
}

TEST_P(AssetsEngineTest, ALostAdapterKeepsItsName) {
  const FakeScript script("say a\nblock\n");
  RkllmOptions with = options();
  with.slots = 2;
  make_ready(std::move(with));
  while (times(script.log(), "init") < 2) std::this_thread::yield();
  const auto answer = std::make_shared<Answer>();
  auto run = ask(answer);
  ASSERT_TRUE(answer->says("a"));
  EXPECT_EQ(end(lora("cat")), "done") << "in the other process";
  std::filesystem::remove(files.path("cat"));
  run->cancel();
  while (times(script.log(), "load_lora") < 2) std::this_thread::yield();
  EXPECT_THAT(end(LoadLora{.name = "cat", .file = file("dog", "adapter of a dog")}),
              HasSubstr("another adapter has this name"));
  while (refusal(with_adapter("cat")).empty()) std::this_thread::yield();
  EXPECT_EQ(end(lora("cat")), "done") << "the same again";
}

TEST_P(AssetsEngineTest, APathThatIsNotUtf8IsRefused) {
  make();
  EXPECT_THAT(end(LoadPromptCache{.file = file("c\xE4t", "cache")}), HasSubstr("is not UTF-8"));
}

TEST_P(AssetsEngineTest, AProcessThatDiesWhileItLoadsIsReplaced) {
  for (const char* const death : {"lora crash\nsay a\n", "lora exit 3\nsay a\n"}) {
    const FakeScript script(death);
    make();
    EXPECT_THAT(end(lora("cat")), HasSubstr("The process of the model has died"));
    wait_ready();
    EXPECT_THAT(refusal(with_adapter("cat")), HasSubstr("there is no LoRA adapter"));
    EXPECT_EQ(answer_to(), "a|stop");
    EXPECT_EQ(times(script.log(), "load_lora"), 1U) << "it is not tried again";
    engine = nullptr;
  }
}

TEST_P(AssetsEngineTest, ALoadThatHangsIsGivenUp) {
  if (GetParam() != Abi::v1_3_0)
    GTEST_SKIP() << "it takes some seconds, and is the same everywhere";
  const FakeScript script("lora hang\nsay a\n");
  RkllmOptions with = options();
  with.load_timeout = std::chrono::seconds(5);
  make_ready(std::move(with));
  Outcome loaded = begin(lora("cat"));
  EXPECT_THAT(end_of(std::move(loaded)), HasSubstr("it takes too long to load"));
  wait_ready();
  EXPECT_EQ(answer_to(), "a|stop");
}

TEST_P(AssetsEngineTest, TheEndOfTheEngineEndsChanges) {
  const FakeScript script("lora hang\n");
  make();
  Outcome loaded = begin(lora("cat"));
  Outcome behind = begin(LoadPromptCache{.file = file("p", "cache")});
  while (!script.log().contains("load_lora")) std::this_thread::yield();
  engine->shutdown();
  EXPECT_EQ(end_of(std::move(loaded)), "The engine has ended");
  EXPECT_EQ(end_of(std::move(behind)), "The engine has ended");
}

TEST_P(AssetsEngineTest, EverySlotHasTheAdapter) {
  const FakeScript script("say a\n");
  RkllmOptions with = options();
  with.slots = 2;
  make_ready(std::move(with));
  EXPECT_EQ(end(lora("cat")), "done");
  while (times(script.log(), "load_lora") < 2) std::this_thread::yield();
  for (int i = 0; i < 4; ++i) EXPECT_EQ(answer_to(with_adapter("cat")), "a|stop");
}

TEST_P(AssetsEngineTest, ARunSavesItsPrompt) {
  const FakeScript script("say a\n");
  make();
  GenerationRequest request = prompt("Once");
  request.prompt_cache = files.path("saved");
  EXPECT_EQ(answer_to(std::move(request)), "a|stop");
  EXPECT_THAT(script.log(), HasSubstr("cache=" + files.path("saved") + " save"));
  EXPECT_EQ(end(LoadPromptCache{.file = {.path = files.path("saved"), .descriptor = {}}}), "done");
  EXPECT_THAT(end(LoadPromptCache{.file = file("foreign", "x")}), HasSubstr("returned -1"));
  EXPECT_EQ(end(ReleasePromptCache{}), "done");
}

TEST_P(AssetsEngineTest, OnlyOneOfTheRunsThatWaitSavesItsPromptInAFile) {
  const FakeScript script("say a\nblock\nturn\nsay b\n");
  make();
  const auto first = std::make_shared<Answer>();
  auto blocks = ask(first);
  ASSERT_TRUE(first->says("a"));
  std::vector<std::shared_ptr<Answer>> answers;
  std::vector<std::unique_ptr<Generation>> waiting;
  for (const char* const text : {"Once", "Twice"}) {
    GenerationRequest request = prompt(text);
    request.prompt_cache = files.path("one");
    answers.push_back(std::make_shared<Answer>());
    waiting.push_back(ask(answers.back(), std::move(request)));
  }
  while (engine->stats().requests_queued != 2) std::this_thread::yield();
  blocks->cancel();
  EXPECT_EQ(answers[0]->end(), "b|stop");
  EXPECT_THAT(answers[1]->end(), HasSubstr("|error: Invalid params: prompt_cache_path must name a "
                                           "new file"));
  EXPECT_EQ(times(script.log(), " save"), 1U);
}

TEST_P(AssetsEngineTest, WhatTheModelAttendsToIsPassedOn) {
  const SetCrossAttention attention{
      .k = {1, 2, 3, 4}, .v = {5, 6, 7, 8}, .mask = {0, 0.5F}, .positions = {10, 11}};
  RkllmOptions with = options();
  with.cross_attention = true;
  const FakeScript script("say a\ncrash\n");
  if (!facts_of(GetParam()).has_function_tools) {
    const auto made = make_rkllm_engine(std::move(with));
    ASSERT_FALSE(made);
    EXPECT_THAT(made.error().message, EndsWith("of the runtime has no cross attention"));
    return;
  }
  make_ready(std::move(with));
  EXPECT_THAT(script.log(), HasSubstr("cross-attention"));
  EXPECT_EQ(end(attention), "done");
  EXPECT_THAT(answer_to(), HasSubstr("has died"));
  wait_ready();
  EXPECT_THAT(answer_to(), HasSubstr("has died"));
  EXPECT_EQ(times(script.log(), "attends=11,0.500000,2.000000,6.000000"), 2U);
}

TEST_P(AssetsEngineTest, CrossAttentionThatIsLostStopsAnswers) {
  if (!facts_of(GetParam()).has_function_tools) return;
  RkllmOptions with = options();
  with.cross_attention = true;
  const SetCrossAttention attention{.k = {1}, .v = {2}, .mask = {3}, .positions = {4}};
  {
    const FakeScript script("say a\ncrash\n");
    make_ready(std::move(with));
    EXPECT_EQ(end(attention), "done");
  }
  const FakeScript script("say a\ncross-attention -1\n");
  EXPECT_THAT(answer_to(), HasSubstr("has died"));
  wait_ready();
  EXPECT_THAT(refusal(prompt("Hi")), HasSubstr("sets it again with set_cross_attn_params"));
  EXPECT_THAT(end(attention), HasSubstr("returned -1"));
}

TEST_P(AssetsEngineTest, CrossAttentionHasToBeAskedForAtTheStart) {
  make();
  EXPECT_THAT(end(SetCrossAttention{.k = {1}, .v = {2}, .mask = {3}, .positions = {4}}),
              HasSubstr("start the server with --cross-attention"));
}

INSTANTIATE_TEST_SUITE_P(Abis, AssetsEngineTest,
                         ::testing::Values(Abi::v1_1, Abi::v1_2_0, Abi::v1_2_1, Abi::v1_3_0));

}  // namespace
}  // namespace sluice::rkllm
