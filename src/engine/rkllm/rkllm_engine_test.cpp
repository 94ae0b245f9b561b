#include "engine/rkllm/rkllm_engine.hpp"

#include <fstream>
#include <future>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "engine/rkllm/rkllm_engine_test_support.hpp"
#include "net/loop/event_loop.hpp"

namespace sluice::rkllm {
namespace {

using namespace std::chrono_literals;
using test::Answer;
using test::fake_library;
using test::FakeScript;
using ::testing::HasSubstr;

class RkllmEngineTest : public test::EngineTest {};

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
  // The runtime of these versions says how many tokens it has read, but only at its end.
  const std::uint32_t read = facts_of(GetParam()).has_figures ? 5 : 0;
  const auto short_answer = answered(std::move(limited));
  EXPECT_EQ(short_answer->end(), "word word word |length");
  EXPECT_EQ(short_answer->completion().usage.prompt_tokens, read);
  GenerationRequest stopped = prompt("Hi");
  stopped.stop = {"d w"};
  const auto stopped_answer = answered(std::move(stopped));
  EXPECT_EQ(stopped_answer->end(), "wor|stop");
  EXPECT_EQ(stopped_answer->completion().usage.prompt_tokens, read);
  EXPECT_EQ(engine->stats().prompt_tokens, 2 * read);
}

TEST_P(RkllmEngineTest, AnAnswerEndsAlthoughTheRuntimeDoesNot) {
  const FakeScript script("repeat 3 say word \nhang\n");
  RkllmOptions with = options();
  with.abort_timeout = 1h;
  make_ready(std::move(with));
  GenerationRequest limited = prompt("Hi");
  limited.max_tokens = 3;
  EXPECT_EQ(answer_to(std::move(limited)), "word word word |length");
}

TEST_P(RkllmEngineTest, ACancelBeforeTheRuntimeListensIsNotLost) {
  const FakeScript script("deaf\nblock\nturn\nsay b\n");
  RkllmOptions with = options();
  with.abort_timeout = 1h;
  make_ready(std::move(with));
  const auto answer = std::make_shared<Answer>();
  auto generation = ask(answer);
  while (!script.log().contains("run ")) std::this_thread::yield();
  generation->cancel();
  EXPECT_EQ(answer->end(), "|cancelled");
  EXPECT_EQ(answer_to(), "b|stop") << "by the same process, which would hang otherwise";
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

TEST_P(RkllmEngineTest, LivesOnTheLoopsOfOthers) {
  const FakeScript script("say a\nsay b\nblock\n");
  LoopPool loops(2);
  RkllmOptions shared = options();
  shared.loops = &loops;
  make(std::move(shared));
  loops.start();
  const auto ready = engine->wait_ready(20s);
  ASSERT_TRUE(ready && *ready) << engine->not_ready();
  const auto answer = std::make_shared<Answer>();
  auto generation = ask(answer);
  ASSERT_TRUE(answer->says("ab"));
  std::promise<std::thread::id> thread;
  loops.loop(0).post([&thread] { thread.set_value(std::this_thread::get_id()); });
  EXPECT_EQ(answer->teller(), thread.get_future().get());
  engine->leave_loop();
  EXPECT_EQ(answer->end(), "ab|cancelled");
  // What comes too late finds nobody.
  generation->cancel();
  const auto late = std::make_shared<Answer>();
  EXPECT_FALSE(engine->start(prompt("Hi"), late, home));
  engine = nullptr;
  generation = nullptr;
  loops.stop();
  loops.discard_tasks();
  EXPECT_EQ(answer->ends(), 1);
}

TEST_P(RkllmEngineTest, MayEndBeforeTheLoopsOfOthersRun) {
  LoopPool loops(1);
  RkllmOptions shared = options();
  shared.loops = &loops;
  make(std::move(shared));
  engine = nullptr;
  loops.start();
  loops.stop();
}

TEST_P(RkllmEngineTest, RefusesWhatItCannotDo) {
  make();
  EXPECT_THAT(refusal({}), HasSubstr("either messages or a prompt"));
  using namespace std::string_literals;
  EXPECT_THAT(refusal(prompt("a\0b"s)), HasSubstr("prompt has the character U+0000"));
  EXPECT_THAT(refusal(said({{.role = "user", .content = "a"}, {.role = "user", .content = "\0"s}})),
              HasSubstr("messages[1].content has the character U+0000"));
  GenerationRequest saved = prompt("a");
  saved.prompt_cache = "/models/\xE4/cache";
  EXPECT_THAT(refusal(std::move(saved)), HasSubstr("must lead to a path that is UTF-8"));
  GenerationRequest request = prompt("a");
  request.grammar = "root ::= \"a\"";
  EXPECT_THAT(refusal(std::move(request)), HasSubstr("no grammar"));
  request = prompt("a");
  request.tools = "[]";
  EXPECT_THAT(refusal(std::move(request)),
              HasSubstr("put its tokenizer_config.json beside the model"));
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
  const std::string latin = ::testing::TempDir() + "mod\xE8le.rkllm";
  std::ofstream(latin) << "a model";
  EXPECT_THAT(why({.model_path = latin}), HasSubstr("The model has a path that is not UTF-8"));
}

}  // namespace
}  // namespace sluice::rkllm
