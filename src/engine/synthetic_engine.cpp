#include "engine/synthetic_engine.hpp"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <unordered_set>
#include <utility>

#include "json/json.hpp"
#include "rpc/error_codes.hpp"

namespace sluice {
namespace {

Result<std::int64_t> in_range(std::optional<std::int64_t> value, std::int64_t absent,
                              std::int64_t low, std::int64_t high, std::string_view name) {
  const std::int64_t given = value.value_or(absent);
  if (given >= low && given <= high) return given;
  std::string message(name);
  message += " must be from ";
  append_number(message, low);
  message += " to ";
  append_number(message, high);
  return fail(kInvalidParams, std::move(message));
}

}  // namespace

/// State that all runs share: the set of active runs and the counters.
struct SyntheticEngine::Registry {
  explicit Registry(std::uint32_t max) : max_generations(max) {}

  const std::uint32_t max_generations;
  std::mutex mutex;  // guards `runs`, `closed` and `chunks`
  std::unordered_set<std::shared_ptr<Run>> runs;
  bool closed = false;
  std::uint64_t chunks = 0;  // of runs that have ended
  std::atomic<std::uint64_t> requests = 0;
  std::atomic<std::uint64_t> cancelled = 0;
};

namespace {

/// A mutex that takes only one byte.
class SmallMutex {
 public:
  void lock() {
    while (locked_.test_and_set(std::memory_order_acquire)) locked_.wait(true);
  }
  void unlock() {
    locked_.clear(std::memory_order_release);
    locked_.notify_one();
  }

 private:
  std::atomic_flag locked_;
};

}  // namespace

/// One generation. Steps run on the home loop; `mutex_` is contended only by shutdown().
class SyntheticEngine::Run : public std::enable_shared_from_this<Run> {
 public:
  Run(std::shared_ptr<Registry> registry, std::shared_ptr<GenerationSink> sink, Executor& home,
      std::int64_t count, std::int64_t interval_us)
      : registry_(std::move(registry)),
        home_(home),
        count_(count),
        interval_us_(interval_us),
        queued_at_(home.clock().now()),
        sink_(std::move(sink)) {}

  // These are thread-safe.
  void cancel() {
    if (!cancelled_.exchange(true)) post_step();
  }
  void resume() {
    resumed_ = true;
    post_step();
  }
  void post_step() {
    if (done_) return;
    home_.post([self = shared_from_this()] { self->step(); });
  }
  [[nodiscard]] GenerationStatus status() const {
    using Phase = GenerationStatus::Phase;
    const std::int64_t made = made_.load(std::memory_order_relaxed);
    return {.phase = done_ ? Phase::done : Phase::decode,
            .completion_tokens = static_cast<std::uint32_t>(made)};
  }

  /// Ends the run on the caller's thread.
  void stop() {
    const std::lock_guard lock(mutex_);
    finish(Completion::Reason::cancelled);
  }

 private:
  void step() {
    const std::lock_guard lock(mutex_);
    if (done_) return;
    if (timer_ != 0) home_.cancel(std::exchange(timer_, 0));
    if (cancelled_) {
      finish(Completion::Reason::cancelled);
      return;
    }
    if (paused_ && !resumed_.exchange(false)) return;
    paused_ = false;

    TimePoint now = home_.clock().now();
    if (!started_) {
      started_ = true;
      started_at_ = now;
    }
    const Duration interval = std::chrono::microseconds(std::max<std::int64_t>(interval_us_, 0));
    const int max_batch = interval_us_ < 0 ? kMaxFlushedBatch : kMaxBatch;
    std::int64_t n = made_.load(std::memory_order_relaxed);
    for (int batch = 0; n < count_; ++batch) {
      const TimePoint due = started_at_ + n * interval;
      if (due > now) {
        timer_ = home_.schedule_at(due, [self = shared_from_this()] {
          self->timer_ = 0;
          self->step();
        });
        return;
      }
      if (batch == max_batch) {
        post_step();
        return;
      }
      resumed_.store(false, std::memory_order_relaxed);
      // Late chunks are flushed together.
      const bool next_is_due = interval > Duration::zero() && due + interval <= now;
      const bool flush = interval_us_ != 0 && !next_is_due;
      const bool more =
          sink_->on_delta({.kind = Delta::Kind::text, .text = chunk(n, now), .flush = flush});
      made_.store(++n, std::memory_order_relaxed);
      if (cancelled_.load(std::memory_order_relaxed))
        return;  // cancel() has posted a step, which ends the run
      if (!more && n < count_ && !resumed_.exchange(false)) {
        paused_ = true;
        return;
      }
      now = home_.clock().now();
    }
    finish(Completion::Reason::stop);
  }

