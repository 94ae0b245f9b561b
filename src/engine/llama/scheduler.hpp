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
#include "engine/admission_queue.hpp"
#include "engine/llama/llama_model.hpp"
#include "engine/llama/llama_run.hpp"
#include "engine/llama/scheduling/prefill_budget.hpp"

namespace sluice {

/// Counters that other threads may read.
struct SchedulerStats {
  std::atomic<std::uint32_t> slots_busy = 0;
  std::atomic<std::uint32_t> queued = 0;
  std::atomic<std::uint64_t> cancelled = 0;
  std::atomic<std::uint64_t> prompt_tokens = 0;
  std::atomic<std::uint64_t> cached_tokens = 0;
  std::atomic<std::uint64_t> completion_tokens = 0;
};

/// Performs continuous batching: it admits generations to the model's sequences and computes them
/// together, one batch per step. In a step, every answer advances by one token, and prompts advance
/// by as much as keeps the step short. A step has one LoRA adapter or none: runs with different
/// ones take turns of some steps. Belongs to the engine's thread, except SchedulerStats and
/// the flag `stopping`, which aborts a step; other threads may use these.
class Scheduler {
 public:
  struct Options {
    /// While another client waits for a slot: how long a run keeps its slot if its reader is slow,
    /// or if its client has more slots than the other.
    Duration grace{};
    bool share_prefixes = false;  // whether a prompt may reuse what another principal's left
  };

  Scheduler(LoadedModel& model, const Options& options, SchedulerStats& stats,
            const std::atomic<bool>& stopping);
  ~Scheduler();
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;

  void add(RunPtr run);
  /// Does the work that is due: ends cancelled runs, continues resumed ones, admits new ones, and
  /// computes one step. Returns false if there is nothing to do until something changes.
  bool turn();
  /// When to call turn() again even if nothing changes; nothing if never.
  [[nodiscard]] std::optional<TimePoint> next_deadline() const;
  /// Ends all runs as cancelled.
  void cancel_all();

 private:
  struct Slot {
    std::vector<llama_token> tokens;  // the tokens whose keys and values are in the model's memory
    std::string owner;                // the principal that the tokens come from
    const LoraAdapter* adapter = nullptr;  // that they were computed with
    std::uint64_t adapter_turn = 0;        // when its adapter had its turn last
    RunPtr run;
    std::uint64_t last_used = 0;
    // The current step:
    std::uint32_t added = 0;
    std::int32_t output = -1;  // the index of its logits in the batch
  };

  void handle_signals();
  void admit();
  bool reclaim_paused();
  bool reclaim_surplus();
  RunPtr vacate(Slot& slot);
  bool begin(const RunPtr& run);
  void place(const RunPtr& run);
  bool build_batch();
  void choose_adapter();
  void use_adapter();
  void add_to_batch(std::size_t slot);
  int compute();
  void after_step(int status);
  void sample(Slot& slot);
  std::string_view text_of(llama_token token, bool visible);
  void take(Slot& slot, llama_token token, std::string_view text);

  void finish(Slot& slot, Completion::Reason reason, std::optional<Error> error = {});
  [[nodiscard]] Error cut_call(const LlamaRun& run) const;
  void complete(const RunPtr& run, Completion::Reason reason, std::optional<Error> error = {});
  void truncate(std::size_t slot, std::size_t keep);
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
  const LoraAdapter* adapter_ = nullptr;  // of the current step; null: none
  std::uint32_t adapter_steps_ = 0;       // that were computed with it in a row
  std::uint64_t adapter_turns_ = 0;
  std::vector<RunPtr> parked_;    // paused runs that have lost their slot
  std::vector<RunPtr> draining_;  // finished runs whose sink is full
  llama_batch batch_;
  PrefillBudget budget_;
  std::uint64_t uses_ = 0;
  std::vector<Delta> deltas_;
  std::vector<char> piece_;
};

}  // namespace sluice
