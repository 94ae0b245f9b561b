#include "server/tasks/task_service.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "protocol/error_codes.hpp"
#include "protocol/task.hpp"
#include "rpc/error_codes.hpp"
#include "server/handlers/tool_run.hpp"
#include "server/tasks/task_result.hpp"

namespace sluice {
namespace {

struct TaskMethod {
  std::string_view name;
  bool requested;  // whether 2025-11-25 has it
  bool extension;  // whether SEP-2663 has it
};
constexpr std::array<TaskMethod, 5> kTaskMethods = {{
    {"tasks/get", true, true},
    {"tasks/cancel", true, true},
    {"tasks/update", false, true},
    {"tasks/result", true, false},
    {"tasks/list", true, false},
}};

/// The most tasks on one page, however large the pages of other lists are.
constexpr std::size_t kMaxPage = 100;

constexpr std::string_view kCursorPurpose = "tasks/list\n";

std::unexpected<Error> not_a_task() {
  return fail(kInvalidParams, "Failed to retrieve task: Task not found, or it has expired");
}

}  // namespace

Error tasks_extension_missing() {
  return {
      kMissingClientCapability,
      "This needs a client that declares the extension " + std::string(kTasksExtension),
      R"({"requiredCapabilities":{"extensions":{")" + std::string(kTasksExtension) + R"(":{}}}})"};
}

TaskService::TaskService(RefPtr<LoopCatalog> catalog, Calls& calls, TaskStore& tasks)
    : catalog_(std::move(catalog)), calls_(&calls), streams_(&calls.streams()), tasks_(&tasks) {}

Result<TaskPlan> TaskService::plan(const Tool& tool, const json::object& params,
                                   const RequestContext& context, const Caller& caller) const {
  const bool needed = tool.task_support == TaskSupport::required;
  std::string_view how = "call it with `task`";
  const bool possible = tool.task_support != TaskSupport::forbidden;
  const TaskPlan directly;
  if (!catalog_->has_tasks()) return directly;
  switch (context.revision->tasks) {
    case TaskModel::none:
      how = "this protocol revision has none";
      break;
    case TaskModel::requested: {
      const Result<std::optional<TaskRequest>> request = decode_task_request(params);
      if (!request) return std::unexpected(request.error());
      if (!*request) break;
      if (!possible) {
        return fail(kMethodNotFound, "Method not found: " + tool.name + " cannot run as a task");
      }
      return TaskPlan{.when = TaskPlan::When::now, .demanded = true, .ttl = (*request)->ttl};
    }
    case TaskModel::extension:
      if (!possible) return directly;
      if (!context.capabilities.tasks) {
        if (needed) return std::unexpected(tasks_extension_missing());
        return directly;
      }
      if (!needed && !tasks_->has_capacity(caller.principal().id)) return directly;
      return TaskPlan{.when = tool.asks_first ? TaskPlan::When::later : TaskPlan::When::now};
  }
  if (!needed) return directly;
  return fail(kMethodNotFound,
              "Method not found: " + tool.name + " runs only as a task; " + std::string(how));
}

TaskService::Run TaskService::run_of(const Tool& tool, const json::object& params) {
  // Copied, because the memory of the parameters belongs to their parser.
  return [&tool, copy = json::object(params, json::storage_ptr())](
             const std::shared_ptr<PendingRequest>& call) { run_tool(tool, copy, call); };
}

Result<std::shared_ptr<TaskRecord>> TaskService::create(
    Origin& origin, std::optional<std::chrono::milliseconds> ttl) {
  if (streams_->draining()) return std::unexpected(StreamService::shutting_down());
  return tasks_->create({.principal = origin.principal.id,
                         .revision = origin.context.revision,
                         .session = origin.session,
                         .ttl = ttl},
                        streams_->executor());
}

std::shared_ptr<PendingRequest> TaskService::request_of(Origin origin,
                                                        const std::shared_ptr<TaskRecord>& task) {
  if (origin.session != nullptr) origin.context.capabilities = origin.session->capabilities();
  // The extension has no progress for tasks.
  if (origin.context.revision->tasks == TaskModel::extension) {
    origin.context.progress_token.clear();
  }
  return calls_->open_task({.id = std::string(TaskRecord::kRequestId),
                            .context = std::move(origin.context),
                            .tool = origin.tool,
                            .permit = CallPermit(std::move(origin.principal)),
                            .memory = std::move(origin.memory),
                            .task = task},
                           origin.catalog);
}

Result<std::shared_ptr<TaskRecord>> TaskService::begin(Origin origin,
                                                       std::optional<std::chrono::milliseconds> ttl,
                                                       Run run) {
  Result<std::shared_ptr<TaskRecord>> task = create(origin, ttl);
  if (!task) return task;
  // Posted, because nothing of the task may come before the response that names it.
  streams_->executor().post(
      [run = std::move(run), request = request_of(std::move(origin), *task)]() mutable {
        if (!request->over()) run(request);
      });
  return task;
}

void TaskService::append_created(std::string& out, const RequestId& id,
                                 const TaskRecord& task) const {
  std::string members;
  task.append_state(members);
  catalog_->results().append_created_task(out, id, task.revision(), members, task.meta());
}

Result<void> TaskService::offer(PendingRequest& call, const json::object& params,
                                const std::shared_ptr<Session>& session) {
  const RequestContext& context = call.context();
  if (context.revision->tasks == TaskModel::requested) {
    const Result<std::optional<TaskRequest>> request = decode_task_request(params);
    if (!request) return std::unexpected(request.error());
    if (*request) let_begin(call, session, (*request)->ttl);
  } else if (context.capabilities.tasks && tasks_->has_capacity(call.principal().id)) {
    let_begin(call);
  }
  return {};
}

void TaskService::let_begin(PendingRequest& call, std::shared_ptr<Session> session,
                            std::optional<std::chrono::milliseconds> ttl) {
  call.set_begin_task([this, session = std::move(session),
                       ttl](PendingRequest* asking) -> Result<std::shared_ptr<PendingRequest>> {
    Origin origin{.context = copy_of(asking->context()),
                  .session = session,
                  .principal = asking->principal(),
                  .catalog = asking->catalog(),
                  .tool = asking->tool()};
    const Result<std::shared_ptr<TaskRecord>> task = create(origin, ttl);
    if (!task) return std::unexpected(task.error());
    origin.memory = asking->take_memory();
    std::shared_ptr<PendingRequest> request = request_of(std::move(origin), *task);
    std::string created;
    append_created(created, asking->id(), **task);
    asking->answer_with(std::move(created));
    return request;
  });
}

bool TaskService::serves(std::string_view method, const Revision& revision,
                         const Caller& caller) const {
  const auto* const found = std::ranges::find(kTaskMethods, method, &TaskMethod::name);
  if (found == kTaskMethods.end() || !(catalog_->has_tasks() || had_tasks_)) return false;
  if (method == "tasks/list" && !caller.principal().isolated) return false;
  return (revision.tasks == TaskModel::requested && found->requested) ||
         (revision.tasks == TaskModel::extension && found->extension);
}

Result<std::shared_ptr<TaskRecord>> TaskService::find_named(const json::object& params,
                                                            const Caller& caller,
                                                            const Revision& revision) const {
  const Result<std::string> id = decode_task_id(params);
  if (!id) return std::unexpected(id.error());
  std::shared_ptr<TaskRecord> task = tasks_->find(*id, caller.principal().id, revision);
  if (task == nullptr) return not_a_task();
  return task;
}

Result<bool> TaskService::handle(const Message& message, RequestContext context,
                                 std::shared_ptr<Session> session, Caller& caller,
                                 std::string& out) {
  const Revision& revision = *context.revision;
  const json::object& params = params_of(message);
  const bool extension = revision.tasks == TaskModel::extension;
  if (extension && !context.capabilities.tasks) return std::unexpected(tasks_extension_missing());
  Result<std::string> members;
  if (message.method == "tasks/list") {
    members = list(params, caller.principal().id, revision);
  } else {
    const Result<std::shared_ptr<TaskRecord>> task = find_named(params, caller, revision);
    if (!task) return std::unexpected(task.error());
    if (message.method == "tasks/result") {
      return result(message, std::move(context), std::move(session), caller, *task, out);
    }
    if (message.method == "tasks/cancel") {
      members = cancel(**task);
    } else if (message.method == "tasks/update") {
      const Result<const json::object*> responses = decode_input_responses(params);
      if (!responses) return std::unexpected(responses.error());
      if (Result<void> fits = (*task)->answer(**responses); !fits) {
        return std::unexpected(std::move(fits.error()));
      }
    } else if (extension) {
      (*task)->append_details(*members);
    } else {
      (*task)->append_state(*members);
    }
  }
  if (!members) return std::unexpected(members.error());
  catalog_->results().append(out, message.id, revision, *members);
  return true;
}

Result<std::string> TaskService::list(const json::object& params, const std::string& principal,
                                      const Revision& revision) const {
  const Result<std::optional<std::string>> cursor = decode_cursor(params);
  if (!cursor) return std::unexpected(cursor.error());
  const std::string purpose = std::string(kCursorPurpose) + principal;
  std::uint64_t after = 0;
  if (*cursor) {
    const std::optional<std::string> position =
        catalog_->results().sealer().open(**cursor, purpose);
    if (!position) {
      return fail(kInvalidParams, "Invalid params: cursor is not one that this list has given");
    }
    std::from_chars(position->data(), position->data() + position->size(), after);
  }
  const auto page_size = std::clamp<std::size_t>(catalog_->definition().page_size, 1, kMaxPage);
  std::vector<std::shared_ptr<TaskRecord>> tasks =
      tasks_->list(principal, revision, after, page_size + 1);
  const bool more = tasks.size() > page_size;
  if (more) tasks.pop_back();
  std::string out = R"("tasks":[)";
  for (const auto& task : tasks) {
    if (out.back() != '[') out.push_back(',');
    out.push_back('{');
    task->append_state(out);
    out.push_back('}');
  }
  out.push_back(']');
  if (more) {
    out.append(R"(,"nextCursor":)");
    append_json_string(
        out, catalog_->results().sealer().seal(std::to_string(tasks.back()->number()), purpose));
  }
  return out;
}

Result<std::string> TaskService::cancel(TaskRecord& task) {
  std::string members;
  const bool cancelled = task.cancel();
  if (task.revision().tasks == TaskModel::extension) return members;
  if (!cancelled) {
    return fail(kInvalidParams, "Cannot cancel task: already in terminal status '" +
                                    std::string(to_string(task.status())) + "'");
  }
  task.append_state(members);
  return members;
}

Result<bool> TaskService::result(const Message& message, RequestContext context,
                                 std::shared_ptr<Session> session, Caller& caller,
                                 const std::shared_ptr<TaskRecord>& task, std::string& out) {
  if (const std::optional<std::string> outcome = task->outcome()) {
    out.append(R"({"jsonrpc":"2.0","id":)").append(message.id).append(*outcome).append("}");
    return true;
  }
  const Result<std::shared_ptr<PendingRequest>> call =
      calls_->open({.id = message.id, .context = std::move(context), .session = std::move(session)},
                   caller, catalog_);
  if (!call) return std::unexpected(call.error());
  if (Result<void> waits = await_task_result(*call, task); !waits) (*call)->fail(waits.error());
  return false;
}

}  // namespace sluice