  static std::string chunk(std::int64_t n, TimePoint now) {
    std::string text;
    text.reserve(48);
    text += R"({"n":)";
    append_number(text, n);
    text += R"(,"t_ns":)";
    append_number(text, now.time_since_epoch().count());
    text += "}\n";
    return text;
  }

  void finish(Completion::Reason reason) {
    if (done_) return;
    done_ = true;
    const auto sink = std::move(sink_);
    Completion completion;
    completion.reason = reason;
    completion.usage.completion_tokens = static_cast<std::uint32_t>(made_.load());
    if (started_) {
      using std::chrono::duration_cast;
      using std::chrono::microseconds;
      completion.timings.queue = duration_cast<microseconds>(started_at_ - queued_at_);
      completion.timings.decode = duration_cast<microseconds>(home_.clock().now() - started_at_);
    }
    if (reason == Completion::Reason::cancelled) ++registry_->cancelled;
    {
      const std::lock_guard lock(registry_->mutex);
      registry_->chunks += status().completion_tokens;
      registry_->runs.erase(shared_from_this());
    }
    sink->on_complete(std::move(completion));
  }

  const std::shared_ptr<Registry> registry_;
  Executor& home_;
  const std::int64_t count_;
  const std::int64_t interval_us_;
  const TimePoint queued_at_;

  std::shared_ptr<GenerationSink> sink_;
  TimePoint started_at_{};
  Executor::TimerId timer_ = 0;
  SmallMutex mutex_;  // held during calls to the sink; guards the members without atomics
  bool started_ = false;
  bool paused_ = false;

  std::atomic<std::int64_t> made_ = 0;
  std::atomic<bool> cancelled_ = false;
  std::atomic<bool> resumed_ = false;  // since the last delta was passed to the sink
  std::atomic<bool> done_ = false;
};

class SyntheticEngine::Handle final : public Generation {
 public:
  explicit Handle(std::shared_ptr<Run> run) : run_(std::move(run)) {}
  ~Handle() override { run_->cancel(); }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  void cancel() override { run_->cancel(); }
  void resume() override { run_->resume(); }
  [[nodiscard]] GenerationStatus status() const override { return run_->status(); }

 private:
  const std::shared_ptr<Run> run_;
};

SyntheticEngine::SyntheticEngine(std::uint32_t max_generations)
    : registry_(std::make_shared<Registry>(max_generations)) {}

SyntheticEngine::~SyntheticEngine() {
  shutdown();
}

Result<std::unique_ptr<Generation>> SyntheticEngine::start(GenerationRequest request,
                                                           std::shared_ptr<GenerationSink> sink,
                                                           Executor& home) {
  const auto count = in_range(request.count, kDefaultCount, 0, kMaxCount, "count");
  if (!count) return std::unexpected(count.error());
  const auto interval =
      in_range(request.interval_us, kDefaultIntervalUs, -1, kMaxIntervalUs, "interval_us");
  if (!interval) return std::unexpected(interval.error());

  auto run = std::make_shared<Run>(registry_, std::move(sink), home, *count, *interval);
  {
    const std::lock_guard lock(registry_->mutex);
    if (registry_->closed) return fail(kBusy, "the engine is shutting down");
    if (registry_->runs.size() >= registry_->max_generations) {
      return fail(kBusy, "too many generations are running; try again later");
    }
    registry_->runs.insert(run);
  }
  ++registry_->requests;
  run->post_step();
  return std::make_unique<Handle>(std::move(run));
}

EngineInfo SyntheticEngine::info() const {
  return {.engine = "synthetic",
          .model = "numbered chunks for load tests",
          .slots = registry_->max_generations};
}

EngineStats SyntheticEngine::stats() const {
  EngineStats stats;
  {
    const std::lock_guard lock(registry_->mutex);
    stats.slots_busy = static_cast<std::uint32_t>(registry_->runs.size());
    stats.completion_tokens = registry_->chunks;
    for (const auto& run : registry_->runs) {
      stats.completion_tokens += run->status().completion_tokens;
    }
  }
  stats.requests = registry_->requests;
  stats.cancelled = registry_->cancelled;
  return stats;
}

void SyntheticEngine::shutdown() {
  std::unordered_set<std::shared_ptr<Run>> runs;
  {
    const std::lock_guard lock(registry_->mutex);
    registry_->closed = true;
    runs = registry_->runs;
  }
  for (const auto& run : runs) run->stop();
}

}  // namespace sluice
