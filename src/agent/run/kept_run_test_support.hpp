#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "agent/run/agent_run.hpp"
#include "agent/run/agent_run_test_support.hpp"
#include "agent/store/state_keeper.hpp"
#include "json/json.hpp"

namespace sluice {

/// Keeps the last state, when a test lets it.
class FakeKeeper final : public StateKeeper {
 public:
  explicit FakeKeeper(ManualExecutor& loop) : loop_(&loop) {}

  void keep(json::object state, std::function<void(const Result<void>&)> done) override {
    ++asked;
    waiting_.emplace(std::move(state), std::move(done));
    if (keeps_at_once) finish();
  }
  void finish() {
    if (!waiting_) return;
    auto [state, done] = *std::exchange(waiting_, std::nullopt);
    if (!fails) kept = std::move(state);
    loop_->post([done, fails = fails] {
      done(fails ? Result<void>(fail(500, "the disk is full")) : Result<void>());
    });
  }
  [[nodiscard]] bool is_waiting() const { return waiting_.has_value(); }

  bool keeps_at_once = true;
  bool fails = false;
  int asked = 0;
  json::object kept;

 private:
  ManualExecutor* loop_;
  std::optional<std::pair<json::object, std::function<void(const Result<void>&)>>> waiting_;
};

/// A run that is kept, and a later one with the same tools.
struct KeptBench : RunBench {
  explicit KeptBench(AgentOptions options = {}) : RunBench(std::move(options)), keeper(loop) {
    tools.offered.push_back({.name = "look", .is_read_only = true});
    run->keep_with(keeper);
  }
  ~KeptBench() { run.reset(); }  // it is kept once more
  KeptBench(const KeptBench&) = delete;
  KeptBench& operator=(const KeptBench&) = delete;
  /// The state as a later process reads it.
  [[nodiscard]] json::object state() const {
    return parse_json(to_json(keeper.kept)).value().get_object();
  }
  Result<void> resume(const json::object& state, std::optional<std::string> input = {}) {
    Result<void> restored = run->restore(state);
    if (!restored) return restored;
    run->resume(std::move(input));
    loop.run();
    return {};
  }

  FakeKeeper keeper;
};

/// The texts of the last messages that the model was shown.
inline std::string last_shown(RunBench& bench) {
  return bench.shown().back().content;
}

}  // namespace sluice
