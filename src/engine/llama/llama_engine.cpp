#include "engine/llama/llama_engine.hpp"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <optional>
#include <pthread.h>
#include <thread>
#include <utility>

#include "core/log/log.hpp"
#include "core/sharing/client.hpp"
#include "engine/llama/llama_model.hpp"
#include "engine/llama/llama_run.hpp"
#include "engine/llama/model/llama_log.hpp"
#include "engine/llama/preparation.hpp"
#include "engine/llama/request_preparer.hpp"
#include "engine/llama/scheduler.hpp"
#include "engine/queue_shares.hpp"
#include "json/json.hpp"
#include "rpc/error_codes.hpp"

namespace sluice {
namespace {

constexpr const char* kShuttingDown = "the engine is shutting down";

/// Passes new runs, adapters to load and wake-ups to the engine's thread.
class Mailbox {
 public:
  struct Loading {
    LoadLora wanted;
    ChangeDone then;
  };
  void put(Loading loading) {
    {
      const std::lock_guard lock(mutex_);
      loadings_.push_back(std::move(loading));
    }
    changed_.notify_one();
  }
  std::deque<Loading> take_loadings() {
    const std::lock_guard lock(mutex_);
    return std::exchange(loadings_, {});
  }
  void put(RunPtr run) {
    {
      const std::lock_guard lock(mutex_);
      arrived_.push_back(std::move(run));
    }
    changed_.notify_one();
  }
  void wake() {
    {
      const std::lock_guard lock(mutex_);
      woken_ = true;
    }
    changed_.notify_one();
  }
  std::deque<RunPtr> take() {
    const std::lock_guard lock(mutex_);
    woken_ = false;
    return std::exchange(arrived_, {});
  }
  void wait(std::optional<TimePoint> until) {
    std::unique_lock lock(mutex_);
    const auto changed = [this] { return woken_ || !arrived_.empty() || !loadings_.empty(); };
    if (until) {
      changed_.wait_until(lock, *until, changed);
    } else {
      changed_.wait(lock, changed);
    }
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Loading> loadings_;  // bounded by the calls that clients may have open
  std::deque<RunPtr> arrived_;    // bounded, because the engine limits the open runs
  bool woken_ = false;
};

class Handle final : public Generation {
 public:
  Handle(RunPtr run, std::shared_ptr<Mailbox> mailbox, std::weak_ptr<Preparation> preparation)
      : run_(std::move(run)), mailbox_(std::move(mailbox)), preparation_(std::move(preparation)) {}
  ~Handle() override { Handle::cancel(); }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;

  void cancel() override {
    if (run_->cancelled.exchange(true)) return;
    if (run_->phase == LlamaRun::Phase::queued) {
      if (const auto preparation = preparation_.lock()) preparation->release_cancelled();
    }
    mailbox_->wake();
  }
  void resume() override {
    run_->delivery.resume();
    mailbox_->wake();
  }
  /// The tokens that a run of the same engine and principal may go on from; null if it may not.
  [[nodiscard]] TokenSequence sequence(const Mailbox& mailbox, std::string_view principal) const {
    const bool is_known = mailbox_.get() == &mailbox && run_->principal == principal;
    return is_known && keeps_sequence() ? run_->sequence : nullptr;
  }
  [[nodiscard]] bool keeps_sequence() const override {
    return run_->phase == LlamaRun::Phase::done && run_->sequence != nullptr;
  }
  [[nodiscard]] GenerationStatus status() const override {
    return {.phase = run_->phase,
            .queue_position = run_->queue_position,
            .prefill_done = run_->prefill_done,
            .prefill_total = run_->prefill_total,
            .completion_tokens = run_->completion_tokens};
  }

 private:
  const RunPtr run_;
  const std::shared_ptr<Mailbox> mailbox_;
  const std::weak_ptr<Preparation> preparation_;
};

/// Of an engine that has left: nobody hears of it any more.
class Unanswered final : public Generation {
 public:
  void cancel() override {}
  void resume() override {}
  [[nodiscard]] GenerationStatus status() const override { return {}; }
};

class Llama final : public LlamaEngine {
 public:
  explicit Llama(LlamaOptions options) : options_(std::move(options)), thread_([this] { run(); }) {}
  ~Llama() override { Llama::shutdown(); }
  Llama(const Llama&) = delete;
  Llama& operator=(const Llama&) = delete;

