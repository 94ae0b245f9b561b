#include "engine/rkllm/rkllm_engine.hpp"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <filesystem>
#include <future>
#include <mutex>
#include <set>
#include <string_view>
#include <system_error>
#include <utility>

#include "core/log/log.hpp"
#include "core/text/utf8.hpp"
#include "engine/answer/cut_call.hpp"
#include "engine/rkllm/prompt_cache/prompt_caches.hpp"
#include "engine/rkllm/rkllm_run.hpp"
#include "engine/rkllm/rkllm_slot.hpp"
#include "engine/rkllm/run_preparation.hpp"
#include "engine/rkllm/runtime/library_file.hpp"
#include "net/http/status_codes.hpp"
#include "net/loop/event_loop.hpp"
#include "rpc/error_codes.hpp"

namespace sluice::rkllm {
namespace {

constexpr std::uint32_t kMaxSlots = 8;

using Micros = std::chrono::microseconds;

Micros between(TimePoint from, TimePoint to) {
  return std::chrono::duration_cast<Micros>(to - from);
}

class NpuEngine;

/// Where an engine lives. Shared with the handles of its generations.
class Home {
 public:
  /// On the first of the `given` loops; null: on a loop of its own.
  explicit Home(LoopPool* given) {
    if (given == nullptr) own_.emplace(1);
    loops_ = given == nullptr ? &*own_ : given;
  }

  [[nodiscard]] EventLoop& loop() { return loops_->loop(0); }
  void settle(NpuEngine& engine) {
    *engine_ = &engine;
    if (own_) own_->start();
    preparation_.start();
  }
  /// Does `work` on the loop, with the engine unless it has ended then. Thread-safe.
  template <class Work>
  void post(Work work) {
    loop().post([engine = engine_, work = std::move(work)]() mutable {
      if (NpuEngine* const alive = *engine) work(*alive);
    });
  }
  /// Does what may take long. Thread-safe.
  void prepare(Executor::Task work) { preparation_.loop(0).post(std::move(work)); }
  /// Does `last_work` on the loop, or here if no loop runs. Nothing that is posted is done after
  /// it.
  void leave(Executor::Task last_work) {
    const auto leave_now = [&] {
      last_work();
      *engine_ = nullptr;
    };
    if (!loops_->is_running()) return leave_now();
    std::promise<void> done;
    loop().post([&] {
      leave_now();
      done.set_value();
    });
    done.get_future().wait();
  }
  /// Waits for what is being prepared. After leave().
  void end() {
    preparation_.stop();
    preparation_.discard_tasks();
    if (!own_) return;
    own_->stop();
    own_->discard_tasks();
  }

 private:
  std::optional<LoopPool> own_;
  LoopPool* loops_;
  LoopPool preparation_{1};
  /// Tasks on given loops may be left when all else is gone.
  std::shared_ptr<std::atomic<NpuEngine*>> engine_ =
      std::make_shared<std::atomic<NpuEngine*>>(nullptr);
};

class NpuEngine final : public RkllmEngine, private RkllmSlot::Owner {
 public:
  NpuEngine(RkllmOptions options, LibraryFacts library, std::optional<PromptCacheFolder> folder)
      : options_(std::move(options)),
        library_(std::move(library)),
        shares_(std::make_shared<QueueShares>(options_.max_queue + options_.slots, options_.slots)),
        home_(std::make_shared<Home>(options_.loops)) {
    if (folder) {
      caches_.emplace(
          *std::move(folder), [this](Executor::Task task) { home_->prepare(std::move(task)); },
          [this](Executor::Task task) {
            home_->post([task = std::move(task)](NpuEngine& /*self*/) mutable { task(); });
          });
    }
    for (std::uint32_t i = 0; i < options_.slots; ++i) {
      slots_.push_back(std::make_unique<RkllmSlot>(home_->loop(), options_, library_, assets_,
                                                   caches_ ? &*caches_ : nullptr, i,
                                                   static_cast<RkllmSlot::Owner&>(*this)));
    }
    home_->settle(*this);
    home_->post([](NpuEngine& self) {
      for (const auto& slot : self.slots_) slot->start();
    });
  }
  ~NpuEngine() override { NpuEngine::shutdown(); }
  NpuEngine(const NpuEngine&) = delete;
  NpuEngine& operator=(const NpuEngine&) = delete;

