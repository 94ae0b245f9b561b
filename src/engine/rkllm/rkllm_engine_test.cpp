#include "engine/rkllm/rkllm_engine.hpp"

#include <atomic>
#include <condition_variable>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "core/manual_executor.hpp"
#include "engine/rkllm/runtime/fake_rkllm_test_support.hpp"

namespace sluice::rkllm {
namespace {

using namespace std::chrono_literals;
using test::fake_library;
using test::FakeScript;
using ::testing::HasSubstr;

/// Collects an answer. Thread-safe.
class Answer final : public GenerationSink {
 public:
  bool on_delta(Delta delta) override {
    const std::lock_guard lock(mutex_);
    text_ += delta.text;
    changed_.notify_all();
    return true;
  }
  void on_complete(Completion completion) override {
    const std::lock_guard lock(mutex_);
    ++ends_;
    completion_ = std::move(completion);
    changed_.notify_all();
  }
  /// Waits for so much text.
  bool says(std::string_view text) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, 10s, [&] { return text_.contains(text); });
  }
  /// "text|reason" or "text|error: message".
  std::string end() {
    std::unique_lock lock(mutex_);
    if (!changed_.wait_for(lock, 20s, [this] { return ends_ > 0; })) return "it does not end";
    return text_ + "|" +
           (completion_.error ? "error: " + completion_.error->message
                              : std::string(to_string(completion_.reason)));
  }
  [[nodiscard]] Completion completion() const { return completion_; }
  [[nodiscard]] int ends() {
    const std::lock_guard lock(mutex_);
    return ends_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::string text_;
  Completion completion_;
  int ends_ = 0;
};

class RkllmEngineTest : public ::testing::TestWithParam<Abi> {
 protected:
  RkllmEngineTest() { std::ofstream(model_) << "a model"; }
  RkllmOptions options() const {
    return {.model_path = model_,
            .library_path = fake_library(GetParam()),
            .worker = {std::string(SLUICE_FAKE_RKLLM) + "/rkllm_worker"},
            // A sanitizer would end the process in a way of its own.
            .environment = {{"ASAN_OPTIONS", "handle_segv=0:handle_sigill=0"},
                            {"TSAN_OPTIONS", "handle_segv=0:handle_sigill=0"}},
            .restart_pause = 10ms,
            .abort_timeout = 200ms};
  }
  void make(RkllmOptions with) {
    auto made = make_rkllm_engine(std::move(with));
    ASSERT_TRUE(made) << made.error().message;
    engine = *std::move(made);
  }
  void make() {
    make(options());
    const auto ready = engine->wait_ready(20s);
    ASSERT_TRUE(ready && *ready) << engine->not_ready();
  }
  std::unique_ptr<Generation> ask(const std::shared_ptr<Answer>& answer,
                                  GenerationRequest request = {}) {
    if (request.prompt.empty() && request.messages.empty()) request.prompt = "Hi";
    auto started = engine->start(std::move(request), answer, home);
    EXPECT_TRUE(started) << started.error().message;
    return started ? *std::move(started) : nullptr;
  }
  static GenerationRequest said(std::vector<ChatMessage> messages) {
    GenerationRequest out;
    out.messages = std::move(messages);
    return out;
  }
  static GenerationRequest prompt(std::string text) {
    GenerationRequest out;
    out.prompt = std::move(text);
    return out;
  }
  std::string answer_to(GenerationRequest request = {}) {
    const auto answer = std::make_shared<Answer>();
    const auto generation = ask(answer, std::move(request));
    return answer->end();
  }

