#include <string>
#include <utility>

#include "client/api/client_connection.hpp"
#include "json/members.hpp"
#include "protocol/revision.hpp"
#include "protocol/task.hpp"
#include "rpc/error_codes.hpp"
#include "sluice/client.hpp"

namespace sluice {
namespace {

/// Whether a server of 2025-11-25 takes `task` in tools/call (Tasks, Capability Negotiation).
bool offers_tasks(const ServerDescription& server) {
  const json::object* at = object_at(server.about, "capabilities");
  for (const char* const each : {"tasks", "requests", "tools", "call"}) {
    if (at != nullptr) at = object_at(*at, each);
  }
  return server.revision->tasks == TaskModel::requested && at != nullptr;
}

}  // namespace

namespace detail {

ClientTask::ClientTask(std::shared_ptr<ClientConnection> connection, const json::object& answer)
    : connection_(std::move(connection)) {
  const json::object* const task = created_task(answer);
  if (task == nullptr) {
    answer_ = answer;
    return;
  }
  id_ = text_at(*task, "taskId");
  if (id_.empty()) throw Error{kInternalError, "The server's task has no id"};
}

ClientCall ClientTask::wait(CallOptions options) const {
  if (!answer_) return {connection_, connection_->follow_task(id_, options)};
  const auto state = std::make_shared<ClientCall::State>(options.max_events, [] {}, [](bool) {});
  state->end(*answer_);
  return {connection_, state};
}

json::object ClientTask::ask(std::string_view method) const {
  if (id_.empty()) throw Error{kInvalidParams, "The server has made no task of the call"};
  return connection_->begin(method, {{"taskId", id_}}, {})->result();
}

TaskDescription describe_task(json::object task) {
  TaskDescription out{.id = std::string(text_at(task, "taskId")),
                      .status = std::string(text_at(task, "status")),
                      .message = std::string(text_at(task, "statusMessage"))};
  out.definition = std::move(task);
  return out;
}

}  // namespace detail

bool TaskDescription::has_ended() const {
  return status == "completed" || status == "failed" || status == "cancelled";
}

detail::ClientCall Client::begin_task(std::string_view tool, json::object arguments,
                                      CallOptions options,
                                      std::optional<std::chrono::milliseconds> keep_for) {
  json::object params{{"name", tool}, {"arguments", std::move(arguments)}};
  if (offers_tasks(connection_->server())) {
    json::object& task = params["task"].emplace_object();
    if (keep_for) task["ttl"] = keep_for->count();
  }
  return {connection_,
          connection_->begin("tools/call", std::move(params), std::move(options), true)};
}

}  // namespace sluice