  Result<std::unique_ptr<Generation>> start(GenerationRequest request,
                                            std::shared_ptr<GenerationSink> sink,
                                            Executor& /*home*/) override;
  [[nodiscard]] EngineInfo info() const override {
    return {.engine = "rkllm",
            .model = std::filesystem::path(options_.model_path).stem().string(),
            .context_tokens = options_.context_tokens,
            .slots = options_.slots,
            .checks_schema = no_tokens(),
            .takes_inputs = true,
            .loads_adapters = true,
            .loads_prompt_caches = true,
            .takes_cross_attention = library_.abi == nullptr || library_.abi->has_function_tools};
  }
  void change(ModelChange change, ChangeDone then) override;
  [[nodiscard]] EngineStats stats() const override {
    return {.slots_busy = busy_,
            .requests_queued = queued_,
            .requests = requests_,
            .cancelled = cancelled_,
            .prompt_tokens = prompt_tokens_,
            .cached_tokens = cached_tokens_,
            .completion_tokens = completion_tokens_,
            .prompt_caches =
                caches_ ? std::optional(caches_->stats()) : std::optional<PromptCacheStats>()};
  }
  void shutdown() override;
  void leave_loop() override;
  [[nodiscard]] std::string not_ready() const override {
    const std::lock_guard lock(mutex_);
    return not_ready_;
  }
  [[nodiscard]] Result<bool> wait_ready(Duration at_most) const override {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, at_most, [this] { return not_ready_.empty() || has_failed_; });
    if (not_ready_.empty()) return true;
    if (has_failed_) return fail(kServiceUnavailable, not_ready_);
    return false;
  }

  // For handles, on the loop.
  void cancel(const RunPtr& run);
  void resume(const RunPtr& run);

 private:
  void take_change(ModelChange change, ChangeDone then);
  void admit(const RunPtr& run);
  /// Then on_prepared() is called.
  void prepare_run(const RunPtr& run);
  void on_prepared(const RunPtr& run, Result<void> outcome);
  void pump();
  /// One of them is idle.
  [[nodiscard]] RkllmSlot& idle_slot_for(const RkllmRun& run) const;
  void begin(RkllmSlot& slot, const RunPtr& run);
  /// Whether a run may name this adapter now (empty: none), and attend to what was set. Errors
  /// -32602 and kBusy. Thread-safe.
  [[nodiscard]] Result<void> check_assets(const std::string& adapter) const;
  /// Whether nothing is where a run that begins saves its prompt. Error -32602.
  [[nodiscard]] Result<void> check_new_file(const RunPtr& run) const;
  void on_slot_changed() override { pump(); }
  void on_tokens_tested(const Result<void>& outcome) override;
  /// Why we do not choose tokens; empty: we do. Thread-safe.
  [[nodiscard]] std::string no_tokens() const {
    const std::lock_guard lock(mutex_);
    return no_tokens_;
  }
  void on_run_over(const RunPtr& run, Completion::Reason reason,
                   std::optional<Error> error) override;
  /// Of an answer that has to follow a schema. Then on_checked() is called.
  void check_answer(const RunPtr& run, Completion::Reason reason);
  /// Delivers the answer, or asks for another.
  void on_checked(const RunPtr& run, Completion::Reason reason,
                  const std::optional<std::string>& fault);
  void complete(const RunPtr& run, Completion::Reason reason, std::optional<Error> error = {});
  /// Lets go of a run whose sink has heard everything.
  void settle(const RunPtr& run);
  void tell_state();

