#include "cli/bench/bench_load.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace sluice {

/// How long a slot waits after it could not reach the server.
constexpr Duration kPause = std::chrono::milliseconds(100);

/// Runs one unit at a time.
class BenchLoad::Slot final : public AnswerSink {
 public:
  Slot(BenchLoad& load, std::uint32_t number) : load_(&load), number_(number) {}

  void begin(TimePoint due) {
    due_ = due;
    first_seen_ = false;
    ++load_->results_.started;
    load_->begin_(number_, *this);
  }

  void on_delta(const AnswerDelta& delta) override {
    if (load_->finished_) return;
    BenchResults& results = load_->results_;
    const TimePoint now = load_->now();
    ++results.chunks;
    results.bytes += delta.text.size();
    if (!first_seen_) {
      first_seen_ = true;
      results.first.record(nanoseconds(now - due_));
    }
    if (!load_->plan_.clock_is_shared) return;
    if (const std::uint64_t made = chunk_time(delta.text); made != 0) {
      results.added.record(nanoseconds(now.time_since_epoch() - Duration(made)));
    }
  }

  void on_retry(const Error& /*why*/, Duration /*wait*/) override { ++load_->results_.retries; }

  void on_end(const AnswerEnd& end) override {
    if (load_->finished_) return;
    if (end.outcome == AnswerEnd::Outcome::complete) {
      ++load_->results_.completed;
      load_->results_.complete.record(nanoseconds(load_->now() - due_));
    } else {
      load_->results_.count_error(end.error.message.empty() ? "cancelled" : end.error.message);
    }
    if (end.outcome == AnswerEnd::Outcome::unreachable) {
      ++load_->results_.unreachable;
      // A server that is gone is not asked again at once.
      load_->loop_->schedule_at(load_->now() + kPause, [this] { load_->on_free(*this); });
    } else {
      load_->on_free(*this);
    }
  }

 private:
  static std::uint64_t nanoseconds(Duration duration) {
    return static_cast<std::uint64_t>(std::max<Duration::rep>(duration.count(), 0));
  }

  BenchLoad* load_;
  std::uint32_t number_;
  TimePoint due_{};
  bool first_seen_ = false;
};

BenchLoad::BenchLoad(Executor& loop, BenchPlan plan, Begin begin)
    : loop_(&loop), plan_(plan), begin_(std::move(begin)) {
  for (std::uint32_t i = 0; i < plan_.slots; ++i) {
    slots_.push_back(std::make_unique<Slot>(*this, i));
  }
  // Filled in reverse, because places are taken from the back: the lowest are taken first.
  for (auto slot = slots_.rbegin(); slot != slots_.rend(); ++slot) {
    free_.push_back(slot->get());
  }
}

BenchLoad::~BenchLoad() = default;

TimePoint BenchLoad::now() const {
  return loop_->clock().now();
}

TimePoint BenchLoad::due(std::uint64_t unit) const {
  const double after = std::floor(static_cast<double>(unit) * 1e9 / plan_.rate);
  return began_ + Duration(static_cast<Duration::rep>(after));
}

void BenchLoad::start(std::function<void()> done) {
  done_ = std::move(done);
  began_ = now();
  end_timer_ = loop_->schedule_at(began_ + plan_.duration, [this] {
    closed_ = true;
    end_timer_ = loop_->schedule_at(now() + plan_.grace, [this] { finish(); });
    if (free_.size() == slots_.size()) finish();
  });
  advance();
}

void BenchLoad::advance() {
  if (advancing_ || finished_) return;
  advancing_ = true;
  const TimePoint end = began_ + plan_.duration;
  while (!free_.empty() && !closed_) {
    const TimePoint at = plan_.rate > 0 ? due(next_unit_) : now();
    if (at >= end) break;
    if (at > now()) {
      if (timer_ == 0) {
        timer_ = loop_->schedule_at(at, [this] {
          timer_ = 0;
          advance();
        });
      }
      break;
    }
    Slot* const slot = free_.back();
    free_.pop_back();
    ++next_unit_;
    slot->begin(at);
  }
  advancing_ = false;
}

void BenchLoad::on_free(Slot& slot) {
  // Posted, because this is called from inside the state machine that has just ended, and the slot
  // is about to get a new one.
  loop_->post([this, &slot] {
    free_.push_back(&slot);
    if (finished_) return;
    if (closed_ && free_.size() == slots_.size()) {
      finish();
    } else {
      advance();
    }
  });
}

void BenchLoad::stop() {
  closed_ = true;
  finish();
}

void BenchLoad::finish() {
  if (finished_) return;
  results_.elapsed = now() - began_;
  finished_ = true;
  loop_->cancel(timer_);
  loop_->cancel(end_timer_);
  if (plan_.rate > 0) {
    const double due_units = std::ceil(
        std::chrono::duration<double>(std::min(results_.elapsed, plan_.duration)).count() *
        plan_.rate);
    const auto all = static_cast<std::uint64_t>(due_units);
    results_.late = all > next_unit_ ? all - next_unit_ : 0;
  }
  done_();
}

const BenchResults& BenchLoad::results() {
  if (!finished_) results_.elapsed = now() - began_;
  return results_;
}

}  // namespace sluice
