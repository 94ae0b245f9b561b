#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/error.hpp"
#include "json/json.hpp"
#include "protocol/revision.hpp"

namespace sluice {

/// The extension of 2026-07-28 (SEP-2663) in capabilities.
inline constexpr std::string_view kTasksExtension = "io.modelcontextprotocol/tasks";
/// In `_meta`: which task a message belongs to (2025-11-25, Tasks, Related Task Metadata).
inline constexpr std::string_view kRelatedTaskKey = "io.modelcontextprotocol/related-task";

/// The last three are final (2025-11-25, Tasks, Task Status Lifecycle; the same in SEP-2663).
enum class TaskStatus : std::uint8_t { working, input_required, completed, failed, cancelled };

std::string_view to_string(TaskStatus status);
bool is_terminal(TaskStatus status);

/// What a client is told of a task, whatever the revision.
struct TaskState {
  using Time = std::chrono::system_clock::time_point;

  std::string id;
  TaskStatus status = TaskStatus::working;
  std::string message = {};  // for people; may be empty
  Time created = {};
  Time updated = {};
  std::chrono::milliseconds ttl{};            // from its creation
  std::chrono::milliseconds poll_interval{};  // between two looks at it
};

/// Appends the members of a Task in the form of `revision`, without braces.
void append_task(std::string& out, const TaskState& state, const Revision& revision);

/// Appends `time` as of RFC 3339 in UTC with milliseconds, such as 2025-11-25T10:30:00.000Z.
void append_timestamp(std::string& out, TaskState::Time time);

// Parameters. Errors: -32602 with what is missing or ill-typed.

/// `task` of a request that is to run as a task.
struct TaskRequest {
  std::optional<std::chrono::milliseconds> ttl;
};
/// The one in `params`, if there is one.
Result<std::optional<TaskRequest>> decode_task_request(const json::object& params);

/// `taskId`; at most kMaxTaskId bytes.
Result<std::string> decode_task_id(const json::object& params);
inline constexpr std::size_t kMaxTaskId = 128;

/// `inputResponses` of tasks/update: an object of objects, which lives in `params`.
Result<const json::object*> decode_input_responses(const json::object& params);

/// `cursor` of a list request, if there is one.
Result<std::optional<std::string>> decode_cursor(const json::object& params);

}  // namespace sluice
