#pragma once

#include <memory>

#include "core/error.hpp"
#include "server/calls/pending_request.hpp"
#include "server/calls/task_record.hpp"

namespace sluice {

/// Answers `call`, a `tasks/result`, with the outcome of `task` as soon as it has one. Meanwhile
/// the call carries the task's notifications and questions to its client (2025-11-25, Tasks, Input
/// Required Status). kLimitReached if too many wait for this task.
Result<void> await_task_result(const std::shared_ptr<PendingRequest>& call,
                               const std::shared_ptr<TaskRecord>& task);

}  // namespace sluice
