#pragma once

#include <chrono>
#include <condition_variable>
#include <fstream>
#include <gtest/gtest.h>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "core/manual_executor.hpp"
#include "engine/rkllm/rkllm_engine.hpp"
#include "engine/rkllm/runtime/fake_rkllm_test_support.hpp"

namespace sluice::rkllm::test {

/// Collects an answer. Thread-safe.
class Answer final : public GenerationSink {
 public:
  bool on_delta(Delta delta) override {
    const std::lock_guard lock(mutex_);
    teller_ = std::this_thread::get_id();
    if (delta.kind == Delta::Kind::text) text_ += delta.text;
    if (delta.kind == Delta::Kind::reasoning) reasoning_ += delta.text;
    if (delta.kind == Delta::Kind::members) members_ += delta.text;
    if (delta.kind == Delta::Kind::tool_call) calls_.push_back(std::move(delta.text));
    ++deltas_;
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
    return changed_.wait_for(lock, kPatience, [&] { return text_.contains(text); });
  }
  /// "text|reason" or "text|error: message".
  std::string end() {
    std::unique_lock lock(mutex_);
    if (!changed_.wait_for(lock, kPatience, [this] { return ends_ > 0; })) {
      return "it does not end";
    }
    return text_ + "|" +
           (completion_.error ? "error: " + completion_.error->message
                              : std::string(to_string(completion_.reason)));
  }
  [[nodiscard]] int ends() {
    const std::lock_guard lock(mutex_);
    return ends_;
  }
  /// The thread of the last piece.
  [[nodiscard]] std::thread::id teller() {
    const std::lock_guard lock(mutex_);
    return teller_;
  }
  // After the end:
  [[nodiscard]] const Completion& completion() const { return completion_; }
  [[nodiscard]] const std::string& reasoning() const { return reasoning_; }
  [[nodiscard]] const std::vector<std::string>& calls() const { return calls_; }
  [[nodiscard]] const std::string& members() const { return members_; }
  [[nodiscard]] int deltas() const { return deltas_; }

 private:
  static constexpr auto kPatience = std::chrono::seconds(20);

  std::mutex mutex_;
  std::condition_variable changed_;
  std::string text_;
  std::string reasoning_;
  std::vector<std::string> calls_;
  std::string members_;
  Completion completion_;
  int ends_ = 0;
  int deltas_ = 0;
  std::thread::id teller_;
};

/// An engine with the stand-in of an ABI.
class EngineTest : public ::testing::TestWithParam<Abi> {
 protected:
  EngineTest() { std::ofstream(model_) << "a model"; }
  [[nodiscard]] RkllmOptions options() const {
    return {.model_path = model_,
            .library_path = fake_library(GetParam()),
            .worker = {std::string(SLUICE_FAKE_RKLLM) + "/rkllm_worker"},
            // A sanitizer would end the process in a way of its own.
            .environment = {{"ASAN_OPTIONS", "handle_segv=0:handle_sigill=0"},
                            {"TSAN_OPTIONS", "handle_segv=0:handle_sigill=0"}},
            .restart_pause = std::chrono::milliseconds(10),
            .abort_timeout = std::chrono::milliseconds(200)};
  }
  void make(RkllmOptions with) {
    auto made = make_rkllm_engine(std::move(with));
    ASSERT_TRUE(made) << made.error().message;
    engine = *std::move(made);
  }
  void make_ready(RkllmOptions with) {
    make(std::move(with));
    const auto ready = engine->wait_ready(std::chrono::seconds(20));
    ASSERT_TRUE(ready && *ready) << engine->not_ready();
  }
  void make() { make_ready(options()); }
  std::unique_ptr<Generation> ask(const std::shared_ptr<Answer>& answer,
                                  GenerationRequest request = {}) {
    if (request.prompt.empty() && request.messages.empty() && request.input == nullptr) {
      request.prompt = "Hi";
    }
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
  /// The whole answer.
  std::shared_ptr<Answer> answered(GenerationRequest request = {}) {
    const auto answer = std::make_shared<Answer>();
    const auto generation = ask(answer, std::move(request));
    answer->end();
    return answer;
  }
  std::string answer_to(GenerationRequest request = {}) {
    return answered(std::move(request))->end();
  }
  /// Why a request is refused at once; empty: it is not.
  std::string refusal(GenerationRequest request) {
    const auto started = engine->start(std::move(request), std::make_shared<Answer>(), home);
    return started ? std::string() : started.error().message;
  }

  ManualExecutor home;
  std::string model_ = ::testing::TempDir() + "model.rkllm";
  std::unique_ptr<RkllmEngine> engine;
};

}  // namespace sluice::rkllm::test