  const RkllmOptions options_;
  const LibraryFacts library_;
  const std::shared_ptr<QueueShares> shares_;
  const std::shared_ptr<Home> home_;
  ModelAssets assets_;
  std::optional<PromptCaches> caches_;  // no folder: none
  std::vector<std::unique_ptr<RkllmSlot>> slots_;
  AdmissionQueue<RunPtr> queue_;
  std::set<RunPtr> open_;  // those whose sinks have not heard everything
  std::uint64_t arrivals_ = 0;
  bool is_over_ = false;

  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  std::string not_ready_ = "loading the model";
  std::string no_tokens_ = "the runtime was not tested yet";
  bool has_failed_test_ = false;         // in one process; then no other is asked
  bool has_failed_ = false;              // before any model was there
  std::atomic<bool> had_model_ = false;  // requests may wait for the next one
  std::once_flag has_left_;
  std::once_flag has_ended_;

  std::atomic<std::uint32_t> busy_ = 0;
  std::atomic<std::uint32_t> queued_ = 0;
  std::atomic<std::uint64_t> requests_ = 0;
  std::atomic<std::uint64_t> cancelled_ = 0;
  std::atomic<std::uint64_t> prompt_tokens_ = 0;
  std::atomic<std::uint64_t> cached_tokens_ = 0;
  std::atomic<std::uint64_t> completion_tokens_ = 0;
};

class NpuGeneration final : public Generation {
 public:
  NpuGeneration(std::shared_ptr<Home> home, RunPtr run)
      : home_(std::move(home)), run_(std::move(run)) {}
  ~NpuGeneration() override { NpuGeneration::cancel(); }
  NpuGeneration(const NpuGeneration&) = delete;
  NpuGeneration& operator=(const NpuGeneration&) = delete;

  void cancel() override {
    if (run_->is_cancelled.exchange(true)) return;
    tell(&NpuEngine::cancel);
  }
  void resume() override {
    run_->delivery.resume();
    tell(&NpuEngine::resume);
  }
  [[nodiscard]] GenerationStatus status() const override {
    return {.phase = run_->phase,
            .queue_position = run_->queue_position,
            .completion_tokens = run_->completion_tokens};
  }

 private:
  void tell(void (NpuEngine::*what)(const RunPtr&)) {
    home_->post([run = run_, what](NpuEngine& engine) { (engine.*what)(run); });
  }

