#include <filesystem>
#include <fstream>
#include <future>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <memory>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "core/file_test_support.hpp"
#include "engine/chat/chat_template.hpp"
#include "engine/rkllm/rkllm_engine_test_support.hpp"

namespace sluice::rkllm {
namespace {

using test::Answer;
using test::FakeScript;
using ::testing::HasSubstr;
using ::testing::Not;

/// Turns the runtime's own template off, and leaves texts as they are.
class PlainTemplate final : public ChatTemplate {
 public:
  [[nodiscard]] Result<RenderedChat> render(GenerationRequest request) const override {
    return RenderedChat{.text = std::move(request.prompt), .reader = {}};
  }
  [[nodiscard]] bool needs_special_tokens() const override { return false; }
  [[nodiscard]] bool hides(std::string_view /*piece*/) const override { return false; }
};

/// A prompt of so many lines of 64 bytes, each with this word.
std::string lines(const std::string& word, int count = 40) {
  std::string out;
  for (int i = 0; i < count; ++i) out += word + std::string(63 - word.size(), '.') + "\n";
  return out;
}

/// An engine with prompt caches, of prompts from 2,048 bytes on.
class PromptCacheEngineTest : public test::EngineTest {
 protected:
  // It writes to the folder when it ends.
  ~PromptCacheEngineTest() override { engine = nullptr; }
  RkllmOptions with_caches(std::shared_ptr<const ChatTemplate> chat_template =
                               std::make_shared<const PlainTemplate>()) const {
    RkllmOptions out = options();
    out.prompt_cache_dir = folder;
    out.chat_template = std::move(chat_template);
    return out;
  }
  void begin(RkllmOptions with) {
    engine = nullptr;
    make_ready(std::move(with));
  }
  void begin() { begin(with_caches()); }
  static GenerationRequest of(const std::string& owner, std::string text) {
    GenerationRequest out = prompt(std::move(text));
    out.principal = owner;
    out.cache_owner = owner;
    return out;
  }
  std::string answer_of(const std::string& owner, std::string text) {
    return answer_to(of(owner, std::move(text)));
  }
  /// Runs other prompts, so that the runtime's memory has nothing of those before. When the second
  /// one is prepared, what these have saved is kept.
  void distract() {
    for (int i = 0; i < 2; ++i) EXPECT_EQ(answer_of("", "Something else"), "a|stop");
  }
  [[nodiscard]] std::vector<std::string> files(const std::string& end = ".cache") const {
    std::vector<std::string> out;
    for (const auto& each : std::filesystem::directory_iterator(folder)) {
      if (each.path().string().ends_with(end)) out.push_back(each.path());
    }
    return out;
  }
  /// Of files that are kept, and of those that are written just now.
  [[nodiscard]] std::uint64_t bytes_on_disk() const {
    std::uint64_t out = 0;
    for (const char* const end : {".cache", ".new"}) {
      for (const std::string& each : files(end)) {
        std::error_code gone;
        const std::uint64_t bytes = std::filesystem::file_size(each, gone);
        if (!gone) out += bytes;
      }
    }
    return out;
  }
  static int times(const std::string& text, const std::string& part) {
    int count = 0;
    for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
      ++count;
    }
    return count;
  }
  [[nodiscard]] static bool has_figures() { return facts_of(GetParam()).has_figures; }