  Result<std::unique_ptr<Generation>> start(GenerationRequest request,
                                            std::shared_ptr<GenerationSink> sink,
                                            Executor& /*home*/) override {
    auto started = begin(std::move(request), std::move(sink));
    if (!started && leaving_) return std::make_unique<Unanswered>();
    return started;
  }

  void change(ModelChange change, ChangeDone then) override {
    LoadLora* const wanted = std::get_if<LoadLora>(&change);
    if (wanted == nullptr) return Engine::change(std::move(change), std::move(then));
    if (const auto ready = ready_preparer(); !ready) return then(std::unexpected(ready.error()));
    mailbox_->put({.wanted = std::move(*wanted), .then = std::move(then)});
  }

  [[nodiscard]] EngineInfo info() const override {
    const std::lock_guard lock(state_mutex_);
    return info_;
  }

  [[nodiscard]] EngineStats stats() const override {
    return {.slots_busy = stats_.slots_busy,
            .requests_queued = preparing_ + stats_.queued,
            .requests = requests_,
            .cancelled = stats_.cancelled,
            .prompt_tokens = stats_.prompt_tokens,
            .cached_tokens = stats_.cached_tokens,
            .completion_tokens = stats_.completion_tokens};
  }

  [[nodiscard]] ModelState model_state() const override {
    const std::lock_guard lock(state_mutex_);
    return state_;
  }

  [[nodiscard]] ModelState wait_until_loaded(Duration at_most) const override {
    std::unique_lock lock(state_mutex_);
    state_changed_.wait_for(lock, at_most,
                            [this] { return state_.phase != ModelState::Phase::loading; });
    return state_;
  }

  void shutdown() override {
    stopping_ = true;
    mailbox_->wake();
    const std::lock_guard lock(join_mutex_);
    if (thread_.joinable()) thread_.join();
  }

  void leave() override {
    leaving_ = true;
    shutdown();
  }

 private:
  Result<std::unique_ptr<Generation>> begin(GenerationRequest request,
                                            std::shared_ptr<GenerationSink> sink) {
    const auto preparer = ready_preparer();
    if (!preparer) return std::unexpected(preparer.error());
    if (auto checked = (*preparer)->check(request); !checked) {
      return std::unexpected(std::move(checked).error());
    }
    const LoraAdapter* const adapter =
        request.lora_adapter.empty() ? nullptr : adapters_.find(request.lora_adapter);
    if (adapter == nullptr && !request.lora_adapter.empty())
      return fail(kInvalidParams, kNoSuchAdapter);
    auto run = std::make_shared<LlamaRun>(std::move(sink));
    run->adapter = adapter;
    run->started = SteadyClock().now();
    run->principal = request.principal;
    run->keeps_sequence = request.keeps_sequence;
    if (const auto* const earlier = dynamic_cast<const Handle*>(request.continues.get())) {
      run->continued = earlier->sequence(*mailbox_, request.principal);
    }
    request.continues.reset();
    run->place = {.client = client_of(request.principal),
                  .priority = request.priority,
                  .arrival = ++arrivals_};
    auto share = shares_->take(run->place.client);
    if (!share) return std::unexpected(std::move(share).error());
    run->share = std::move(*share);
    const auto& preparation = (*preparer)->is_quick(request) ? quick_preparation_ : preparation_;
    run->request = std::move(request);
    ++preparing_;
    if (!preparation->put(run)) {
      --preparing_;
      return fail(kBusy, kShuttingDown);
    }
    ++requests_;
    return std::make_unique<Handle>(std::move(run), mailbox_, preparation);
  }

  /// The preparer if the model is ready, otherwise the error to return to the caller.
  Result<const RequestPreparer*> ready_preparer() const {
    const std::lock_guard lock(state_mutex_);
    if (stopping_) return fail(kBusy, kShuttingDown);
    switch (state_.phase) {
      case ModelState::Phase::ready:
        return preparer_.get();
      case ModelState::Phase::failed:
        return fail(kBusy, "the model could not be loaded; see the server's log");
      case ModelState::Phase::loading:
        break;
    }
    std::string message = "the model is still loading (";
    append_number(message, static_cast<int>(state_.progress * 100));
    return fail(kBusy, message + " %); try again later");
  }

  void set_state(ModelState state) {
    {
      const std::lock_guard lock(state_mutex_);
      state_ = state;
    }
    state_changed_.notify_all();
    if (options_.on_model_state) options_.on_model_state(state);
  }

