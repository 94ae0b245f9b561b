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

/// The key of the tasks extension (SEP-2663) in the capabilities of 2026-07-28.
inline constexpr std::string_view kTasksExtension = "io.modelcontextprotocol/tasks";
/// The key in `_meta` that says which task a message belongs to (2025-11-25, Tasks, Related Task
/// Metadata).
inline constexpr std::string_view kRelatedTaskKey = "io.modelcontextprotocol/related-task";

/// A task does not leave the last three states (2025-11-25, Tasks, Task Status Lifecycle; the same
/// in SEP-2663).
enum class TaskStatus : std::uint8_t { working, input_required, completed, failed, cancelled };

std::string_view to_string(TaskStatus status);
bool is_terminal(TaskStatus status);

/// What a client is told about a task, in any revision.
struct TaskState {
  using Time = std::chrono::system_clock::time_point;

  std::string id;
  TaskStatus status = TaskStatus::working;
  std::string message = {};  // human-readable; may be empty
  Time created = {};
  Time updated = {};
  std::chrono::milliseconds ttl{};            // counted from the task's creation
  std::chrono::milliseconds poll_interval{};  // the client's recommended time between two polls
};

/// Appends the members of a Task in the form of `revision`, without braces.
void append_task(std::string& out, const TaskState& state, const Revision& revision);

/// Appends `time` in the format of RFC 3339, in UTC with milliseconds, such as
/// 2025-11-25T10:30:00.000Z.
void append_timestamp(std::string& out, TaskState::Time time);

/// The task that a result names instead of what was asked for: it is the result itself (2026-07-28,
/// `resultType`), or its member `task` (2025-11-25, CreateTaskResult). Null: it names none.
const json::object* created_task(const json::object& result);

// Decoders of parameters. Error: -32602, which says what is missing or has the wrong type.

/// The parameter `task` of a request that is to run as a task.
struct TaskRequest {
  std::optional<std::chrono::milliseconds> ttl;
};
/// Decodes `task`; nothing if it is absent.
Result<std::optional<TaskRequest>> decode_task_request(const json::object& params);

/// Decodes `taskId`, which has at most kMaxTaskId bytes.
Result<std::string> decode_task_id(const json::object& params);
inline constexpr std::size_t kMaxTaskId = 128;

/// Decodes `inputResponses` of tasks/update, an object. The result points into `params`.
Result<const json::object*> decode_input_responses(const json::object& params);

/// Decodes `cursor` of a list request; nothing if it is absent.
Result<std::optional<std::string>> decode_cursor(const json::object& params);

}  // namespace sluice