  ::sluice::test::TemporaryDirectory directory;
  std::string folder = directory.path("caches");
};

TEST_P(PromptCacheEngineTest, TwoWhoTakeTurnsFindTheirPromptsAgain) {
  const FakeScript script("count\nsay a\n");
  begin();
  const std::string first = lines("alice");
  EXPECT_EQ(answer_of("alice", first), "a|stop");
  EXPECT_EQ(answer_of("bob", lines("bob")), "a|stop");
  EXPECT_THAT(script.log(), Not(HasSubstr("load_prompt_cache")));
  const std::string second = first + "answer\nAnd then?\n";
  const auto again = answered(of("alice", second));
  EXPECT_EQ(again->end(), "a|stop");
  EXPECT_EQ(times(script.log(), "load_prompt_cache " + folder), 1);
  EXPECT_EQ(again->completion().usage.prompt_tokens, has_figures() ? second.size() : 0);
  EXPECT_EQ(again->completion().usage.cached_tokens, has_figures() ? first.size() : 0);
  EXPECT_EQ(answer_of("bob", lines("bob") + "More.\n"), "a|stop");
  EXPECT_EQ(times(script.log(), "load_prompt_cache"), 2);
  distract();
  EXPECT_EQ(times(script.log(), "release_prompt_cache"), 2);
  ASSERT_TRUE(engine->stats().prompt_caches);
  EXPECT_EQ(engine->stats().prompt_caches->hits, 2U);
  EXPECT_EQ(engine->stats().prompt_caches->misses, 2U);
  EXPECT_EQ(engine->stats().prompt_caches->bytes, bytes_on_disk());
  EXPECT_EQ(engine->stats().cached_tokens, has_figures() ? first.size() + lines("bob").size() : 0);
}

TEST_P(PromptCacheEngineTest, NobodyGoesOnFromTheRunsOfOthers) {
  const FakeScript script("count\nsay a\n");
  const auto read = [&](const char* who) {
    return answered(of(who, "my PIN is 4711"))->completion().usage.prompt_tokens;
  };
  const std::uint32_t all = has_figures() ? 14 : 0;
  make();
  EXPECT_EQ(read("alice"), all);
  EXPECT_EQ(read("bob"), all);
  EXPECT_EQ(read("bob"), 0U) << "but from his own";
  RkllmOptions shared = options();
  shared.share_prefixes = true;
  begin(std::move(shared));
  EXPECT_EQ(read("alice"), all);
  EXPECT_EQ(read("bob"), 0U);
  const bool has_memory = facts_of(GetParam()).has_history;
  EXPECT_EQ(times(script.log(), "clear_kv_cache"), has_memory ? 1 : 0);
}

TEST_P(PromptCacheEngineTest, ARuntimeThatDoesNotForgetIsReplaced) {
  if (!facts_of(GetParam()).has_history) return;
  const FakeScript script("clear-cache -1\nsay a\n");
  make();
  EXPECT_EQ(answer_of("alice", "Hi"), "a|stop");
  EXPECT_THAT(answer_of("bob", "Hi"), HasSubstr("it does not clear its memory"));
  const auto ready = engine->wait_ready(std::chrono::seconds(20));
  ASSERT_TRUE(ready && *ready);
  EXPECT_EQ(answer_of("bob", "Hi"), "a|stop");
}

TEST_P(PromptCacheEngineTest, ACacheThatIsLoadedForNobodyDisturbsNobody) {
  const FakeScript script("say a\n");
  begin();
  EXPECT_EQ(answer_of("alice", lines("alice")), "a|stop");
  distract();
  engine = nullptr;
  // Longer than a runtime may take to end an answer that nobody wants.
  script.change("load-cache delay 500\nsay a\n");
  begin();
  const int processes = times(script.log(), "init");
  const auto answer = std::make_shared<Answer>();
  const auto generation = ask(answer, of("alice", lines("alice") + "More."));
  while (!script.log().contains("load_prompt_cache")) std::this_thread::yield();
  generation->cancel();
  EXPECT_THAT(answer->end(), HasSubstr("|cancelled"));
  EXPECT_EQ(answer_of("alice", lines("alice") + "More."), "a|stop");
  EXPECT_EQ(times(script.log(), "init"), processes);
  EXPECT_EQ(times(script.log(), "load_prompt_cache"), 2);
}

TEST_P(PromptCacheEngineTest, WhatTheRuntimeHasInItsMemoryIsNotLoaded) {
  const FakeScript script("count\nsay a\n");
  begin();
  EXPECT_EQ(answer_of("alice", lines("alice")), "a|stop");
  EXPECT_EQ(answer_of("alice", lines("alice") + "And then?\n"), "a|stop");
  const int loads = times(script.log(), "load_prompt_cache");
  EXPECT_EQ(loads, facts_of(GetParam()).has_history ? 0 : 1);
  EXPECT_EQ(engine->stats().prompt_caches->misses, 1U);
}

TEST_P(PromptCacheEngineTest, NobodyIsGivenTheCacheOfAnother) {
  const FakeScript script("say a\n");
  begin();
  EXPECT_EQ(answer_of("alice", lines("same")), "a|stop");
  distract();
  EXPECT_EQ(answer_of("bob", lines("same")), "a|stop");
  distract();
  EXPECT_EQ(answer_of("", lines("same")), "a|stop");
  distract();
  EXPECT_THAT(script.log(), Not(HasSubstr("load_prompt_cache")));
  EXPECT_EQ(files().size(), 2U) << "one each, and none for nobody";
  EXPECT_EQ(answer_of("alice", lines("same")), "a|stop");
  EXPECT_EQ(times(script.log(), "load_prompt_cache"), 1);
  EXPECT_EQ(engine->stats().prompt_caches->hits, 1U);
}

TEST_P(PromptCacheEngineTest, ACacheOfAnotherPromptIsNeverLoaded) {
  const FakeScript script("say a\n");
  begin();
  // All begin alike, and each with some of the others.
  for (int i = 0; i < 36; ++i) {
    const std::string owner = i % 2 == 0 ? "alice" : "bob";
    const std::string text = lines("start") + lines("branch" + std::to_string(i % 3), i % 4 * 20);
    ASSERT_EQ(answer_of(owner, text), "a|stop") << i;
  }
  EXPECT_GT(engine->stats().prompt_caches->hits, 5U);
}

TEST_P(PromptCacheEngineTest, APromptInTheRuntimesOwnTemplateIsFoundAgainAsAWhole) {
  const FakeScript script("say a\n");
  begin(with_caches(nullptr));
  EXPECT_EQ(answer_of("alice", lines("alice")), "a|stop");
  distract();
  EXPECT_EQ(answer_of("alice", lines("alice") + lines("more")), "a|stop");
  const bool has_own = facts_of(GetParam()).has_chat_template;
  EXPECT_EQ(times(script.log(), "load_prompt_cache"), has_own ? 0 : 1);
  distract();
  EXPECT_EQ(answer_of("alice", lines("alice")), "a|stop");
  EXPECT_EQ(times(script.log(), "load_prompt_cache"), has_own ? 1 : 2);
}

TEST_P(PromptCacheEngineTest, ShortPromptsAndThoseOfOperatorsHaveNone) {
  const FakeScript script("say a\n");
  begin();
  EXPECT_EQ(answer_of("alice", lines("alice", 31)), "a|stop");
  GenerationRequest saved = of("alice", lines("saved"));
  saved.prompt_cache = directory.path("saved");
  EXPECT_EQ(answer_to(std::move(saved)), "a|stop");
  const auto change = [this](ModelChange what) {
    std::promise<Result<void>> done;
    engine->change(std::move(what),
                   [&done](const Result<void>& outcome) { done.set_value(outcome); });
    return done.get_future().get();
  };
  EXPECT_TRUE(change(LoadPromptCache{.file = {.path = directory.path("saved"), .descriptor = {}}}));
  EXPECT_EQ(answer_of("alice", lines("saved") + lines("more")), "a|stop");
  EXPECT_EQ(times(script.log(), "load_prompt_cache"), 1);
  EXPECT_EQ(times(script.log(), "release_prompt_cache"), 0) << "the operator's stays";
  EXPECT_TRUE(change(ReleasePromptCache{}));
  EXPECT_EQ(times(script.log(), " save"), 1);
  EXPECT_EQ(answer_of("alice", lines("alice")), "a|stop");
  EXPECT_EQ(times(script.log(), " save"), 2);
}

TEST_P(PromptCacheEngineTest, TheFolderStaysWithinItsLimit) {
  const FakeScript script("cache-bytes 10000\nsay a\n");
  RkllmOptions with = with_caches();
  with.prompt_cache_limits.bytes = 25'000;
  begin(std::move(with));
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(answer_of("alice", lines("alice" + std::to_string(i))), "a|stop");
    EXPECT_LE(bytes_on_disk(), 25'000U);
  }
  distract();
  EXPECT_LE(engine->stats().prompt_caches->bytes, 25'000U);
  EXPECT_GE(files().size(), 1U);
}

TEST_P(PromptCacheEngineTest, AFileThatHasChangedIsNotLoaded) {
  const FakeScript script("say a\n");
  begin();
  EXPECT_EQ(answer_of("alice", lines("alice")), "a|stop");
  distract();
  for (const std::string& each : files()) {
    std::fstream file(each);
    file.seekp(100);
    file << "X";
  }
  EXPECT_EQ(answer_of("alice", lines("alice")), "a|stop");
  distract();
  EXPECT_THAT(script.log(), Not(HasSubstr("load_prompt_cache")));
  EXPECT_EQ(answer_of("alice", lines("alice")), "a|stop");
  EXPECT_EQ(times(script.log(), "load_prompt_cache"), 1) << "it was written again";
}

TEST_P(PromptCacheEngineTest, ARunGoesOnWithoutWhatTheRuntimeRefuses) {
  const FakeScript script("load-cache -1\nsay a\n");
  begin();
  EXPECT_EQ(answer_of("alice", lines("alice")), "a|stop");
  distract();
  EXPECT_EQ(files().size(), 1U);
  EXPECT_EQ(answer_of("alice", lines("alice")), "a|stop");
  EXPECT_EQ(times(script.log(), "load_prompt_cache"), 1);
  EXPECT_EQ(times(script.log(), "release_prompt_cache"), 0);
  EXPECT_EQ(engine->stats().prompt_caches->hits, 0U);
}

TEST_P(PromptCacheEngineTest, ARuntimeThatReleasesNoneIsReplaced) {
  const FakeScript script("release-cache -1\nsay a\n");
  begin();
  EXPECT_EQ(answer_of("alice", lines("alice")), "a|stop");
  distract();
  EXPECT_EQ(answer_of("alice", lines("alice")), "a|stop");
  EXPECT_EQ(answer_of("bob", lines("bob")), "a|stop") << "not to the prompt of alice";
  EXPECT_EQ(times(script.log(), "init "), 2);
}

TEST_P(PromptCacheEngineTest, ACacheWithWhichTheProcessDiesIsNotLoadedAgain) {
  const FakeScript script("say a\nturn\nsay a\nturn\nsay a\nturn\ncrash\n");
  begin();
  EXPECT_EQ(answer_of("alice", lines("alice")), "a|stop");
  distract();
  EXPECT_THAT(answer_of("alice", lines("alice")), HasSubstr("SIGSEGV"));
  EXPECT_EQ(times(script.log(), "load_prompt_cache"), 1);
  EXPECT_EQ(answer_of("alice", lines("alice")), "a|stop");
  EXPECT_EQ(times(script.log(), "load_prompt_cache"), 1);
}

TEST_P(PromptCacheEngineTest, NorIsOneWithWhichARunHasFailed) {
  const FakeScript script("say a\nturn\nsay a\nturn\nsay a\nturn\nerror\nturn\nsay a\n");
  begin();
  EXPECT_EQ(answer_of("alice", lines("alice")), "a|stop");
  distract();
  EXPECT_THAT(answer_of("alice", lines("alice")),
              HasSubstr("|error: The runtime reports an error"));
  EXPECT_EQ(answer_of("alice", lines("alice")), "a|stop");
  EXPECT_EQ(times(script.log(), "load_prompt_cache"), 1);
  EXPECT_EQ(times(script.log(), "release_prompt_cache"), 1);
}

TEST_P(PromptCacheEngineTest, AProcessThatDiesWhileItSavesLeavesNothing) {
  const FakeScript script("save-cache crash\nsay a\n");
  begin();
  EXPECT_THAT(answer_of("alice", lines("alice")), HasSubstr("SIGSEGV"));
  EXPECT_THAT(answer_of("alice", lines("alice")), HasSubstr("SIGSEGV"));
  EXPECT_EQ(answer_of("alice", lines("alice")), "a|stop") << "no more are written";
  EXPECT_TRUE(files().empty());
  EXPECT_TRUE(files(".new").empty());
}

TEST_P(PromptCacheEngineTest, AProcessThatIsKilledForACancelledAnswerMaySaveAgain) {
  const FakeScript script("abort hang\nsay a\nhang\n");
  begin();
  for (int i = 0; i < 3; ++i) {
    const auto answer = std::make_shared<Answer>();
    const auto generation = ask(answer, of("alice", lines("alice")));
    ASSERT_TRUE(answer->says("a"));
    generation->cancel();
    EXPECT_EQ(answer->end(), "a|cancelled");
  }
  EXPECT_EQ(times(script.log(), " save"), 3);
}

TEST_P(PromptCacheEngineTest, AModelThatSavesNoneAnswersAllTheSame) {
  const FakeScript script("save-cache none\nsay a\n");
  begin();
  for (int i = 0; i < 4; ++i) EXPECT_EQ(answer_of("alice", lines("alice")), "a|stop");
  EXPECT_EQ(times(script.log(), " save"), 2) << "then it is not asked any more";
}

TEST_P(PromptCacheEngineTest, AnAnswerThatIsCancelledLeavesNothing) {
  const FakeScript script("block\nturn\nsay a\n");
  begin();
  const auto answer = std::make_shared<Answer>();
  const auto generation = ask(answer, of("alice", lines("alice")));
  while (!script.log().contains("run ")) std::this_thread::yield();
  generation->cancel();
  EXPECT_EQ(answer->end(), "|cancelled");
  distract();
  EXPECT_EQ(answer_of("alice", lines("alice")), "a|stop");
  EXPECT_THAT(script.log(), Not(HasSubstr("load_prompt_cache")));
  distract();
  EXPECT_TRUE(files(".new").empty());
}

TEST_P(PromptCacheEngineTest, AnAnswerThatIsCutOffHasReadItsPrompt) {
  const FakeScript script("count\nrepeat 9 say word \n");
  begin();
  GenerationRequest request = of("alice", lines("alice"));
  request.max_tokens = 1;
  EXPECT_EQ(answer_to(request), "word |length");
  EXPECT_THAT(answer_of("bob", lines("bob")), HasSubstr("|stop"));
  const auto again = answered(request);
  EXPECT_EQ(again->end(), "word |length");
  EXPECT_EQ(times(script.log(), "load_prompt_cache"), 1);
  EXPECT_EQ(again->completion().usage.cached_tokens, has_figures() ? lines("alice").size() : 0);
}

TEST_P(PromptCacheEngineTest, AnotherEngineFindsTheFiles) {
  const FakeScript script("say a\n");
  begin();
  EXPECT_EQ(answer_of("alice", lines("alice")), "a|stop");
  distract();
  {
    auto other = make_rkllm_engine(with_caches());
    ASSERT_FALSE(other);
    EXPECT_THAT(other.error().message, HasSubstr("another process keeps its prompt caches there"));
  }
  engine = nullptr;
  std::ofstream(folder + "/" + std::string(64, '0') + ".7.new") << "of a dead process";
  begin();
  EXPECT_TRUE(files(".new").empty());
  EXPECT_EQ(answer_of("alice", lines("alice")), "a|stop");
  EXPECT_EQ(times(script.log(), "load_prompt_cache"), 1);
  engine = nullptr;
  std::ofstream(model_, std::ios::app) << ", another one";
  begin();
  EXPECT_EQ(answer_of("alice", lines("alice")), "a|stop");
  EXPECT_EQ(times(script.log(), "load_prompt_cache"), 1) << "the model is not the same";
}

INSTANTIATE_TEST_SUITE_P(Abis, PromptCacheEngineTest,
                         ::testing::Values(Abi::v1_1, Abi::v1_2_0, Abi::v1_2_1, Abi::v1_3_0));

}  // namespace
}  // namespace sluice::rkllm
