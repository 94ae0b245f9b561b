#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "core/error.hpp"
#include "json/json.hpp"
#include "protocol/negotiation.hpp"
#include "rpc/message.hpp"
#include "server/calls/calls.hpp"
#include "server/calls/pending_request.hpp"
#include "server/calls/task_store.hpp"
#include "server/catalog/definition.hpp"
#include "server/catalog/result_writer.hpp"
#include "server/channel/reply_channel.hpp"
#include "server/sessions/session.hpp"
#include "server/streams/stream_service.hpp"

namespace sluice {

/// Whether a call becomes a task.
struct TaskPlan {
  enum class When : std::uint8_t {
    never,
    now,
    later,  // when its handler says so
  };
  When when = When::never;
  bool demanded = false;  // the client has asked for a task, so the call must become one
  std::optional<std::chrono::milliseconds> ttl = {};
};

/// The tasks of one loop's requests: which calls become tasks, and the methods `tasks/*`
/// (2025-11-25, Tasks; SEP-2663). Belongs to its loop.
class TaskService {
 public:
  TaskService(RefPtr<LoopCatalog> catalog, Calls& calls, TaskStore& tasks);

  /// Calls that arrive from now on use `catalog`.
  void take(RefPtr<LoopCatalog> catalog) {
    had_tasks_ = had_tasks_ || catalog_->has_tasks();
    catalog_ = std::move(catalog);
  }

  /// Decides whether a call of `tool` with `params` becomes a task. A call that can do without a
  /// task is no task while `caller` has as many as it may. Errors: -32601 for a tool that must
  /// or must not run as a task, -32602 for a `task` of the wrong type, -32021 for a client without
  /// the extension that a tool needs.
  [[nodiscard]] Result<TaskPlan> plan(const Tool& tool, const json::object& params,
                                      const RequestContext& context, const Caller& caller) const;

  /// What a task does, on this loop.
  using Run = std::move_only_function<void(const std::shared_ptr<PendingRequest>& call)>;
  /// The task that calls `tool`, which the request it runs for keeps alive. Copies the parameters.
  static Run run_of(const Tool& tool, const json::object& params);

  /// The request that becomes a task.
  struct Origin {
    RequestContext context;
    std::shared_ptr<Session> session;  // or null
    Principal principal;
    RefPtr<LoopCatalog> catalog = {};
    const CompiledTool* tool = nullptr;  // of `catalog`, or null
    MemoryHold memory = MemoryHold();    // for what is kept of the request
  };
  /// Begins a task, which runs `run` after this turn; returns its record. kLimitReached when there
  /// are too many tasks, kBusy when the server shuts down.
  Result<std::shared_ptr<TaskRecord>> begin(Origin origin,
                                            std::optional<std::chrono::milliseconds> ttl, Run run);
  /// Appends the response to request `id` that has become `task`.
  void append_created(std::string& out, const RequestId& id, const TaskRecord& task) const;

  /// Lets the handler of `call` decide when the call becomes a task, which belongs to `session`, if
  /// that is not null.
  void let_begin(PendingRequest& call, std::shared_ptr<Session> session = nullptr,
                 std::optional<std::chrono::milliseconds> ttl = {});
  /// Lets a Forwarder decide whether `call` with `params` becomes a task, if its client can have
  /// one: by its wish (2025-11-25), or while there is room for one more (SEP-2663). Error: -32602
  /// for a `task` of the wrong type.
  Result<void> offer(PendingRequest& call, const json::object& params,
                     const std::shared_ptr<Session>& session);

  /// Whether `method` is one of `tasks/*` that `revision` has and this server offers to `caller`.
  /// Only a caller that can be told from others may list its tasks (2025-11-25, Tasks, Security
  /// Considerations).
  [[nodiscard]] bool serves(std::string_view method, const Revision& revision,
                            const Caller& caller) const;
  /// Answers a request for such a method: appends the response and returns true, or answers later
  /// and returns false. Errors: -32602 for parameters that have the wrong type or name no task of
  /// the caller, -32021 for a client without the extension.
  Result<bool> handle(const Message& message, RequestContext context,
                      std::shared_ptr<Session> session, Caller& caller, std::string& out);

  /// The task `id`; null if there is none or it is another principal's or revision's.
  std::shared_ptr<TaskRecord> find(std::string_view id, const std::string& principal,
                                   const Revision& revision) {
    return tasks_->find(id, principal, revision);
  }

 private:
  Result<std::shared_ptr<TaskRecord>> find_named(const json::object& params, const Caller& caller,
                                                 const Revision& revision) const;
  Result<std::string> list(const json::object& params, const std::string& principal,
                           const Revision& revision) const;
  static Result<std::string> cancel(TaskRecord& task);
  Result<bool> result(const Message& message, RequestContext context,
                      std::shared_ptr<Session> session, Caller& caller,
                      const std::shared_ptr<TaskRecord>& task, std::string& out);
  Result<std::shared_ptr<TaskRecord>> create(Origin& origin,
                                             std::optional<std::chrono::milliseconds> ttl);
  std::shared_ptr<PendingRequest> request_of(Origin origin,
                                             const std::shared_ptr<TaskRecord>& task);

  RefPtr<LoopCatalog> catalog_;
  bool had_tasks_ = false;  // whether an earlier catalog had tasks, which may still be there
  Calls* calls_;
  StreamService* streams_;
  TaskStore* tasks_;
};

/// The error for a client that has not declared the tasks extension and would need it.
Error tasks_extension_missing();

}  // namespace sluice
