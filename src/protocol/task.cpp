#include "protocol/task.hpp"

#include <array>
#include <cmath>

#include "json/members.hpp"
#include "rpc/error_codes.hpp"

namespace sluice {
namespace {

/// Longer than any task is kept, and small enough to be counted in nanoseconds.
constexpr std::int64_t kMaxTtlMs = std::int64_t{1000} * 60 * 60 * 24 * 365 * 100;

void append_padded(std::string& out, unsigned value, std::size_t digits) {
  const std::string text = std::to_string(value);
  out.append(digits > text.size() ? digits - text.size() : 0, '0').append(text);
}

/// Reads a number of milliseconds; fractions are truncated.
std::optional<std::int64_t> milliseconds_of(const json::value& value) {
  if (const std::int64_t* exact = value.if_int64()) return *exact;
  if (value.is_uint64()) return kMaxTtlMs;
  if (const double* real = value.if_double(); real != nullptr && std::isfinite(*real)) {
    return *real >= static_cast<double>(kMaxTtlMs) ? kMaxTtlMs
           : *real < 0                             ? -1
                                                   : static_cast<std::int64_t>(*real);
  }
  return std::nullopt;
}

}  // namespace

std::string_view to_string(TaskStatus status) {
  static constexpr std::array<std::string_view, 5> kNames = {"working", "input_required",
                                                             "completed", "failed", "cancelled"};
  return kNames[static_cast<std::size_t>(status)];
}

bool is_terminal(TaskStatus status) {
  return status != TaskStatus::working && status != TaskStatus::input_required;
}

void append_timestamp(std::string& out, TaskState::Time time) {
  const auto whole = std::chrono::floor<std::chrono::milliseconds>(time);
  const auto days = std::chrono::floor<std::chrono::days>(whole);
  const std::chrono::year_month_day date(days);
  const std::chrono::hh_mm_ss clock(whole - days);
  append_padded(out, static_cast<unsigned>(static_cast<int>(date.year())), 4);
  out.push_back('-');
  append_padded(out, static_cast<unsigned>(date.month()), 2);
  out.push_back('-');
  append_padded(out, static_cast<unsigned>(date.day()), 2);
  out.push_back('T');
  append_padded(out, static_cast<unsigned>(clock.hours().count()), 2);
  out.push_back(':');
  append_padded(out, static_cast<unsigned>(clock.minutes().count()), 2);
  out.push_back(':');
  append_padded(out, static_cast<unsigned>(clock.seconds().count()), 2);
  out.push_back('.');
  append_padded(out, static_cast<unsigned>(clock.subseconds().count()), 3);
  out.push_back('Z');
}

void append_task(std::string& out, const TaskState& state, const Revision& revision) {
  const bool named_units = revision.tasks == TaskModel::extension;
  out.append(R"("taskId":)");
  append_json_string(out, state.id);
  out.append(R"(,"status":")").append(to_string(state.status)).append("\"");
  if (!state.message.empty()) {
    out.append(R"(,"statusMessage":)");
    append_json_string(out, state.message);
  }
  out.append(R"(,"createdAt":")");
  append_timestamp(out, state.created);
  out.append(R"(","lastUpdatedAt":")");
  append_timestamp(out, state.updated);
  out.append(named_units ? R"(","ttlMs":)" : R"(","ttl":)");
  append_number(out, state.ttl.count());
  out.append(named_units ? R"(,"pollIntervalMs":)" : R"(,"pollInterval":)");
  append_number(out, state.poll_interval.count());
}

const json::object* created_task(const json::object& result) {
  if (text_at(result, "resultType") == "task") return &result;
  // A tool's result has content.
  return result.contains("content") ? nullptr : object_at(result, "task");
}

Result<std::optional<TaskRequest>> decode_task_request(const json::object& params) {
  const json::value* const given = params.if_contains("task");
  if (given == nullptr) return std::nullopt;
  if (!given->is_object()) return fail(kInvalidParams, "Invalid params: task must be an object");
  TaskRequest request;
  if (const json::value* ttl = given->get_object().if_contains("ttl")) {
    const std::optional<std::int64_t> asked = milliseconds_of(*ttl);
    if (!asked || *asked < 0) {
      return fail(kInvalidParams, "Invalid params: task.ttl must be a number of milliseconds");
    }
    request.ttl = std::chrono::milliseconds(std::min(*asked, kMaxTtlMs));
  }
  return request;
}

Result<std::string> decode_task_id(const json::object& params) {
  const json::value* const id = params.if_contains("taskId");
  if (id == nullptr || !id->is_string() || id->get_string().empty() ||
      id->get_string().size() > kMaxTaskId) {
    return fail(kInvalidParams,
                "Invalid params: taskId must be the id of a task, a string of 1 to " +
                    std::to_string(kMaxTaskId) + " bytes");
  }
  return std::string(id->get_string());
}

Result<const json::object*> decode_input_responses(const json::object& params) {
  const json::value* const given = params.if_contains("inputResponses");
  if (given == nullptr || !given->is_object()) {
    return fail(kInvalidParams, "Invalid params: inputResponses must be an object");
  }
  return &given->get_object();
}

Result<std::optional<std::string>> decode_cursor(const json::object& params) {
  const json::value* const given = params.if_contains("cursor");
  if (given == nullptr) return std::nullopt;
  if (!given->is_string()) return fail(kInvalidParams, "Invalid params: cursor must be a string");
  return std::string(given->get_string());
}

}  // namespace sluice
