#pragma once

#include <atomic>
#include <deque>
#include <memory>
#include <optional>

#include "engine/engine.hpp"

namespace sluice {

/// The way from an engine's thread to a sink, which may say that it is full. What comes while it is
/// full waits here; the engine should then produce nothing more. Belongs to the engine's thread but
/// for resume().
class Delivery {
 public:
  explicit Delivery(std::shared_ptr<GenerationSink> sink) : sink_(std::move(sink)) {}

  /// The sink has room. Thread-safe; takes effect with the next poll().
  void resume() { resumed_ = true; }

  void deliver(Delta delta) {
    waiting_.push_back(std::move(delta));
    drain();
  }
  /// Ends it once everything has been delivered, or, if `now`, without the rest.
  void complete(Completion completion, bool now) {
    if (now) {
      waiting_.clear();
      paused_ = false;
    }
    completion_ = std::move(completion);
    drain();
  }
  /// Goes on if the sink has room again, until it is full once more. True: it had room.
  bool poll() {
    if (!paused_ || !resumed_.exchange(false)) return false;
    paused_ = false;
    drain();
    return true;
  }
  [[nodiscard]] bool paused() const { return paused_; }
  /// The sink has had its last call.
  [[nodiscard]] bool done() const { return sink_ == nullptr; }

 private:
  void drain() {
    while (!paused_ && !waiting_.empty()) {
      Delta delta = std::move(waiting_.front());
      waiting_.pop_front();
      resumed_ = false;  // whoever resumes from here on has seen this delta
      paused_ = !sink_->on_delta(std::move(delta)) && !resumed_.exchange(false);
    }
    if (!waiting_.empty() || !completion_ || sink_ == nullptr) return;
    const auto sink = std::move(sink_);
    sink->on_complete(*std::exchange(completion_, std::nullopt));
  }

  std::shared_ptr<GenerationSink> sink_;
  std::deque<Delta> waiting_;  // at most what one token and the end of an answer bring
  std::optional<Completion> completion_;
  bool paused_ = false;
  std::atomic<bool> resumed_ = false;
};

}  // namespace sluice