  ManualExecutor home;
  std::string model_ = ::testing::TempDir() + "model.rkllm";
  std::unique_ptr<RkllmEngine> engine;
};

TEST_P(RkllmEngineTest, Answers) {
  const FakeScript script("say Hello\nsay , \\xC3\nwait\nsay \\xA9!\n");
  make();
  EXPECT_EQ(answer_to(), "Hello, \xC3\xA9!|stop");
  EXPECT_EQ(answer_to(said({{.role = "system", .content = "Be brief."},
                            {.role = "user", .content = "Hello"}})),
            "Hello, \xC3\xA9!|stop");
  EXPECT_THAT(script.log(), HasSubstr("prompt=Be brief."));
  EXPECT_EQ(engine->stats().requests, 2U);
}

TEST_P(RkllmEngineTest, EndsAtALimitAndAtAStopString) {
  const FakeScript script("repeat 50 say word \n");
  make();
  GenerationRequest limited = prompt("Hi");
  limited.max_tokens = 3;
  EXPECT_EQ(answer_to(std::move(limited)), "word word word |length");
  GenerationRequest stopped = prompt("Hi");
  stopped.stop = {"d w"};
  EXPECT_EQ(answer_to(std::move(stopped)), "wor|stop");
}

TEST_P(RkllmEngineTest, OneAfterTheOtherWithPositions) {
  const FakeScript script("say a\nblock\n");
  make();
  std::vector<std::shared_ptr<Answer>> answers;
  std::vector<std::unique_ptr<Generation>> generations;
  for (int i = 0; i < 3; ++i) {
    answers.push_back(std::make_shared<Answer>());
    generations.push_back(ask(answers.back()));
  }
  ASSERT_TRUE(answers[0]->says("a"));
  while (engine->stats().requests_queued != 2) std::this_thread::yield();
  EXPECT_EQ(generations[2]->status().queue_position, 1U);
  // A request that waits is cancelled at once, and harms no other.
  generations[1]->cancel();
  EXPECT_EQ(answers[1]->end(), "|cancelled");
  EXPECT_EQ(answers[0]->ends(), 0);
  generations[0]->cancel();
  EXPECT_EQ(answers[0]->end(), "a|cancelled");
  ASSERT_TRUE(answers[2]->says("a"));
  generations.clear();
  EXPECT_EQ(answers[2]->end(), "a|cancelled");
}

TEST_P(RkllmEngineTest, AProcessThatDiesIsReplaced) {
  for (const auto& [step, why] : {std::pair("crash", "SIGSEGV"), std::pair("illegal", "SIGILL"),
                                  std::pair("exit 7", "ended with code 7")}) {
    const FakeScript script("say a\n" + std::string(step) + "\n");
    make();
    const std::string end = answer_to();
    EXPECT_THAT(end, HasSubstr("a|error: The process of the model has died"));
    EXPECT_THAT(end, HasSubstr(why));
    EXPECT_THAT(engine->not_ready(), HasSubstr(why));
    const auto ready = [this] { return engine->not_ready().empty(); };
    for (int i = 0; i < 200 && !ready(); ++i) (void)engine->wait_ready(100ms);
    EXPECT_TRUE(ready());
    EXPECT_THAT(answer_to(), HasSubstr("a|error"));
    engine = nullptr;  // it reads the environment, in which the script is
  }
}

TEST_P(RkllmEngineTest, AnAbortThatHangsCostsTheProcess) {
  const FakeScript script("abort hang\nsay a\nhang\n");
  make();
  const auto answer = std::make_shared<Answer>();
  auto generation = ask(answer);
  ASSERT_TRUE(answer->says("a"));
  generation->cancel();
  EXPECT_EQ(answer->end(), "a|cancelled");
  const auto next = std::make_shared<Answer>();
  const auto waiting = ask(next);
  EXPECT_TRUE(next->says("a")) << "by another process";
}

TEST_P(RkllmEngineTest, ModelsThatCannotBeLoadedAreSaid) {
  for (const auto& [step, why] :
       {std::pair("init -1", "rkllm_init() returned -1"), std::pair("init null", "without a model"),
        std::pair("init crash", "SIGSEGV"), std::pair("init exit 3", "ended with code 3"),
        std::pair("init hang", "too long")}) {
    const FakeScript script(std::string(step) + "\n");
    RkllmOptions with = options();
    with.load_timeout = std::string_view(step) == "init hang" ? Duration(500ms) : Duration(20s);
    make(std::move(with));
    const auto ready = engine->wait_ready(20s);
    ASSERT_FALSE(ready);
    EXPECT_THAT(ready.error().message, HasSubstr(why));
    const auto started = engine->start(prompt("Hi"), std::make_shared<Answer>(), home);
    ASSERT_FALSE(started);
    EXPECT_EQ(started.error().code, kBusy);
    engine = nullptr;
  }
}

TEST_P(RkllmEngineTest, ErrorsOfTheRuntimeEndTheAnswer) {
  const FakeScript script("say a\nerror\n");
  make();
  EXPECT_EQ(answer_to(), "a|error: The runtime reports an error");
}

TEST_P(RkllmEngineTest, TheEndOfTheEngineEndsItsAnswers) {
  const FakeScript script("say a\nhang\n");
  make();
  std::vector<std::shared_ptr<Answer>> answers;
  std::vector<std::unique_ptr<Generation>> generations;
  for (int i = 0; i < 3; ++i) {
    answers.push_back(std::make_shared<Answer>());
    generations.push_back(ask(answers.back()));
  }
  ASSERT_TRUE(answers[0]->says("a"));
  engine->shutdown();
  for (const auto& each : answers) {
    EXPECT_THAT(each->end(), HasSubstr("|cancelled"));
    EXPECT_EQ(each->ends(), 1);
  }
  generations.clear();
}

TEST_P(RkllmEngineTest, RefusesWhatItCannotDo) {
  make();
  const auto refusal = [this](GenerationRequest request) {
    const auto started = engine->start(std::move(request), std::make_shared<Answer>(), home);
    return started ? std::string() : started.error().message;
  };
  EXPECT_THAT(refusal({}), HasSubstr("either messages or a prompt"));
  GenerationRequest request = prompt("a");
  request.json_schema = "{}";
  EXPECT_THAT(refusal(std::move(request)), HasSubstr("json_schema"));
  request = prompt("a");
  request.tools = "[]";
  EXPECT_THAT(refusal(std::move(request)), HasSubstr("tools"));
  request = prompt("a");
  request.sampling.temperature = 0.1F;
  const std::string cooler = refusal(std::move(request));
  EXPECT_EQ(cooler.empty(), facts_of(GetParam()).has_sampling_of_run) << cooler;
}

INSTANTIATE_TEST_SUITE_P(Abis, RkllmEngineTest,
                         ::testing::Values(Abi::v1_1, Abi::v1_2_0, Abi::v1_2_1, Abi::v1_3_0));

TEST(RkllmEngine, NamesWhatIsMissing) {
  const auto why = [](RkllmOptions options) {
    const auto made = make_rkllm_engine(std::move(options));
    return made ? std::string() : made.error().message;
  };
  EXPECT_THAT(why({.model_path = "/nowhere/m.rkllm"}), HasSubstr("There is no /nowhere/m.rkllm"));
  const std::string model = ::testing::TempDir() + "other.rkllm";
  std::ofstream(model) << "a model";
  EXPECT_THAT(why({.model_path = model, .library_path = "/nowhere/librkllmrt.so"}),
              HasSubstr("/nowhere/librkllmrt.so"));
  EXPECT_THAT(why({.model_path = model, .abi = "9"}), HasSubstr("no ABI 9"));
}

}  // namespace
}  // namespace sluice::rkllm
