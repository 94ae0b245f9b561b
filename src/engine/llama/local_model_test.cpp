#include "sluice/local_model.hpp"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <future>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "client/api/background_loop.hpp"
#include "core/manual_executor.hpp"
#include "engine/llama/llama_engine_test_support.hpp"
#include "engine/llama/model/model_test_support.hpp"

namespace sluice {
namespace {

using test::AnswerSink;
using test::greedy;
using test::kPatience;
using test::TemporaryFile;
using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;
using Reason = Completion::Reason;

LocalModelOptions small_local_model() {
  return {.file = SLUICE_BUILT_IN_MODEL, .slots = 1, .context_tokens = 512, .backend = "cpu"};
}

Error error_of(const LocalModelOptions& options) {
  try {
    local_model(options);
  } catch (const Error& error) {
    return error;
  }
  ADD_FAILURE() << "no error";
  return {};
}

/// Holds up the thread of its engine at the first piece of an answer.
class HoldingSink final : public GenerationSink {
 public:
  bool on_delta(Delta /*delta*/) override {
    if (!std::exchange(is_held_, true)) {
      held_.set_value();
      released_.get_future().wait();
    }
    return true;
  }
  void on_complete(Completion completion) override { ended_.set_value(std::move(completion)); }

  void wait_until_it_holds() { held_.get_future().wait(); }
  void release() { released_.set_value(); }
  Completion wait_for_end() { return ended_.get_future().get(); }