  std::shared_ptr<Home> home_;
  RunPtr run_;
};

Result<std::unique_ptr<Generation>> NpuEngine::start(GenerationRequest request,
                                                     std::shared_ptr<GenerationSink> sink,
                                                     Executor& /*home*/) {
  if (const Result<void> checked = check(request, options_, library_.abi, no_tokens().empty());
      !checked) {
    return std::unexpected(checked.error());
  }
  if (!had_model_) return fail(kBusy, not_ready());
  if (const Result<void> checked = check_assets(request.lora_adapter); !checked) {
    return std::unexpected(checked.error());
  }
  auto share = shares_->take(request.principal);
  if (!share) return std::unexpected(std::move(share.error()));
  request.continues = nullptr;
  const auto run = std::make_shared<RkllmRun>(std::move(sink), std::move(request));
  run->share = *std::move(share);
  run->started = home_->loop().clock().now();
  run->max_tokens = static_cast<std::uint32_t>(run->request.max_tokens.value_or(0));
  run->params.mode = mode_of(run->request.yields);
  run->cache_owner = run->request.cache_owner;
  run->params.lora_adapter_name = run->request.lora_adapter;
  run->params.prompt_cache_path = run->request.prompt_cache;
  run->params.save_prompt_cache = !run->request.prompt_cache.empty();
  if (library_.abi != nullptr && library_.abi->has_sampling_of_run) {
    run->params.sampling = sampling_of(run->request.sampling);
    run->params.max_new_tokens = run->request.max_tokens;
  }
  run->place = {.client = run->request.principal, .priority = run->request.priority};
  ++requests_;
  home_->post([run](NpuEngine& self) { self.admit(run); });
  return std::make_unique<NpuGeneration>(home_, run);
}

Result<void> NpuEngine::check_assets(const std::string& adapter) const {
  if (!adapter.empty() && !assets_.has_adapter(adapter)) {
    return fail(kInvalidParams, kNoSuchAdapter);
  }
  if (assets_.has_lost_cross_attention()) {
    return fail(kBusy,
                "what the model attends to was lost when its process died; an operator sets it "
                "again with set_cross_attn_params");
  }
  return {};
}

void NpuEngine::change(ModelChange change, ChangeDone then) {
  home_->post([change = std::move(change), then = std::move(then)](NpuEngine& self) mutable {
    self.take_change(std::move(change), std::move(then));
  });
}

void NpuEngine::take_change(ModelChange change, ChangeDone then) {
  if (std::holds_alternative<SetCrossAttention>(change) && !options_.cross_attention) {
    return then(fail(kInvalidRequest,
                     "The model was not loaded for cross attention; start the server with "
                     "--cross-attention"));
  }
  const bool has_model = std::ranges::any_of(slots_, [](auto& each) { return each->has_model(); });
  if (!has_model) return then(fail(kBusy, not_ready()));
  assets_.add(std::move(change), std::move(then));
  for (const auto& slot : slots_) {
    if (slot->is_idle()) slot->settle();
  }
}

void NpuEngine::admit(const RunPtr& run) {
  if (is_over_ || run->is_cancelled) return complete(run, Completion::Reason::cancelled);
  open_.insert(run);
  run->place.arrival = ++arrivals_;
  prepare_run(run);
}

void NpuEngine::prepare_run(const RunPtr& run) {
  run->phase = RkllmRun::Phase::queued;
  home_->prepare([this, run] {
    home_->post([run, outcome = prepare(*run, options_, library_.abi, no_tokens().empty())](
                    NpuEngine& self) mutable { self.on_prepared(run, std::move(outcome)); });
  });
}

void NpuEngine::on_prepared(const RunPtr& run, Result<void> outcome) {
  if (run->phase == RkllmRun::Phase::done) return;  // it was cancelled meanwhile
  if (!outcome) return complete(run, Completion::Reason::error, std::move(outcome.error()));
  queue_.push(run->place, run);
  pump();
}

void NpuEngine::pump() {
  if (is_over_) return;
  const auto is_idle = [](const auto& slot) { return slot->is_idle(); };
  while (!queue_.empty() && std::ranges::any_of(slots_, is_idle)) {
    const RunPtr run = queue_.pop();
    begin(idle_slot_for(*run), run);
  }
  queue_.visit([](const RunPtr& run, std::uint32_t position) { run->queue_position = position; });
  queued_ = static_cast<std::uint32_t>(queue_.size());
  busy_ = static_cast<std::uint32_t>(
      std::ranges::count_if(slots_, [](const auto& slot) { return slot->is_busy(); }));
  tell_state();
}

RkllmSlot& NpuEngine::idle_slot_for(const RkllmRun& run) const {
  RkllmSlot* best = nullptr;
  for (const auto& slot : slots_) {
    if (!slot->is_idle()) continue;
    if (best == nullptr || (slot->may_go_on(run) && !best->may_go_on(run))) best = slot.get();
  }
  return *best;
}

void NpuEngine::begin(RkllmSlot& slot, const RunPtr& run) {
  // What held when it began to wait may not hold any more.
  Result<void> checked = check_assets(run->params.lora_adapter_name);
  if (checked) checked = check_new_file(run);
  if (checked && run->choice && !slot.chooses_tokens()) {
    if (!run->request.json_schema.empty()) return prepare_run(run);
    checked = std::unexpected(lost_choice());
  }
  if (!checked) return complete(run, Completion::Reason::error, std::move(checked.error()));
  slot.begin(run);
}

void NpuEngine::on_tokens_tested(const Result<void>& outcome) {
  const std::lock_guard lock(mutex_);
  if (has_failed_test_) return;
  if (outcome) {
    if (!no_tokens_.empty()) log_info("answers can be held to a grammar token by token");
    no_tokens_.clear();
    return;
  }
  has_failed_test_ = true;
  no_tokens_ = outcome.error().message;
  // Without the file, or with an old runtime, nothing was expected.
  if (outcome.error().code == kNotFound || outcome.error().code == kMethodNotFound) return;
  log_warning("answers cannot be held to a grammar token by token",
              {{"why", std::string_view(no_tokens_)}});
}

Result<void> NpuEngine::check_new_file(const RunPtr& run) const {
  const std::string& path = run->params.prompt_cache_path;
  if (path.empty() || run->admitted) return {};  // the model may be asked again
  std::error_code error;
  const bool is_there =
      std::filesystem::symlink_status(path, error).type() != std::filesystem::file_type::not_found;
  const bool is_taken = is_there || std::ranges::any_of(open_, [&](const RunPtr& other) {
                          return other->admitted && other->phase != RkllmRun::Phase::done &&
                                 other->params.prompt_cache_path == path;
                        });
  if (!is_taken) return {};
  return fail(kInvalidParams,
              "Invalid params: prompt_cache_path must name a new file, and since this run began to "
              "wait another one has saved its prompt there");
}

void NpuEngine::tell_state() {
  std::string trouble;
  bool has_model = false;
  bool has_failed = false;
  for (const auto& slot : slots_) {
    has_model |= slot->has_model();
    has_failed |= !slot->trouble().empty();
    if (!slot->trouble().empty()) trouble = slot->trouble();
  }
  if (has_model) had_model_ = true;
  const std::string not_ready = has_model         ? std::string()
                                : trouble.empty() ? "loading the model"
                                                  : "The model is not there: " + trouble;
  if (!has_model) assets_.abandon(Error(kBusy, not_ready));
  const std::lock_guard lock(mutex_);
  not_ready_ = not_ready;
  has_failed_ = has_failed && !had_model_;
  changed_.notify_all();
}

void NpuEngine::cancel(const RunPtr& run) {
  if (run->delivery.done()) return;
  ++cancelled_;
  queue_.take_if([&run](const RunPtr& each) { return each == run; }, [](const RunPtr&) {});
  for (const auto& slot : slots_) slot->drop(run);
  complete(run, Completion::Reason::cancelled);
  pump();
}

void NpuEngine::resume(const RunPtr& run) {
  run->delivery.poll();
  settle(run);
}

void NpuEngine::on_run_over(const RunPtr& run, Completion::Reason reason,
                            std::optional<Error> error) {
  const bool is_whole = reason == Completion::Reason::stop;
  std::vector<Delta> rest;
  const AnswerReader::Ending ending = run->reader->finish(is_whole, rest);
  for (Delta& each : rest) run->take(std::move(each));
  if (run->check && !error) return check_answer(run, reason);
  if (run->params.mode != InferMode::generate && !error) {
    Result<Delta> yielded = take_yield(*run);
    if (!yielded) return complete(run, Completion::Reason::error, std::move(yielded.error()));
    run->delivery.deliver(*std::move(yielded));
  }
  if (ending == AnswerReader::Ending::cut_call && !error) {
    reason = Completion::Reason::error;
    error = cut_call_at_limit(run->max_tokens);
  }
  if (is_whole && ending == AnswerReader::Ending::calls) reason = Completion::Reason::tool_calls;
  complete(run, reason, std::move(error));
}

void NpuEngine::check_answer(const RunPtr& run, Completion::Reason reason) {
  home_->prepare([this, run, reason] {
    home_->post([run, reason, fault = run->check->fault()](NpuEngine& self) {
      self.on_checked(run, reason, fault);
    });
  });
}

void NpuEngine::on_checked(const RunPtr& run, Completion::Reason reason,
                           const std::optional<std::string>& fault) {
  if (run->phase == RkllmRun::Phase::done) return;  // it was cancelled meanwhile
  AnswerCheck& check = *run->check;
  if (!fault) {
    run->delivery.deliver({.kind = Delta::Kind::text, .text = std::string(check.json())});
    return complete(run, reason);
  }
  // Another answer would end at the same limit.
  if (reason == Completion::Reason::stop && check.has_tries()) {
    check.ask_again(run->request, *fault);
    return prepare_run(run);
  }
  const std::string why = reason == Completion::Reason::length
                              ? "The answer reached max_tokens before it followed json_schema: "
                              : "The answer does not follow json_schema, also after the model was "
                                "asked again " +
                                    std::to_string(AnswerCheck::kMoreTries) + " times: ";
  complete(run, Completion::Reason::error, Error(kInternalError, why + *fault));
}

void NpuEngine::complete(const RunPtr& run, Completion::Reason reason, std::optional<Error> error) {
  const TimePoint now = home_->loop().clock().now();
  Completion completion;
  completion.reason = reason;
  completion.error = std::move(error);
  completion.usage.completion_tokens = run->completion_tokens;
  completion.usage.prompt_tokens = run->prompt_tokens;
  completion.usage.cached_tokens = run->cached_tokens;
  const TimePoint admitted = run->admitted.value_or(now);
  completion.timings.queue = between(run->started, admitted);
  if (run->first_token) {
    completion.timings.prefill = between(admitted, *run->first_token);
    completion.timings.decode = between(*run->first_token, run->last_token);
  }
  // The runtime knows better what it has taken.
  const auto correct = [](Micros& time, float milliseconds) {
    if (milliseconds > 0) time = Micros(static_cast<std::int64_t>(milliseconds * 1000));
  };
  correct(completion.timings.prefill, run->prefill_ms);
  correct(completion.timings.decode, run->decode_ms);
  prompt_tokens_ += completion.usage.prompt_tokens;
  cached_tokens_ += completion.usage.cached_tokens;
  completion_tokens_ += completion.usage.completion_tokens;
  run->phase = RkllmRun::Phase::done;
  run->delivery.complete(std::move(completion), reason == Completion::Reason::cancelled);
  settle(run);
}

void NpuEngine::settle(const RunPtr& run) {
  if (!run->delivery.done()) return;
  run->share = nullptr;
  open_.erase(run);
}

void NpuEngine::leave_loop() {
  std::call_once(has_left_, [this] {
    home_->leave([this] {
      is_over_ = true;
      slots_.clear();
      assets_.abandon(Error(kBusy, "The engine has ended"));
      for (const RunPtr& run : std::set(open_)) complete(run, Completion::Reason::cancelled);
    });
    const std::lock_guard lock(mutex_);
    not_ready_ = "The engine has ended";
    has_failed_ = true;
    had_model_ = false;
    changed_.notify_all();
  });
}

void NpuEngine::shutdown() {
  leave_loop();
  std::call_once(has_ended_, [this] { home_->end(); });
}

/// Paths go to the workers in messages, which are UTF-8. Error 422.
Result<void> check_worker_path(std::string_view what, const std::string& path) {
  if (is_valid_utf8(path)) return {};
  return fail(kUnprocessableContent, std::string(what) + " has a path that is not UTF-8: " +
                                         valid_utf8(path) + "; move it, or link to it");
}

}  // namespace

