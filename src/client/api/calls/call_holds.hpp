#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <utility>

#include "core/clock.hpp"
#include "core/executor.hpp"

namespace sluice::detail {

/// What a call does with the server that it has.
enum class Holding : std::uint8_t {
  up,    // it is not to be read, as nobody takes the call's events
  no,    // they have been taken
  over,  // the call has ended
};

/// The calls that hold up a connection, as nobody takes their events. However many they are, it is
/// held up for `longest` at most, and then for as long not again, unless somebody takes events.
/// Belongs to its loop.
class CallHolds : public std::enable_shared_from_this<CallHolds> {
 public:
  using Pause = std::function<void(bool is_paused)>;

  CallHolds(Executor& loop, Duration longest) : loop_(&loop), longest_(longest) {}
  ~CallHolds() { stop_timer(); }
  CallHolds(const CallHolds&) = delete;
  CallHolds& operator=(const CallHolds&) = delete;

  /// `call` is paused, and `pause` is kept until it is no longer.
  void hold(const void* call, Pause pause) {
    if (is_spent_) return;
    pause(true);
    if (held_.empty()) begin();
    held_.insert_or_assign(call, std::move(pause));
  }
  /// The events of `call` have been taken.
  void release(const void* call) {
    if (std::exchange(is_spent_, false)) stop_timer();
    end(call);
    if (held_.empty()) held_for_ = {};
  }
  /// `call` is over. Whether somebody takes events is not known by that.
  void end(const void* call) {
    const auto found = held_.find(call);
    if (found == held_.end()) return;
    found->second(false);
    held_.erase(found);
    if (!held_.empty()) return;
    stop_timer();
    free_since_ = loop_->clock().now();
    held_for_ += free_since_ - held_since_;
  }

 private:
  void begin() {
    held_since_ = loop_->clock().now();
    if (held_since_ - free_since_ >= longest_) held_for_ = {};
    wait(longest_ - held_for_, &CallHolds::let_all_go);
  }
  void let_all_go() {
    is_spent_ = true;
    wait(longest_, &CallHolds::begin_anew);
    for (const auto& [call, pause] : std::exchange(held_, {})) pause(false);
  }
  void begin_anew() {
    timer_ = 0;
    is_spent_ = false;
    held_for_ = {};
  }
  void wait(Duration time, void (CallHolds::*then)()) {
    timer_ = loop_->schedule_at(loop_->clock().now() + time, [weak = weak_from_this(), then] {
      if (const auto self = weak.lock()) (self.get()->*then)();
    });
  }
  void stop_timer() {
    if (timer_ != 0) loop_->cancel(std::exchange(timer_, 0));
  }

  Executor* loop_;
  const Duration longest_;
  std::map<const void*, Pause> held_;
  Duration held_for_{};     // until `free_since_`
  TimePoint held_since_{};  // if any call holds
  TimePoint free_since_{};
  Executor::TimerId timer_ = 0;
  bool is_spent_ = false;
};

}  // namespace sluice::detail
