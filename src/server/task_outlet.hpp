#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "server/call_outlet.hpp"

namespace sluice {

/// The outlet of a call that runs as a task: it has no caller, and everything goes to the task's
/// record.
class TaskOutlet final : public CallOutlet {
 public:
  explicit TaskOutlet(std::shared_ptr<TaskRecord> task) : task_(std::move(task)) {}

  [[nodiscard]] bool carries() const override { return true; }
  bool send(std::string_view message) override {
    task_->send(std::string(message));
    return true;
  }
  void answer(CallAnswer answer) override {
    task_->end(answer.ending, answer.why, answer.response);
  }
  void leave() override { task_->cancel(); }

 private:
  std::shared_ptr<TaskRecord> task_;
};

}  // namespace sluice
