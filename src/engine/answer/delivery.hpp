#pragma once

#include <atomic>
#include <deque>
#include <memory>
#include <optional>

#include "engine/engine.hpp"

namespace sluice {

/// Delivers deltas from an engine's thread to a sink, which may be full. Deltas that arrive while
/// it is full wait here; the engine should then stop producing. Belongs to the engine's thread,
/// except resume().
class Delivery {
 public:
  explicit Delivery(std::shared_ptr<GenerationSink> sink) : sink_(std::move(sink)) {}

  /// Records that the sink has room. Thread-safe; takes effect at the next poll().
  void resume() { resumed_ = true; }

  void deliver(Delta delta) {
    waiting_.push_back(std::move(delta));
    drain();
  }
  /// Ends the delivery: after everything has been delivered, or, if `now`, at once and without the
  /// rest.
  void complete(Completion completion, bool now) {
    if (now) {
      waiting_.clear();
      paused_ = false;
    }
    completion_ = std::move(completion);
    drain();
  }
  /// Continues if the sink has room again, until it is full. Returns whether it had room.
  bool poll() {
    if (!paused_ || !resumed_.exchange(false)) return false;
    paused_ = false;
    drain();
    return true;
  }
  [[nodiscard]] bool paused() const { return paused_; }
  /// Whether deltas wait here, which complete() may drop.
  [[nodiscard]] bool is_behind() const { return !waiting_.empty(); }
  /// Whether the sink has received its last call.
  [[nodiscard]] bool done() const { return sink_ == nullptr; }

 private:
  void drain() {
    while (!paused_ && !waiting_.empty()) {
      Delta delta = std::move(waiting_.front());
      waiting_.pop_front();
      resumed_ = false;  // a resume() from here on comes after this delta
      paused_ = !sink_->on_delta(std::move(delta)) && !resumed_.exchange(false);
    }
    if (!waiting_.empty() || !completion_ || sink_ == nullptr) return;
    const auto sink = std::move(sink_);
    sink->on_complete(*std::exchange(completion_, std::nullopt));
  }

  std::shared_ptr<GenerationSink> sink_;
  std::deque<Delta> waiting_;  // at most the deltas of one token and of the end of an answer
  std::optional<Completion> completion_;
  bool paused_ = false;
  std::atomic<bool> resumed_ = false;
};

}  // namespace sluice
