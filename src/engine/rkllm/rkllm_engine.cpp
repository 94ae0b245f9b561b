#include "engine/rkllm/rkllm_engine.hpp"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <filesystem>
#include <mutex>
#include <set>
#include <string_view>
#include <system_error>
#include <utility>

#include "engine/rkllm/chat_text.hpp"
#include "engine/rkllm/rkllm_run.hpp"
#include "engine/rkllm/rkllm_slot.hpp"
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

/// Whether the sampling is what a request has that names nothing.
bool is_usual(const SamplingParams& given) {
  const SamplingParams usual;
  return !given.temperature && !given.seed && given.top_k == usual.top_k &&
         given.top_p == usual.top_p && given.min_p == usual.min_p &&
         given.repeat_penalty == usual.repeat_penalty &&
         given.frequency_penalty == usual.frequency_penalty &&
         given.presence_penalty == usual.presence_penalty &&
         given.penalty_last_n == usual.penalty_last_n;
}

/// What a run takes of a request's sampling, where it has its own. What the request does not name
/// stays as the runtime has it.
Sampling sampling_of(const SamplingParams& given) {
  const SamplingParams usual;
  Sampling out{.temperature = given.temperature};
  if (given.top_k != usual.top_k) out.top_k = given.top_k;
  if (given.top_p != usual.top_p) out.top_p = given.top_p;
  if (given.repeat_penalty != usual.repeat_penalty) out.repeat_penalty = given.repeat_penalty;
  if (given.frequency_penalty != usual.frequency_penalty) {
    out.frequency_penalty = given.frequency_penalty;
  }
  if (given.presence_penalty != usual.presence_penalty) {
    out.presence_penalty = given.presence_penalty;
  }
  return out;
}

class NpuEngine;

/// What an engine shares with the handles of its generations.
struct Home {
  LoopPool loops{1};
  EventLoop& loop() { return loops.loop(0); }
  std::atomic<NpuEngine*> engine = nullptr;  // null: it has ended
};

class NpuEngine final : public RkllmEngine, private RkllmSlot::Owner {
 public:
  NpuEngine(RkllmOptions options, LibraryFacts library)
      : options_(std::move(options)),
        library_(std::move(library)),
        shares_(std::make_shared<QueueShares>(options_.max_queue + options_.slots, options_.slots)),
        home_(std::make_shared<Home>()) {
    home_->engine = this;
    for (std::uint32_t i = 0; i < options_.slots; ++i) {
      slots_.push_back(std::make_unique<RkllmSlot>(home_->loop(), options_, library_, i,
                                                   static_cast<RkllmSlot::Owner&>(*this)));
    }
    home_->loops.start();
    home_->loop().post([this] {
      for (const auto& slot : slots_) slot->start();
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
            .slots = options_.slots};
  }
  [[nodiscard]] EngineStats stats() const override {
    return {.slots_busy = busy_,
            .requests_queued = queued_,
            .requests = requests_,
            .cancelled = cancelled_,
            .prompt_tokens = prompt_tokens_,
            .cached_tokens = 0,
            .completion_tokens = completion_tokens_};
  }
  void shutdown() override;
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
  [[nodiscard]] Result<void> check(const GenerationRequest& request) const;
  void admit(RunPtr run);
  void pump();
  void on_slot_changed() override { pump(); }
  void on_run_over(const RunPtr& run, Completion::Reason reason,
                   std::optional<Error> error) override;
  void complete(const RunPtr& run, Completion::Reason reason, std::optional<Error> error = {});
  /// Lets go of a run whose sink has heard everything.
  void settle(const RunPtr& run);
  void tell_state();

  const RkllmOptions options_;
  const LibraryFacts library_;
  const std::shared_ptr<QueueShares> shares_;
  const std::shared_ptr<Home> home_;
  std::vector<std::unique_ptr<RkllmSlot>> slots_;
  AdmissionQueue<RunPtr> queue_;
  std::set<RunPtr> open_;  // those whose sinks have not heard everything
  std::uint64_t arrivals_ = 0;
  bool is_over_ = false;

  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  std::string not_ready_ = "loading the model";
  bool has_failed_ = false;              // before any model was there
  std::atomic<bool> had_model_ = false;  // requests may wait for the next one
  std::once_flag ended_;

  std::atomic<std::uint32_t> busy_ = 0;
  std::atomic<std::uint32_t> queued_ = 0;
  std::atomic<std::uint64_t> requests_ = 0;
  std::atomic<std::uint64_t> cancelled_ = 0;
  std::atomic<std::uint64_t> prompt_tokens_ = 0;
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
    home_->loop().post([home = home_.get(), run = run_, what] {
      if (NpuEngine* const engine = home->engine) (engine->*what)(run);
    });
  }

  std::shared_ptr<Home> home_;
  RunPtr run_;
};

