#pragma once

#include <cstddef>
#include <memory>
#include <string_view>
#include <utility>

#include "core/executor.hpp"
#include "server/calls/call_outlet.hpp"

namespace sluice {

/// The outlet of a call that runs as a task: it has no caller, and everything goes to the task's
/// record. What is on its way to whoever hears it, perhaps on other loops, is bounded: a call that
/// says more without waiting for room is not heard until some of it has arrived.
class TaskOutlet final : public CallOutlet {
 public:
  TaskOutlet(std::shared_ptr<TaskRecord> task, std::weak_ptr<OutletEvents> call, Executor& loop);

  [[nodiscard]] bool carries() const override { return true; }
  bool send(std::string_view message) override;
  void answer(CallAnswer answer) override {
    task_->end(answer.ending, answer.why, answer.response);
  }
  void leave() override { task_->cancel(); }

  /// Bytes on their way: from the first on the call is to wait, from the second on what it says is
  /// dropped.
  static constexpr std::size_t kFull = std::size_t{64} << 10U;
  static constexpr std::size_t kMost = 4 * kFull;

 private:
  class Way;

  std::shared_ptr<TaskRecord> task_;
  std::shared_ptr<Way> way_;
};

}  // namespace sluice
