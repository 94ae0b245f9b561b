#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "client/backoff.hpp"
#include "core/executor.hpp"
#include "engine/rkllm/model_assets.hpp"
#include "engine/rkllm/prompt_cache/prompt_caches.hpp"
#include "engine/rkllm/rkllm_engine.hpp"
#include "engine/rkllm/rkllm_run.hpp"
#include "engine/rkllm/runtime/library_file.hpp"
#include "engine/rkllm/worker/worker_process.hpp"
#include "net/loop/event_loop.hpp"

namespace sluice::rkllm {

/// An instance of the runtime in a process, which gives one answer at a time. A process that has
/// died, or that takes too long to load its model or to end an answer, is replaced by another after
/// a pause. Belongs to its loop.
class RkllmSlot final : private WorkerProcess::Owner {
 public:
  class Owner {
   public:
    virtual ~Owner() = default;
    /// The state has changed; an answer may be begun if is_idle(). Not from within a call to this.
    virtual void on_slot_changed() = 0;
    /// The answer is over, and `error` says why it failed. The same.
    virtual void on_run_over(const RunPtr& run, Completion::Reason reason,
                             std::optional<Error> error) = 0;
    /// Whether tokens can be chosen in the process that is loading; if not, why. The same.
    virtual void on_tokens_tested(const Result<void>& outcome) = 0;
  };

  /// `options`, `library`, `assets`, `caches` and `owner` outlive this. `caches`: null, there are
  /// none. `index`: among the slots.
  RkllmSlot(EventLoop& loop, const RkllmOptions& options, const LibraryFacts& library,
            ModelAssets& assets, PromptCaches* caches, std::uint32_t index, Owner& owner);
  ~RkllmSlot() override;
  RkllmSlot(const RkllmSlot&) = delete;
  RkllmSlot& operator=(const RkllmSlot&) = delete;

  void start();
  [[nodiscard]] bool is_idle() const { return phase_ == Phase::idle; }
  [[nodiscard]] bool is_busy() const { return phase_ == Phase::running; }
  [[nodiscard]] bool has_model() const {
    return is_idle() || is_busy() || phase_ == Phase::changing;
  }
  /// Whether the tokens of a run may be chosen by us.
  [[nodiscard]] bool chooses_tokens() const { return chooses_tokens_; }
  /// Why there is no model; empty while the first one is being loaded, and once there is one.
  [[nodiscard]] const std::string& trouble() const { return trouble_; }
  /// The process of the worker; 0: there is none.
  [[nodiscard]] pid_t pid() const { return process_ == nullptr ? 0 : process_->pid(); }

  /// Whether what the runtime has in its memory, if anything, may serve this run.
  [[nodiscard]] bool may_go_on(const RkllmRun& run) const;

  /// Only if it is idle. Takes the next step of the assets, if there is one.
  void settle();
  /// Only if it is idle.
  void begin(RunPtr run);
  /// Nobody wants the rest of this answer; its end is not told. Does nothing if it is over.
  void drop(const RunPtr& run);

 private:
  /// While it is `loading`, it also takes the steps that were taken before its process was there.
  enum class Phase : std::uint8_t { absent, loading, idle, changing, running };

  void on_output(const TokenRecord& output) override;
  void on_gone(const std::string& why) override;

  /// Of a result of the worker; nothing if it is something else.
  static std::optional<int> returned_by(const Result<json::object>& answer);
  void load();
  /// Turns the runtime's own template off if there is another.
  void set_template();
  /// Then settle() is called.
  void test_tokens();
  void on_step_taken(const Result<json::object>& answer);
  /// The process is of no use: another one follows.
  void give_up(std::string why);
  void rest();
  /// Whose run has left what the runtime has in its memory. It serves no others: what an adapter
  /// makes of a prompt is not what the model makes of it.
  struct MemoryOwner {
    std::string client;  // empty for all: prefixes are shared
    std::string adapter;
    bool operator==(const MemoryOwner&) const = default;
  };
  [[nodiscard]] MemoryOwner owner_of(const RkllmRun& run) const;
  /// Then prepare_run() is called.
  void clear_memory();
  /// Loads what there is of the prompt, then calls ask_to_run().
  void prepare_run();
  /// Begins the run under way in the runtime.
  void ask_to_run();
  void take_text(std::string_view bytes);
  void take_figures(std::string_view bytes);
  /// Hidden states or logits.
  void take_numbers(const TokenRecord& output);
  /// The answer is over at a stop string or its limit, before the runtime knows. Its end is told
  /// when the runtime has said how much it has read, but soon.
  void end_early(Completion::Reason reason);
  /// The runtime is to end the run under way.
  void abort_run();
  void ask_to_abort();
  void on_run_returned(const Result<json::object>& answer);
  /// As `early_` says, if it does.
  void end_run(Completion::Reason reason, std::optional<Error> error = {});
  void set_timer(Duration time, void (RkllmSlot::*task)());
  void cancel_timer();
  void on_load_late();
  void on_test_late();
  void on_step_late();
  void on_abort_late();
  void on_clear_late();

  // Prompt caches that are written and loaded by themselves (rkllm_slot_caches.cpp).
  [[nodiscard]] std::string describe_model() const;
  [[nodiscard]] bool may_use_caches() const;
  /// Versions before 1.2.0 forget each run.
  [[nodiscard]] bool has_memory() const;
  /// How much of a prompt is in the memory of the runtime, in bytes.
  [[nodiscard]] std::size_t live_bytes(std::string_view prompt) const;
  void plan_caches();
  void on_caches_planned(std::uint64_t run, CachePlan plan);
  void on_cache_loaded(bool is_loaded);
  /// Ends what the run has done with caches, and settles. `is_good`: what it has saved is kept.
  void end_caches(bool is_good);
  void end_save(bool is_good);
  /// The process has died: what it was given may be why.
  void lose_caches();
  void on_cache_late();

  EventLoop* loop_;
  const RkllmOptions* options_;
  const LibraryFacts* library_;
  ModelAssets* assets_;
  PromptCaches* caches_;
  std::uint32_t index_;
  Owner* owner_;
  std::unique_ptr<WorkerProcess> process_;
  Phase phase_ = Phase::absent;
  std::string trouble_;
  std::uint64_t born_ = 0;   // the last of the assets' steps when the process was started
  std::uint64_t taken_ = 0;  // the last one that it has taken, or takes
  bool takes_step_ = false;
  bool is_testing_ = false;
  bool has_died_of_test_ = false;  // a process of this slot
  bool chooses_tokens_ = false;
  RunPtr run_;  // null while nobody wants the answer that the runtime gives
  std::uint64_t run_number_ = 0;
  bool has_failed_ = false;                  // the runtime says so of the answer
  bool has_spoken_ = false;                  // so the prompt is read; the answer is wanted
  std::optional<Completion::Reason> early_;  // why the answer is over, if the runtime goes on
  TimePoint abort_by_{};
  Executor::TimerId timer_ = 0;
  Backoff pause_;
  std::vector<Delta> deltas_;  // empty between calls
  CachePlan plan_;             // of the run under way
  std::string model_;          // what the caches of the process depend on besides their prompts
  /// What the runtime has in its memory, as far as that is known: the last prompt and its answer.
  std::string live_;
  std::optional<MemoryOwner> live_owner_;  // nothing: the memory is empty
  bool is_asked_ = false;                  // the runtime, to begin the run under way
  bool keeps_text_ = false;                // whether the run leaves its text there
  std::int32_t generated_ = 0;  // tokens of the run, as the runtime counts them; -1: not known
};

}  // namespace sluice::rkllm
