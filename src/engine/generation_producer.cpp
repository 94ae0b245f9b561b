#include "engine/generation_producer.hpp"

#include <utility>

namespace sluice {

Result<void> GenerationProducer::start(Engine& engine, GenerationRequest request) {
  Result<std::unique_ptr<Generation>> generation =
      engine.start(std::move(request), shared_from_this(), *home_);
  if (!generation) return std::unexpected(std::move(generation.error()));
  // An engine on this loop may have completed before start() returned.
  if (!over_) generation_ = std::move(*generation);
  return {};
}

bool GenerationProducer::on_delta(Delta delta) {
  if (home_->on_loop_thread()) return take(delta);
  if (queue_ == nullptr) {
    queue_ = std::make_unique<Queue>();
    threaded_.store(true, std::memory_order_release);
  }
  // The engine is told to stop when the queue is half full, so that the deltas it still has always
  // fit.
  if (!queue_->push(std::move(delta))) return false;
  const bool room = queue_->size() < kQueued / 2;
  if (!room) engine_waits_.store(true);
  schedule();
  return room;
}

void GenerationProducer::on_complete(Completion completion) {
  if (home_->on_loop_thread()) {
    finish(completion);
    return;
  }
  completion_ = std::make_unique<Completed>(std::move(completion));
  completed_.store(true, std::memory_order_release);
  schedule();
}

void GenerationProducer::schedule() {
  if (scheduled_.exchange(true)) return;
  home_->post([self = shared_from_this()] { self->drain(); });
}

void GenerationProducer::drain() {
  scheduled_.store(false);
  if (over_) return;
  const bool queued = threaded_.load(std::memory_order_acquire);
  while (!output_full_ && queued) {
    const std::optional<Delta> delta = queue_->pop();
    if (!delta) break;
    take(*delta);
    if (over_) return;
  }
  if (output_full_) {
    // The engine releases a generation that has completed, but its deltas still wait for room.
    if (completed_.load(std::memory_order_acquire)) completion_->self = shared_from_this();
    return;
  }
  if (completed_.load(std::memory_order_acquire) && (!queued || queue_->size() == 0)) {
    finish(completion_->completion);
    return;
  }
  if (engine_waits_.exchange(false) && generation_ != nullptr) generation_->resume();
}

bool GenerationProducer::take(const Delta& delta) {
  if (over_) return true;
  // After a cancellation the few queued deltas are passed on regardless, so that the end can
  // follow.
  output_full_ = !append(delta) && !cancelled_;
  if (delta.flush && !over_) flush();
  if (output_full_) engine_waits_.store(true);
  return !output_full_;
}

void GenerationProducer::on_writable() {
  output_full_ = false;
  if (threaded_.load(std::memory_order_acquire) || completed_.load(std::memory_order_acquire)) {
    schedule();
  } else if (engine_waits_.exchange(false) && generation_ != nullptr) {
    generation_->resume();
  }
}

void GenerationProducer::on_cancel() {
  const bool is_complete = completed_.load(std::memory_order_acquire);
  std::shared_ptr<GenerationProducer> keep;
  if (is_complete) keep = std::exchange(completion_->self, nullptr);
  cancelled_ = true;
  output_full_ = false;
  if (generation_ != nullptr) generation_->cancel();
  if (threaded_.load(std::memory_order_acquire) || is_complete) schedule();
}

GenerationStatus GenerationProducer::status() const {
  return generation_ == nullptr ? GenerationStatus{} : generation_->status();
}

void GenerationProducer::finish(const Completion& completion) {
  const std::shared_ptr<GenerationProducer> keep = shared_from_this();
  if (completed_.load(std::memory_order_acquire)) completion_->self = nullptr;
  if (!std::exchange(over_, true)) complete(completion);
  // The engine may be the caller, so destroy its generation later.
  home_->post([generation = std::move(generation_)] {});
}

}  // namespace sluice