Result<std::unique_ptr<RkllmEngine>> make_rkllm_engine(RkllmOptions options) {
  std::error_code error;
  if (!std::filesystem::exists(options.model_path, error)) {
    return fail(kNotFound, "There is no " + options.model_path);
  }
  if (auto checked = check_worker_path("The model", options.model_path); !checked) {
    return std::unexpected(std::move(checked.error()));
  }
  options.slots = std::clamp(options.slots, std::uint32_t{1}, kMaxSlots);
  Result<LibraryFacts> library = find_runtime(options.library_path, options.abi);
  if (!library) return std::unexpected(std::move(library.error()));
  if (auto checked = check_worker_path("The runtime", library->path); !checked) {
    return std::unexpected(std::move(checked.error()));
  }
  if (options.cross_attention && library->abi != nullptr && !library->abi->has_function_tools) {
    return fail(kUnprocessableContent, "Version " + std::string(library->abi->versions) +
                                           " of the runtime has no cross attention");
  }
  std::optional<PromptCacheFolder> folder;
  if (!options.prompt_cache_dir.empty()) {
    auto opened = PromptCacheFolder::open(options.prompt_cache_dir, options.prompt_cache_limits);
    if (!opened) return std::unexpected(std::move(opened.error()));
    folder.emplace(*std::move(opened));
  }
  return std::make_unique<NpuEngine>(std::move(options), *std::move(library), std::move(folder));
}

}  // namespace sluice::rkllm
