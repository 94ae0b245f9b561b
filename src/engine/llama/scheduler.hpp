#pragma once

#include <atomic>
#include <cstdint>
#include <llama.h>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/clock.hpp"
#include "engine/llama/llama_model.hpp"
#include "engine/llama/llama_run.hpp"
#include "engine/llama/scheduling/admission_queue.hpp"
#include "engine/llama/scheduling/prefill_budget.hpp"

namespace sluice {

/// Counts that other threads read.
struct SchedulerStats {
  std::atomic<std::uint32_t> slots_busy = 0;
  std::atomic<std::uint32_t> queued = 0;
  std::atomic<std::uint64_t> cancelled = 0;
  std::atomic<std::uint64_t> prompt_tokens = 0;
  std::atomic<std::uint64_t> cached_tokens = 0;
  std::atomic<std::uint64_t> completion_tokens = 0;
};

/// Continuous batching: admits generations to the model's sequences and computes them together, one
/// batch a step, in which every answer advances by a token and prompts by as much as keeps the step
/// short. Lives on the engine's thread; SchedulerStats and the flag `stopping`, which breaks off a
/// step, belong to all.
class Scheduler {
 public:
  struct Options {
    /// How long a slot stays with a run whose reader is slow, or with one of a client that has
    /// more slots than another, while that one waits.
    Duration grace{};
    bool share_prefixes = false;  // what one principal's prompt left may serve another's
  };

  Scheduler(LoadedModel& model, const Options& options, SchedulerStats& stats,
            const std::atomic<bool>& stopping);
  ~Scheduler();
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;

  void add(RunPtr run);
  /// Does what there is to do now: ends what was cancelled, goes on with what was resumed, admits,
  /// and computes one step. False: there is nothing to do before something changes.
  bool turn();
  /// When turn() is to be called again although nothing changed; nothing: never.
  [[nodiscard]] std::optional<TimePoint> next_deadline() const;
  /// Ends everything as cancelled.
  void cancel_all();

 private:
  struct Slot {
    std::vector<llama_token> tokens;  // whose keys and values the model's memory holds
    std::string owner;                // the principal that they come from
    RunPtr run;
    std::uint64_t last_used = 0;
    // Of the step being computed:
    std::uint32_t added = 0;
    std::int32_t output = -1;  // its logits in the batch
  };

  void handle_signals();
  void admit();
  bool reclaim_paused();
  bool reclaim_surplus();
  RunPtr vacate(Slot& slot);
  bool begin(const RunPtr& run);
  void place(const RunPtr& run);
  bool build_batch();
  void add_to_batch(std::size_t slot);
  int compute();
  void after_step(int status);
  void sample(Slot& slot);
  std::string_view text_of(llama_token token, bool visible);
  void take(Slot& slot, llama_token token, std::string_view text);

  void finish(Slot& slot, Completion::Reason reason, std::optional<Error> error = {});
  void complete(const RunPtr& run, Completion::Reason reason, std::optional<Error> error = {});
  void forget(std::size_t slot);
  void publish_positions();
  static bool should_abort(void* self);

  LoadedModel& model_;
  llama_context* const context_;
  const llama_memory_t memory_;
  const llama_vocab* const vocab_;
  const Options options_;
  SchedulerStats& stats_;
  const std::atomic<bool>& stopping_;
  const SteadyClock clock_;

  AdmissionQueue<RunPtr> queue_;
  std::vector<Slot> slots_;
  std::vector<RunPtr> parked_;    // paused, and their slot given to others
  std::vector<RunPtr> draining_;  // computed, but their sink is full
  llama_batch batch_;
  PrefillBudget budget_;
  std::uint64_t uses_ = 0;
  std::vector<Delta> deltas_;
  std::vector<char> piece_;
};

}  // namespace sluice
