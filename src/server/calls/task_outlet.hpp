#pragma once

#include <cstddef>
#include <memory>
#include <string_view>
#include <utility>

#include "core/executor.hpp"
#include "server/calls/call_outlet.hpp"

namespace sluice {

/// The outlet of a call that runs as a task. The call has no caller, and everything goes to the
/// task's record. The bytes on their way to observers, which may be on other loops, are limited: if
/// the call sends too much without waiting, its messages are dropped until some have arrived.
class TaskOutlet final : public CallOutlet {
 public:
  TaskOutlet(std::shared_ptr<TaskRecord> task, std::weak_ptr<OutletEvents> call, Executor& loop);

  [[nodiscard]] bool carries() const override { return true; }
  bool send(std::string_view message) override;
  void answer(CallAnswer answer) override {
    task_->end(answer.ending, answer.why, answer.response);
  }
  void leave() override { task_->cancel(); }

  /// Limits for the bytes on their way. From kFull on, the call should wait; from kMost on, its
  /// messages are dropped.
  static constexpr std::size_t kFull = std::size_t{64} << 10U;
  static constexpr std::size_t kMost = 4 * kFull;

 private:
  class Way;

  std::shared_ptr<TaskRecord> task_;
  std::shared_ptr<Way> way_;
};

}  // namespace sluice