 private:
  bool is_held_ = false;  // the engine's
  std::promise<void> held_;
  std::promise<void> released_;
  std::promise<Completion> ended_;
};

TEST(LocalModelTest, AnswersAlsoIfItsFileWasRemoved) {
  const TemporaryFile file("model.gguf");
  std::filesystem::copy_file(SLUICE_BUILT_IN_MODEL, file.path(),
                             std::filesystem::copy_options::overwrite_existing);
  LocalModelOptions options = small_local_model();
  options.file = file.path();
  options.slots = 2;
  std::vector<float> heard;
  options.on_progress = [&](float loaded) { heard.push_back(loaded); };
  const Model model = local_model(options);
  ASSERT_FALSE(heard.empty());
  EXPECT_TRUE(std::ranges::is_sorted(heard));
  EXPECT_GE(heard.front(), 0);
  EXPECT_EQ(heard.back(), 1);
  const EngineInfo info = model.engine()->info();
  EXPECT_EQ(info.model, "sluice-tiny");
  EXPECT_EQ(info.slots, 2U);
  EXPECT_EQ(info.context_tokens, 512U);

  std::filesystem::remove(file.path());
  ManualExecutor home;
  const auto sink = std::make_shared<AnswerSink>();
  const auto generation = model.engine()->start(greedy("Who are you?"), sink, home);
  ASSERT_TRUE(generation) << generation.error().message;
  EXPECT_EQ(sink->wait().reason, Reason::stop);
  EXPECT_THAT(sink->text(), StartsWith("I am Sluice Tiny"));
}

TEST(LocalModelTest, SaysWhyAFileIsNoModel) {
  LocalModelOptions options = small_local_model();
  options.file = "";
  Error error = error_of(options);
  EXPECT_EQ(error.code, 400);
  EXPECT_THAT(error.message, HasSubstr("LocalModelOptions::file is empty"));

  options.file = "/no/such/model.gguf";
  error = error_of(options);
  EXPECT_EQ(error.code, 404);
  EXPECT_THAT(error.message, HasSubstr("/no/such/model.gguf"));

  options.file = testing::TempDir();
  EXPECT_EQ(error_of(options).code, 403);

  const TemporaryFile file("no_model.gguf");
  file.write("PK\x03\x04 this is an archive");
  options.file = file.path();
  error = error_of(options);
  EXPECT_EQ(error.code, 422);
  EXPECT_THAT(error.message, AllOf(HasSubstr(file.path()), HasSubstr("GGUF")));

  GgufWriter unknown;
  unknown.add("general.architecture", "teapot");
  unknown.add_tensor("t", {1}, {1.0F});
  write(file, unknown);
  error = error_of(options);
  EXPECT_EQ(error.code, 501);
  EXPECT_THAT(error.message, HasSubstr("teapot"));
}

TEST(LocalModelTest, SaysWhatTheMachineDoesNotHave) {
  LocalModelOptions options = small_local_model();
  options.context_tokens = 100'000'000;
  Error error = error_of(options);
  EXPECT_EQ(error.code, 503);
  EXPECT_THAT(error.message, HasSubstr("context"));

  options = small_local_model();
  options.backend = "gpu7";
  error = error_of(options);
  EXPECT_EQ(error.code, 400);
  EXPECT_THAT(error.message, HasSubstr("\"gpu7\""));
}

TEST(LocalModelTest, RefusesNumbersOutOfRange) {
  const auto refusal = [](auto change) {
    LocalModelOptions options = small_local_model();
    change(options);
    const Error error = error_of(options);
    EXPECT_EQ(error.code, 400);
    return error.message;
  };
  EXPECT_THAT(refusal([](auto& options) { options.slots = 0; }), HasSubstr("slots is 0"));
  EXPECT_THAT(refusal([](auto& options) { options.slots = 257; }), HasSubstr("from 1 to 256"));
  EXPECT_THAT(refusal([](auto& options) { options.threads = 1025; }), HasSubstr("threads is 1025"));
  EXPECT_THAT(refusal([](auto& options) { options.gpu_layers = -2; }), HasSubstr("from -1 to"));
  EXPECT_THAT(refusal([](auto& options) { options.gpu_layers = 10'001; }), HasSubstr("to 10000"));
}

TEST(LocalModelTest, AnExceptionOfTheProgressEndsLoading) {
  LocalModelOptions options = small_local_model();
  options.on_progress = [](float) { throw std::domain_error("enough"); };
  EXPECT_THROW(local_model(options), std::domain_error);
}

/// Objects that were made before a model take a while to go.
void end_slowly() {
  std::atexit([] { std::this_thread::sleep_for(std::chrono::milliseconds(100)); });
}

TEST(LocalModelDeathTest, AProcessMayEndWhileItAnswers) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto end_while_answering = [] {
    end_slowly();
    const Model model = local_model(small_local_model());
    ManualExecutor home;
    const auto sink = std::make_shared<AnswerSink>();
    const auto answer = model.engine()->start(greedy("Count to nine"), sink, home);
    sink->wait_for_deltas(1);
    // Another one is on its way.
    std::thread([] { local_model(small_local_model()); }).detach();
    std::exit(0);
  };
  EXPECT_EXIT(end_while_answering(), testing::ExitedWithCode(0), "");
}

TEST(LocalModelDeathTest, AProcessMayEndWhileItLoads) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto end_while_loading = [] {
    end_slowly();
    LocalModelOptions options = small_local_model();
    options.on_progress = [](float) { std::exit(0); };
    local_model(options);
  };
  EXPECT_EXIT(end_while_loading(), testing::ExitedWithCode(0), "");
}

TEST(LocalModelTest, SoManyRequestsWait) {
  const Model model = local_model(small_local_model());
  ManualExecutor home;
  const auto first = std::make_shared<HoldingSink>();
  const auto held = model.engine()->start(greedy("Count to nine"), first, home);
  ASSERT_TRUE(held) << held.error().message;
  first->wait_until_it_holds();
  std::vector<std::unique_ptr<Generation>> waiting;
  while (waiting.size() < 1000) {
    auto next = model.engine()->start(greedy("Hello"), std::make_shared<AnswerSink>(), home);
    if (!next) {
      EXPECT_EQ(next.error().code, kBusy);
      break;
    }
    waiting.push_back(*std::move(next));
  }
  EXPECT_EQ(waiting.size(), 256U);
  waiting.clear();
  first->release();
  EXPECT_EQ(first->wait_for_end().reason, Reason::stop);
}

TEST(LocalModelTest, ItsEndDoesNotHoldUpTheLoopOfAllClients) {
  const auto background = BackgroundLoop::shared();
  std::optional<Model> model = local_model(small_local_model());
  ManualExecutor home;
  const auto sink = std::make_shared<HoldingSink>();
  auto generation = model->engine()->start(greedy("Count to nine"), sink, home);
  ASSERT_TRUE(generation) << generation.error().message;
  sink->wait_until_it_holds();
  std::promise<void> turned;
  background->loop().post([&] {
    generation->reset();
    model.reset();
  });
  background->loop().post([&] { turned.set_value(); });
  EXPECT_EQ(turned.get_future().wait_for(kPatience), std::future_status::ready);
  sink->release();
  EXPECT_EQ(sink->wait_for_end().reason, Reason::cancelled);
}

}  // namespace
}  // namespace sluice
