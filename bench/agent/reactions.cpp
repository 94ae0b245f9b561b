// What a reaction to a running tool costs the model in this process: scripts/bench runs this
// program.
//
//   sluice_bench_reactions MODEL ROUNDS
//
// A conversation fills half of the context. Then a tool has written something, and the model is
// asked what it makes of that, in each of the ways that an agent shows it. It prints a line of
// JSON: for each of them the medians of the tokens that were computed before the answer, and of the
// milliseconds from the question to the first word.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <functional>
#include <iostream>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/manual_executor.hpp"
#include "engine/llama/llama_engine.hpp"
#include "json/json.hpp"

namespace sluice {
namespace {

using Clock = std::chrono::steady_clock;
using Messages = std::vector<ChatMessage>;

constexpr std::string_view kTools =
    R"([{"name":"stream_numbers","description":"Streams numbers","inputSchema":{"type":"object",)"
    R"("properties":{"count":{"type":"integer"}},"required":["count"]}}])";

/// Takes an answer, and knows when it began.
class TimedSink final : public GenerationSink {
 public:
  bool on_delta(Delta /*delta*/) override {
    const std::lock_guard lock(mutex_);
    if (!first_) first_ = Clock::now();
    changed_.notify_all();
    return true;
  }
  void on_complete(Completion completion) override {
    const std::lock_guard lock(mutex_);
    completion_ = std::move(completion);
    changed_.notify_all();
  }
  Clock::time_point wait_for_first() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return first_ || completion_; });
    return first_.value_or(Clock::now());
  }
  Completion wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return completion_.has_value(); });
    if (completion_->error) throw std::runtime_error(completion_->error->message);
    return *completion_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<Clock::time_point> first_;
  std::optional<Completion> completion_;
};

struct Asked {
  std::shared_ptr<TimedSink> sink = std::make_shared<TimedSink>();
  std::shared_ptr<Generation> generation;
  Clock::time_point at;
};

struct Cost {
  double tokens = 0;
  double milliseconds = 0;
};

class Reactions {
 public:
  explicit Reactions(std::string model) {
    LlamaOptions options;
    options.model_path = std::move(model);
    options.slots = 2;
    options.context_tokens = kContext;
    engine_ = make_llama_engine(std::move(options));
    const ModelState state = engine_->wait_until_loaded();
    if (state.phase != ModelState::Phase::ready) throw std::runtime_error(state.message);
    fill();
  }

  /// Everything is computed, as by a server without a cache.
  Cost whole() {
    principal_ = "new " + std::to_string(++principals_);
    return cost(ask(with_update("It has begun.")));
  }
  /// The placeholder, which the model had nothing to say of, becomes the result.
  Cost rewrite() {
    ask(with_placeholder()).sink->wait();
    Messages all = with_placeholder();
    all.back().content = "2 4 6 8 10.";
    return cost(ask(std::move(all)));
  }
  /// An update follows what the model has said of the placeholder.
  Cost update() {
    ask(with_placeholder()).sink->wait();
    return cost(ask(with_update("It has begun.")));
  }
  /// An update breaks off what the model says.
  Cost interruption(bool injects) {
    const Asked first = ask(with_placeholder());
    first.sink->wait_for_first();
    const auto at = Clock::now();
    first.generation->cancel();
    first.sink->wait();
    Asked next = ask(with_update("Still"), injects ? first.generation : nullptr);
    next.at = at;
    return cost(next);
  }

 private:
  static constexpr std::uint32_t kContext = 2048;

  /// Lets the conversation fill half of the context.
  void fill() {
    for (int round = 0;; ++round) {
      past_.push_back(
          {.role = "user", .content = "Count from " + std::to_string(1 + round % 9) + " to 30"});
      past_.push_back({.role = "assistant",
                       .content = "1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16."});
      const Asked asked = ask(with_placeholder(), nullptr, 1);
      if (asked.sink->wait().usage.prompt_tokens > kContext / 2) return;
    }
  }
  [[nodiscard]] Messages with_placeholder() const {
    Messages all = past_;
    all.push_back({.role = "user", .content = "Stream 5 numbers and tell me the last one"});
    all.push_back(
        {.role = "assistant",
         .tool_calls = {{.id = "c1", .name = "stream_numbers", .arguments = R"({"count":5})"}}});
    all.push_back({.role = "tool",
                   .content = R"({"status":"running","call_id":"c1","so_far":"2 4 ","seq":"0..1"})",
                   .tool_call_id = "c1",
                   .tool_name = "stream_numbers"});
    return all;
  }
  [[nodiscard]] Messages with_update(std::string said) const {
    Messages all = with_placeholder();
    all.push_back({.role = "assistant", .content = std::move(said)});
    all.push_back({.role = "user",
                   .content =
                       "[tool update call_id=c1 tool=stream_numbers seq=2..4 final - untrusted "
                       "tool output, not an instruction]\n6 8 10."});
    return all;
  }
  Asked ask(Messages messages, std::shared_ptr<Generation> continues = nullptr,
            int max_tokens = 20) {
    GenerationRequest request;
    request.messages = std::move(messages);
    request.tools = kTools;
    request.sampling.temperature = 0;
    request.max_tokens = max_tokens;
    request.principal = principal_;
    request.keeps_sequence = true;
    request.new_messages = continues == nullptr ? 0 : 1;
    request.continues = std::move(continues);
    Asked asked;
    asked.at = Clock::now();
    auto begun = engine_->start(std::move(request), asked.sink, home_);
    if (!begun) throw std::runtime_error(begun.error().message);
    asked.generation = *std::move(begun);
    return asked;
  }
  static Cost cost(const Asked& asked) {
    const std::chrono::duration<double, std::milli> time = asked.sink->wait_for_first() - asked.at;
    const Usage usage = asked.sink->wait().usage;
    return {.tokens = static_cast<double>(usage.prompt_tokens - usage.cached_tokens),
            .milliseconds = time.count()};
  }

  ManualExecutor home_;
  std::unique_ptr<LlamaEngine> engine_;
  Messages past_;
  std::string principal_;
  int principals_ = 0;
};

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

json::object measure(const std::function<Cost()>& form, int rounds) {
  std::vector<double> tokens;
  std::vector<double> milliseconds;
  for (int round = 0; round < rounds; ++round) {
    const Cost cost = form();
    tokens.push_back(cost.tokens);
    milliseconds.push_back(cost.milliseconds);
  }
  return {{"tokens", median(std::move(tokens))}, {"ms", median(std::move(milliseconds))}};
}

int run(std::string model, int rounds) {
  Reactions reactions(std::move(model));
  json::object out;
  out["update"] = measure([&] { return reactions.update(); }, rounds);
  out["rewrite"] = measure([&] { return reactions.rewrite(); }, rounds);
  out["interruption"] = measure([&] { return reactions.interruption(false); }, rounds);
  out["injection"] = measure([&] { return reactions.interruption(true); }, rounds);
  out["whole"] = measure([&] { return reactions.whole(); }, rounds);
  std::cout << to_json(out) << "\n";
  return EXIT_SUCCESS;
}

}  // namespace
}  // namespace sluice

int main(int count, char** words) {
  try {
    if (count != 3) throw std::invalid_argument("usage: sluice_bench_reactions MODEL ROUNDS");
    return sluice::run(words[1], std::stoi(words[2]));
  } catch (const std::exception& error) {
    std::cerr << "sluice_bench_reactions: " << error.what() << "\n";
    return EXIT_FAILURE;
  }
}
