#include "agent/spans/span_queue.hpp"

#include <algorithm>
#include <iterator>
#include <string_view>
#include <utility>

#include "core/log/log.hpp"
#include "core/log/log_limit.hpp"

namespace sluice {
namespace {

void log_dropped(std::size_t spans, std::string_view why) {
  static LogLimit lines;
  if (const auto left_out = lines.take()) {
    log_error(
        "spans were dropped",
        {{"spans", static_cast<std::int64_t>(spans)}, {"why", why}, {"lines_left_out", *left_out}});
  }
}

}  // namespace

SpanQueue::SpanQueue(Executor& loop, Options options, Send send)
    : loop_(&loop), options_(options), send_(std::move(send)), backoff_(options.retries) {}

SpanQueue::~SpanQueue() {
  const std::size_t left = waiting_.size() + batch_.size();
  if (left > 0) log_dropped(left, "the collector has not taken them in time");
  if (timer_ != 0) loop_->cancel(timer_);
}

void SpanQueue::schedule(Duration wait, void (SpanQueue::*what)()) {
  timer_ = loop_->schedule_at(loop_->clock().now() + wait, [this, what] {
    timer_ = 0;
    (this->*what)();
  });
}

void SpanQueue::add(Span span) {
  if (waiting_.size() >= options_.max_waiting) return log_dropped(1, "too many wait to be sent");
  waiting_.push_back(std::move(span));
  if (!batch_.empty()) return;
  if (waiting_.size() >= options_.max_batch) return send_next();
  if (timer_ == 0) schedule(options_.interval, &SpanQueue::send_next);
}

void SpanQueue::flush(std::function<void()> done) {
  flushed_ = std::move(done);
  if (batch_.empty()) send_next();
}

void SpanQueue::send_next() {
  if (timer_ != 0) loop_->cancel(std::exchange(timer_, 0));
  const auto count = static_cast<std::ptrdiff_t>(std::min(waiting_.size(), options_.max_batch));
  if (count == 0) {
    if (const auto flushed = std::exchange(flushed_, nullptr)) flushed();
    return;
  }
  batch_.assign(std::make_move_iterator(waiting_.begin()),
                std::make_move_iterator(waiting_.begin() + count));
  waiting_.erase(waiting_.begin(), waiting_.begin() + count);
  backoff_.reset();
  send_batch();
}

void SpanQueue::send_batch() {
  send_(batch_, [this, alive = std::weak_ptr(alive_)](Outcome outcome) {
    if (!alive.expired()) on_outcome(std::move(outcome));
  });
}

void SpanQueue::on_outcome(Outcome outcome) {
  if (outcome.kind == Outcome::Kind::try_again) {
    if (const auto wait = backoff_.next()) {
      return schedule(std::max(*wait, outcome.wait.value_or(Duration::zero())),
                      &SpanQueue::send_batch);
    }
  }
  if (outcome.kind != Outcome::Kind::taken) log_dropped(batch_.size(), outcome.why);
  batch_.clear();
  const bool is_full = waiting_.size() >= options_.max_batch;
  if (flushed_ || is_full || waiting_.empty()) return send_next();
  schedule(options_.interval, &SpanQueue::send_next);
}

}  // namespace sluice
