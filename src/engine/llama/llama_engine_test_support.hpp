#pragma once

#include <condition_variable>
#include <gtest/gtest.h>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "core/manual_executor.hpp"
#include "core/text/utf8.hpp"
#include "engine/llama/llama_engine.hpp"

namespace sluice::test {

inline constexpr auto kPatience =
    std::chrono::seconds(60);  // nothing here takes long, but a hang must end

/// Collects an answer. From the `full_after`th delta on it says that it is full.
class AnswerSink final : public GenerationSink {
 public:
  bool on_delta(Delta delta) override {
    const std::lock_guard lock(mutex_);
    EXPECT_FALSE(completion_) << "a delta after the end";
    EXPECT_TRUE(is_valid_utf8(delta.text));
    EXPECT_FALSE(delta.text.empty());
    text_ += delta.text;
    ++deltas_;
    changed_.notify_all();
    return deltas_ < full_after_;
  }
  void on_complete(Completion completion) override {
    const std::lock_guard lock(mutex_);
    EXPECT_FALSE(completion_) << "completed twice";
    completion_ = std::move(completion);
    changed_.notify_all();
  }

  void full_after(std::size_t deltas) {
    const std::lock_guard lock(mutex_);
    full_after_ = deltas;
  }
  Completion wait() {
    std::unique_lock lock(mutex_);
    if (!changed_.wait_for(lock, kPatience, [this] { return completion_.has_value(); })) {
      ADD_FAILURE() << "no completion";
      return {};
    }
    return *completion_;
  }
  void wait_for_deltas(std::size_t count) {
    std::unique_lock lock(mutex_);
    EXPECT_TRUE(changed_.wait_for(lock, kPatience, [&] { return deltas_ >= count; }));
  }
  std::string text() {
    const std::lock_guard lock(mutex_);
    return text_;
  }
  std::size_t deltas() {
    const std::lock_guard lock(mutex_);
    return deltas_;
  }
  bool completed() {
    const std::lock_guard lock(mutex_);
    return completion_.has_value();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::string text_;
  std::size_t deltas_ = 0;
  std::size_t full_after_ = ~std::size_t{0};
  std::optional<Completion> completion_;
};

struct Running {
  std::shared_ptr<AnswerSink> sink = std::make_shared<AnswerSink>();
  std::unique_ptr<Generation> generation;
};

inline GenerationRequest greedy(std::string prompt) {
  GenerationRequest request;
  request.prompt = std::move(prompt);
  request.sampling.temperature = 0;
  return request;
}

inline LlamaOptions built_in_options() {
  LlamaOptions options;
  options.model_path = SLUICE_BUILT_IN_MODEL;
  options.backend = "cpu";
  options.context_tokens = 1024;
  return options;
}

class LlamaEngineFixture : public testing::Test {
 protected:
  void load(LlamaOptions options = built_in_options()) {
    engine_ = make_llama_engine(std::move(options));
    const ModelState state = engine_->wait_until_loaded();
    ASSERT_EQ(state.phase, ModelState::Phase::ready) << state.message;
  }
  Result<std::unique_ptr<Generation>> try_start(GenerationRequest request) {
    return engine_->start(std::move(request), std::make_shared<AnswerSink>(), home_);
  }
  Running start(GenerationRequest request, std::size_t full_after = ~std::size_t{0}) {
    Running running;
    running.sink->full_after(full_after);
    auto generation = engine_->start(std::move(request), running.sink, home_);
    EXPECT_TRUE(generation) << generation.error().message;
    if (generation) running.generation = std::move(*generation);
    return running;
  }
  std::string answer(GenerationRequest request, Completion* completion = nullptr) {
    const Running running = start(std::move(request));
    const Completion end = running.sink->wait();
    EXPECT_FALSE(end.error) << end.error->message;
    if (completion != nullptr) *completion = end;
    return running.sink->text();
  }
  /// Waits until `predicate` holds, yielding instead of sleeping.
  template <class Predicate>
  void eventually(Predicate predicate) {
    const auto deadline = std::chrono::steady_clock::now() + kPatience;
    while (!predicate()) {
      ASSERT_LT(std::chrono::steady_clock::now(), deadline);
      std::this_thread::yield();
    }
  }

  ManualExecutor home_;
  std::unique_ptr<LlamaEngine> engine_;
};

}  // namespace sluice::test