Result<void> NpuEngine::check(const GenerationRequest& request) const {
  const auto refuse = [](std::string why) { return fail(kInvalidParams, std::move(why)); };
  if (request.messages.empty() == request.prompt.empty()) {
    return refuse("Give either messages or a prompt");
  }
  if (!request.json_schema.empty() || !request.grammar.empty()) {
    return refuse("This engine does not constrain answers; leave json_schema and grammar out");
  }
  if (!request.tools.empty()) return refuse("This engine offers a model no tools yet");
  const bool has_images = std::ranges::any_of(
      request.messages, [](const ChatMessage& each) { return !each.images.empty(); });
  if (has_images) return refuse("This engine takes no images yet");
  if (request.max_tokens && *request.max_tokens < 1) return refuse("max_tokens must be at least 1");
  const bool has_own_sampling = library_.abi != nullptr && library_.abi->has_sampling_of_run;
  if (!has_own_sampling && !is_usual(request.sampling)) {
    return refuse(
        "This runtime samples as it was set at its start; of single requests only "
        "max_tokens and stop can be given (since runtime 1.3.0 more)");
  }
  return {};
}

Result<std::unique_ptr<Generation>> NpuEngine::start(GenerationRequest request,
                                                     std::shared_ptr<GenerationSink> sink,
                                                     Executor& /*home*/) {
  if (const Result<void> checked = check(request); !checked) {
    return std::unexpected(checked.error());
  }
  if (!had_model_) return fail(kBusy, not_ready());
  auto share = shares_->take(request.principal);
  if (!share) return std::unexpected(std::move(share.error()));
  const auto run = std::make_shared<RkllmRun>(
      std::move(sink), AnswerReader::Options{.stops = std::move(request.stop)});
  run->share = *std::move(share);
  run->started = home_->loop().clock().now();
  run->max_tokens = static_cast<std::uint32_t>(request.max_tokens.value_or(0));
  run->input = {
      .role = "user",
      .input = request.messages.empty() ? std::move(request.prompt) : chat_text(request.messages)};
  if (library_.abi != nullptr && library_.abi->has_sampling_of_run) {
    run->params.sampling = sampling_of(request.sampling);
    run->params.max_new_tokens = request.max_tokens;
  }
  run->place = {.client = request.principal, .priority = request.priority};
  ++requests_;
  home_->loop().post([this, run] { admit(run); });
  return std::make_unique<NpuGeneration>(home_, run);
}

void NpuEngine::admit(RunPtr run) {
  if (is_over_ || run->is_cancelled) return complete(run, Completion::Reason::cancelled);
  open_.insert(run);
  run->place.arrival = ++arrivals_;
  queue_.push(run->place, run);
  pump();
}

void NpuEngine::pump() {
  if (is_over_) return;
  for (const auto& slot : slots_) {
    if (queue_.empty()) break;
    if (slot->is_idle()) slot->begin(queue_.pop());
  }
  queue_.visit([](const RunPtr& run, std::uint32_t position) { run->queue_position = position; });
  queued_ = static_cast<std::uint32_t>(queue_.size());
  busy_ = static_cast<std::uint32_t>(
      std::ranges::count_if(slots_, [](const auto& slot) { return slot->is_busy(); }));
  tell_state();
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
  const std::lock_guard lock(mutex_);
  not_ready_ = has_model         ? std::string()
               : trouble.empty() ? "loading the model"
                                 : "The model is not there: " + trouble;
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
  const AnswerReader::Ending ending = run->reader.finish(is_whole, rest);
  for (Delta& each : rest) run->delivery.deliver(std::move(each));
  if (is_whole && ending == AnswerReader::Ending::calls) reason = Completion::Reason::tool_calls;
  complete(run, reason, std::move(error));
}

void NpuEngine::complete(const RunPtr& run, Completion::Reason reason, std::optional<Error> error) {
  const TimePoint now = home_->loop().clock().now();
  Completion completion;
  completion.reason = reason;
  completion.error = std::move(error);
  completion.usage.completion_tokens = run->completion_tokens;
  if (run->figures) {
    completion.usage.prompt_tokens =
        static_cast<std::uint32_t>(std::max(0, run->figures->prefill_tokens));
  }
  const TimePoint admitted = run->admitted.value_or(now);
  completion.timings.queue = between(run->started, admitted);
  if (run->first_token) {
    completion.timings.prefill = between(admitted, *run->first_token);
    completion.timings.decode = between(*run->first_token, run->last_token);
  }
  prompt_tokens_ += completion.usage.prompt_tokens;
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

void NpuEngine::shutdown() {
  std::call_once(ended_, [this] {
    home_->loop().post([this] {
      is_over_ = true;
      slots_.clear();
      for (const RunPtr& run : std::set(open_)) complete(run, Completion::Reason::cancelled);
      home_->engine = nullptr;
      home_->loop().stop();
    });
    home_->loops.stop();
    home_->loops.discard_tasks();
    const std::lock_guard lock(mutex_);
    not_ready_ = "The engine has ended";
    has_failed_ = true;
    changed_.notify_all();
  });
}

}  // namespace

Result<std::unique_ptr<RkllmEngine>> make_rkllm_engine(RkllmOptions options) {
  std::error_code error;
  if (!std::filesystem::exists(options.model_path, error)) {
    return fail(kNotFound, "There is no " + options.model_path);
  }
  options.slots = std::clamp(options.slots, std::uint32_t{1}, kMaxSlots);
  Result<LibraryFacts> library = find_runtime(options.library_path, options.abi);
  if (!library) return std::unexpected(std::move(library.error()));
  return std::make_unique<NpuEngine>(std::move(options), *std::move(library));
}

}  // namespace sluice::rkllm