  bool on_progress(float progress) {
    const int percent = static_cast<int>(progress * 100);
    if (percent != last_percent_) {
      last_percent_ = percent;
      set_state({.phase = ModelState::Phase::loading,
                 .progress = progress,
                 .fault = ModelFault::none,
                 .message = "loading the model"});
    }
    return !stopping_;
  }

  /// The main function of the engine's thread.
  void run() {
    pthread_setname_np(pthread_self(), "sluice-llama");
    auto loaded = load_model(options_, [this](float progress) { return on_progress(progress); });
    if (!loaded) {
      set_state({.phase = ModelState::Phase::failed,
                 .fault = static_cast<ModelFault>(loaded.error().code),
                 .message = loaded.error().message});
      return;
    }
    shares_ = std::make_shared<QueueShares>(options_.max_queue + loaded->slots,
                                            std::min(options_.max_queue, 1U) + loaded->slots);
    try {
      const LlamaGuard guard;
      const std::lock_guard lock(state_mutex_);
      model_ = std::move(*loaded);
      preparer_ = std::make_unique<RequestPreparer>(model_.model.get(), model_.context_tokens,
                                                    options_.chat_template);
      const auto prepared = [this](RunPtr run) {
        mailbox_->put(std::move(run));
        --preparing_;
      };
      quick_preparation_ = std::make_shared<Preparation>(*preparer_, prepared);
      preparation_ = std::make_shared<Preparation>(*preparer_, prepared);
      info_ = {.engine = "llama",
               .model = model_.name,
               .parameters = llama_model_n_params(model_.model.get()),
               .context_tokens = model_.context_tokens,
               .slots = model_.slots,
               .alternates = preparer_->alternates(),
               .loads_adapters = true};
    } catch (const std::exception& error) {
      set_state({.phase = ModelState::Phase::failed,
                 .fault = ModelFault::corrupt,
                 .message = options_.model_path + ": the model cannot be used: " + error.what()});
      return;
    }
    set_state({.phase = ModelState::Phase::ready, .progress = 1, .message = "ready"});
    serve();
  }

  void serve() {
    Scheduler scheduler(model_,
                        {.grace = options_.pause_grace, .share_prefixes = options_.share_prefixes},
                        stats_, stopping_);
    for (;;) {
      for (RunPtr& run : mailbox_->take()) scheduler.add(std::move(run));
      // Checked after take(), which clears the wake-up that shutdown() sent.
      if (stopping_) break;
      for (Mailbox::Loading& each : mailbox_->take_loadings()) {
        each.then(adapters_.load(*model_.model, each.wanted));
      }
      if (!scheduler.turn()) mailbox_->wait(scheduler.next_deadline());
    }
    quick_preparation_->stop();
    preparation_->stop();
    for (Mailbox::Loading& each : mailbox_->take_loadings()) each.then(fail(kBusy, kShuttingDown));
    if (leaving_) return;
    for (RunPtr& run : mailbox_->take()) scheduler.add(std::move(run));
    scheduler.cancel_all();
  }

  const LlamaOptions options_;
  const std::shared_ptr<Mailbox> mailbox_ = std::make_shared<Mailbox>();
  SchedulerStats stats_;
  std::atomic<bool> stopping_ = false;
  std::atomic<bool> leaving_ = false;
  std::atomic<std::uint64_t> arrivals_ = 0;
  std::atomic<std::uint64_t> requests_ = 0;
  std::atomic<std::uint32_t> preparing_ = 0;  // runs that the scheduler does not know yet
  int last_percent_ = -1;

  mutable std::mutex
      state_mutex_;  // guards the state and the info, and makes the members below visible
  mutable std::condition_variable state_changed_;
  ModelState state_;
  EngineInfo info_{.engine = "llama", .model = "", .loads_adapters = true};
  LoadedModel model_;
  LoraAdapters adapters_;
  std::unique_ptr<RequestPreparer> preparer_;
  std::shared_ptr<QueueShares> shares_;
  std::shared_ptr<Preparation> quick_preparation_;
  std::shared_ptr<Preparation> preparation_;

  std::mutex join_mutex_;
  std::thread thread_;  // last, because it uses all of the above
};

}  // namespace

std::string_view to_string(ModelState::Phase phase) {
  switch (phase) {
    case ModelState::Phase::loading:
      return "loading";
    case ModelState::Phase::ready:
      return "ready";
    case ModelState::Phase::failed:
      return "failed";
  }
  return "failed";
}

std::unique_ptr<LlamaEngine> make_llama_engine(LlamaOptions options) {
  return std::make_unique<Llama>(std::move(options));
}

}  // namespace sluice
