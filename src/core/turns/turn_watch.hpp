#pragma once

#include <string>
#include <string_view>

#include "core/executor.hpp"
#include "core/log/log_limit.hpp"

namespace sluice {

/// Logs which user code holds up an event loop: the name of work that lasts kLong or longer within
/// one turn, at most once in LogLimit::kPeriod. Reads the clock once a turn, and once each time the
/// work changes, however often work of the same name begins. Belongs to its loop.
class TurnWatch final : private Executor::TurnHook {
 public:
  static constexpr Duration kLong = std::chrono::milliseconds(100);
  /// Bytes of a name that count.
  static constexpr std::size_t kMaxName = 256;

  struct Work {
    std::string_view kind;  // such as "tool"; must be a literal
    std::string_view name;
  };

  explicit TurnWatch(Executor& loop) : loop_(&loop) {}
  ~TurnWatch() override { loop_->forget(*this); }
  TurnWatch(const TurnWatch&) = delete;
  TurnWatch& operator=(const TurnWatch&) = delete;

  /// Says that `work` begins. It is taken to last until other work begins, until end(), or until
  /// the end of the turn.
  void begin(Work work);
  /// Says that what follows is no user code.
  void end() {
    if (is_watching_) begin({});
  }

 private:
  void on_turn_end() override;
  void finish(TimePoint now);

  Executor* loop_;
  bool is_watching_ = false;
  std::string_view kind_;  // empty: no user code
  std::string name_;
  TimePoint since_;
  LogLimit limit_;
};

}  // namespace sluice
