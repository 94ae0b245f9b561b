#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/error.hpp"
#include "engine/model_change.hpp"
#include "json/json.hpp"

namespace sluice::rkllm {

/// What is loaded into a runtime besides its model: steps that each process of it takes in their
/// order. One that is started later takes those that are still in force. A step that fails is
/// forgotten, also if another process has taken it before: what crashes the runtime must not do so
/// for ever. Belongs to the engine's loop, but for what is said to be thread-safe.
class ModelAssets {
 public:
  struct Step {
    enum class Kind : std::uint8_t { adapter, cache, no_cache, cross_attention };
    Kind kind;
    std::string_view method;  // of the worker, and its parameters
    json::object params;
    std::string name = {};                 // of an adapter
    bool is_done = false;                  // by one process at least
    std::vector<ChangeDone> waiting = {};  // to be told when it is
  };

  /// The most steps that wait for a process to take them.
  static constexpr std::size_t kMaxWaiting = 8;
  /// Adds a step. `then` may be called at once.
  void add(ModelChange change, ChangeDone then);
  /// The next step of a process that has taken `taken`, and that was started after the step `born`;
  /// 0 is before all steps. Its number, and the step; null: there is none.
  [[nodiscard]] std::pair<std::uint64_t, const Step*> next(std::uint64_t taken,
                                                           std::uint64_t born) const;
  [[nodiscard]] std::uint64_t last() const { return last_; }
  /// A process has taken the step.
  void finish(std::uint64_t number, const Result<void>& outcome);
  /// Forgets the steps that no process has taken, as there is none that could.
  void abandon(const Error& why);

  /// Whether what is loaded has a part in what every prompt is to the model, or is about to.
  [[nodiscard]] bool shapes_prompts() const;

  /// Thread-safe, as is the next.
  [[nodiscard]] bool has_adapter(const std::string& name) const;
  /// What was set could not be set again in a new process, so answers would be about nothing.
  [[nodiscard]] bool has_lost_cross_attention() const { return has_lost_cross_attention_; }

 private:
  void succeed(std::uint64_t number, Step& step);
  void forget(std::uint64_t number, const Error& why);

  std::map<std::uint64_t, Step> steps_;
  std::uint64_t last_ = 0;
  /// The adapters that a process has loaded, by their names, which they keep: one that is lost may
  /// still be in another process.
  std::map<std::string, json::object> named_;
  mutable std::mutex mutex_;
  std::set<std::string> adapters_;  // that runs may name
  std::atomic<bool> has_lost_cross_attention_ = false;
};

}  // namespace sluice::rkllm
