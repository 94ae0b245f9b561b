#include "agent/tools/client_tools.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <optional>
#include <utility>

#include "agent/history/tool_name.hpp"
#include "client/api/client_connection.hpp"
#include "client/backoff.hpp"
#include "client/session/contract/server_link.hpp"
#include "core/log/log.hpp"
#include "core/text/text.hpp"
#include "json/members.hpp"
#include "net/http/status_codes.hpp"
#include "protocol/log_message.hpp"
#include "protocol/revision.hpp"
#include "rpc/error_codes.hpp"

namespace sluice {
namespace {

bool hint(const json::object& annotations, std::string_view name, bool otherwise) {
  const json::value* const value = annotations.if_contains(name);
  return value == nullptr || !value->is_bool() ? otherwise : value->get_bool();
}

/// Whether a call may have been carried out that has ended with this error: no answer came in time,
/// the connection broke, or something before the server gave up waiting for it, which those of
/// Cloudflare say with codes of their own. Some say 503 also of a request that they have passed on.
bool leaves_open(int code) {
  constexpr std::array<int, 9> kCodes = {kTimedOut,
                                         kRequestTimedOut,
                                         kInternalServerError,
                                         kBadGateway,
                                         kServiceUnavailable,
                                         kGatewayTimeout,
                                         520,
                                         522,
                                         524};
  return std::ranges::find(kCodes, code) != kCodes.end();
}

/// Whether a server that answers so to a question for the state of a task may answer it later. If
/// it is busy or not reached, the client asks again.
bool is_fault_of_server(int code) {
  return code == kInternalError || code == kInternalServerError;
}

bool is_line_break(char c) {
  return c == '\n' || c == '\r';
}

std::string text_of_blocks(const json::array& blocks) {
  std::string out;
  for (const json::value& block : blocks) {
    const std::string text = text_of_block(block);
    if (!out.empty() && !text.empty()) out += "\n";
    out += text;
  }
  return out;
}

}  // namespace

std::string text_for_model(const json::object& result) {
  const json::value* const content = result.if_contains("content");
  std::string out = content != nullptr && content->is_array() ? text_of_blocks(content->get_array())
                                                              : std::string();
  const json::value* const structured = result.if_contains("structuredContent");
  if (out.empty() && structured != nullptr) out = to_json(*structured);
  return out;
}

/// Which calls run at each server. Shared with what is posted.
class ClientTools::Running {
 public:
  void add(const std::string& server, Call& call) { calls_[server].push_back(&call); }
  void remove(const std::string& server, Call& call) { std::erase(calls_[server], &call); }
  /// The only call at this server, or null.
  [[nodiscard]] Call* only(const std::string& server) {
    const auto& calls = calls_[server];
    return calls.size() == 1 ? calls.front() : nullptr;
  }

 private:
  std::map<std::string, std::vector<Call*>> calls_;  // by the label of the server
};

/// A call, which reads its events one by one. Belongs to the loop.
class ClientTools::Call final : public ToolCall {
 public:
  Call(Executor& loop, std::shared_ptr<Running> running, const Place& place, const AgentTool& tool,
       Duration task_patience, std::shared_ptr<ToolCallSink> sink)
      : loop_(&loop),
        running_(std::move(running)),
        tool_(&tool),
        task_patience_(task_patience),
        server_(place.label),
        client_(place.client),
        sink_(std::move(sink)),
        alive_(std::make_shared<Call*>(this)) {
    running_->add(server_, *this);
  }
  ~Call() override {
    *alive_ = nullptr;
    running_->remove(server_, *this);
    const bool has_ended = has_task_ended_ || (answer_ && *answer_);
    if (!task_.empty() && !has_ended) cancel_task();
  }
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  void pause(bool is_paused) override {
    is_paused_ = is_paused;
    if (!is_paused) later();
  }
  void leave() override {
    task_.clear();
    if (leave_) leave_();
  }
  [[nodiscard]] TimePoint asked_until() const override {
    return client_.connection()->asked_until();
  }

  void begin(PendingCall<ToolReply> call) { read_from(std::move(call)); }
  /// The answer may be a task.
  void begin(PendingCall<RemoteTask<ToolReply>> call) {
    may_be_task_ = true;
    read_from(std::move(call));
  }
  /// Goes on with a call. `begin_anew` begins it again if that is not possible; empty: its end is
  /// unknown then.
  void take_up(const std::string& position, std::function<void(Call&)> begin_anew) {
    begin_anew_ = std::move(begin_anew);
    may_be_task_ = true;
    CallOptions options = call_options();
    options.event_params = false;
    read_from(client_.resume<RemoteTask<ToolReply>>(position, std::move(options)));
  }
  /// Waits for the end of this task.
  void follow(std::string task) {
    task_ = std::move(task);
    CallOptions options = call_options();
    options.idle_timeout = task_patience_;
    read_from(client_.task(task_).wait(std::move(options)));
  }
  static CallOptions call_options() {
    // The run has timeouts of its own, and says how much may wait.
    return {.idle_timeout = std::chrono::nanoseconds(0),
            .log_level = "info",
            .resumable = true,
            .holds_up = true};
  }
  void fail_later(Error why) {
    answer_ = std::unexpected(std::move(why));
    later();
  }
  /// Whether its request or task is under way at the server.
  [[nodiscard]] bool is_open() const { return is_open_ && is_open_(); }
  /// Log messages cannot be held up: those that come while nobody takes output are lost.
  void take_log(std::string text) {
    is_paused_ ? void(++dropped_) : write({.text = std::move(text)});
  }

 private:
  using Answer = std::expected<json::object, Error>;

  template <class Out>
  void read_from(PendingCall<Out> call) {
    const auto kept = std::make_shared<PendingCall<Out>>(std::move(call));
    next_ = [kept](auto done) { kept->on_next(std::move(done)); };
    last_ = [kept](auto done) { kept->on_answer(std::move(done)); };
    leave_ = [kept] { kept->leave(); };
    is_open_ = [kept] { return !kept->is_ready(); };
    later();
  }

  /// Nobody waits for the task, which would go on.
  void cancel_task() {
    try {
      const auto asked = std::make_shared<PendingCall<json::object>>(
          client_.request("tasks/cancel", {{"taskId", task_}}));
      asked->on_answer([asked](const Answer& /*answer*/) {});
    } catch (const Error& error) {
      log_debug("a task could not be cancelled", {{"why", std::string_view(error.message)}});
    }
  }

  void later() {
    loop_->post([alive = alive_] {
      if (*alive != nullptr) (*alive)->read();
    });
  }

  /// Takes what there is, until nothing is, or nobody wants more.
  void read() {
    if (answer_) return end();
    while (!is_paused_ && !is_waiting_ && !is_answering_) {
      is_waiting_ = true;
      is_reading_ = true;
      const auto alive = alive_;
      next_([alive](std::optional<CallEvent> event) {
        if (*alive != nullptr) (*alive)->take(std::move(event));
      });
      if (*alive == nullptr) return;
      is_reading_ = false;
    }
  }

  void take(std::optional<CallEvent> event) {
    is_waiting_ = false;
    if (!event) {
      is_answering_ = true;
      last_([alive = alive_](Answer answer) {
        if (*alive != nullptr) (*alive)->take_answer(std::move(answer));
      });
      return;
    }
    const bool was_reading = is_reading_;
    const auto alive = alive_;
    std::string position = std::move(event->resumption);
    if (!event->has_no_message) tell(*std::move(event));
    if (*alive != nullptr && !position.empty()) sink_->on_position(std::move(position));
    // Within read(), its loop goes on.
    if (*alive != nullptr && !was_reading) read();
  }

  void take_answer(Answer answer) {
    const auto begin_anew = std::exchange(begin_anew_, {});
    if (begin_anew && !answer && answer.error().code == kLostConnection) {
      is_answering_ = false;
      is_restart_ = true;
      try {
        return begin_anew(*this);
      } catch (const Error& error) {
        answer = std::unexpected(error);
      }
    }
    if (answer && std::exchange(may_be_task_, false)) {
      const RemoteTask<ToolReply> task(detail::ClientTask(client_.connection(), *answer));
      if (!task.id().empty()) {
        is_answering_ = false;
        const auto alive = alive_;
        sink_->on_task(task.id());
        if (*alive != nullptr) follow(task.id());
        return;
      }
    }
    if (!answer && !task_.empty() && !has_task_ended_ && is_fault_of_server(answer.error().code)) {
      if (const auto pause = state_retries_.next()) return follow_later(*pause);
    }
    answer_ = std::move(answer);
    later();
  }
  void follow_later(Duration pause) {
    loop_->schedule_at(loop_->clock().now() + pause, [alive = alive_] {
      if (*alive == nullptr || (*alive)->task_.empty()) return;
      (*alive)->is_answering_ = false;
      (*alive)->follow((*alive)->task_);
    });
  }

  void write(ToolChunk chunk) {
    chunk.dropped += std::exchange(dropped_, 0);
    sink_->on_output(std::move(chunk));
  }

  /// What stands in a part of the result: each block of its content, or else what is structured.
  static std::vector<ToolChunk> chunks_of(const json::object& part) {
    std::vector<ToolChunk> chunks;
    const json::value* const content = part.if_contains("content");
    const bool has_blocks = content != nullptr && !content->get_array().empty();
    const json::object* const structured = object_at(part, "structuredContent");
    if (!has_blocks && structured != nullptr) chunks.push_back({.text = to_json(*structured)});
    if (!has_blocks) return chunks;
    for (const json::value& each : content->get_array()) {
      const json::object* const block = each.if_object();
      if (block == nullptr) continue;
      if (text_at(*block, "type") != "text") {
        chunks.push_back({.content = *block});
      } else if (const std::string_view text = text_at(*block, "text"); !text.empty()) {
        chunks.push_back({.text = std::string(text)});
      }
    }
    return chunks;
  }

  void tell(CallEvent event) {
    if (event.is_partial_result) {
      dropped_ += event.dropped;
      const auto alive = alive_;
      for (ToolChunk& each : chunks_of(event.params)) {
        write(std::move(each));
        if (*alive == nullptr) return;
      }
      return;
    }
    is_restart_ = is_restart_ || event.is_restart;
    if (event.is_log) {
      if (!event.message.empty()) write_message(std::move(event));
      return;
    }
    if (event.params.contains("status")) return tell_status(event);
    if (event.message.empty() || event.total) {
      return sink_->on_progress(event.progress, event.total, event.message);
    }
    write_message(std::move(event));
  }
  void tell_status(const CallEvent& event) {
    const std::string_view status = text_at(event.params, "status");
    state_retries_.reset();
    // The end of the call says more.
    has_task_ended_ = status == "completed" || status == "failed" || status == "cancelled";
    if (has_task_ended_) return;
    std::string line(status);
    if (const auto message = text_at(event.params, "statusMessage"); !message.empty()) {
      line.append(", ").append(message);
    }
    std::ranges::replace_if(line, is_line_break, ' ');
    if (line == told_status_) return;
    told_status_ = line;
    write({.text = "[status: " + line + "]\n", .dropped = event.dropped});
  }
  void write_message(CallEvent event) {
    write({.text = std::move(event.message),
           .dropped = event.dropped,
           .is_restart = std::exchange(is_restart_, false)});
  }

  void end() {
    const auto sink = sink_;
    ToolEnd end;
    if (!*answer_) {
      const Error& error = answer_->error();
      // Of a task that has begun, its server cannot say how it has ended.
      const bool is_lost = leaves_open(error.code) || (!task_.empty() && !has_task_ended_);
      if (error.code == kCancelled) {
        end = {.status = ToolEnd::Status::cancelled, .text = "The tool failed: " + error.message};
      } else if (is_lost) {
        end = lost_end(*tool_, error.message);
      } else {
        end = {.status = ToolEnd::Status::failed, .text = "The tool failed: " + error.message};
      }
    } else {
      end.result = std::move(**answer_);
      end.text = text_for_model(end.result);
      if (hint(end.result, "isError", false)) {
        end.status = ToolEnd::Status::failed;
        end.text = "The tool failed: " + end.text;
      }
    }
    sink->on_end(std::move(end));
  }

  Executor* loop_;
  std::shared_ptr<Running> running_;
  const AgentTool* tool_;
  Duration task_patience_;  // with the server of a task
  std::string server_;
  Client client_;
  std::shared_ptr<ToolCallSink> sink_;
  std::shared_ptr<Call*> alive_;  // what is posted looks here
  // Of the request that is read:
  std::function<void(std::move_only_function<void(std::optional<CallEvent>)>)> next_;
  std::function<void(std::move_only_function<void(Answer)>)> last_;
  std::function<void()> leave_;
  std::function<bool()> is_open_;
  std::function<void(Call&)> begin_anew_;  // if it cannot be taken up
  std::string task_;                       // that ends with the call; empty: none
  std::string told_status_ = "working";    // of the task; each begins so
  Backoff state_retries_;                  // while its server fails to say its state
  bool has_task_ended_ = false;            // as its server has said
  bool may_be_task_ = false;               // the answer to come
  std::optional<Answer> answer_;
  std::uint64_t dropped_ = 0;  // pieces of output, since the last one that was told
  bool is_restart_ = false;    // the next piece, unless it is a part of the result
  bool is_paused_ = false;
  bool is_waiting_ = false;    // for an event
  bool is_answering_ = false;  // there are no further events
  bool is_reading_ = false;
};

ClientTools::ClientTools(Executor& loop, bool prefers_tasks, bool wants_parts)
    : loop_(&loop),
      prefers_tasks_(prefers_tasks),
      wants_parts_(wants_parts),
      running_(std::make_shared<Running>()) {}

ClientTools::~ClientTools() {
  for (const Place& each : servers_) each.client.connection()->unlisten(each.listening);
}

void ClientTools::add(AgentServer server, const std::vector<Listed>& listed) {
  const std::string& label = server.label;
  const Client& client = server.client;
  const auto is_taken = [&](const std::string& name) { return !names_.insert(name).second; };
  for (const Listed& each : listed) {
    std::string name = name_for_model(each.name);
    if (is_taken(name)) {
      name = name_for_model(label + "_" + each.name);
      while (is_taken(name)) {
        const std::string number = "_" + std::to_string(++last_number_);
        name = name_for_model(each.name).substr(0, kMaxNameForModel - number.size()) + number;
      }
    }
    const json::object* const annotations = object_at(each.definition, "annotations");
    const json::object* const schema = object_at(each.definition, "inputSchema");
    const json::object hints = annotations == nullptr ? json::object() : *annotations;
    tools_.push_back({.name = std::move(name),
                      .description = each.description,
                      .input_schema = schema == nullptr ? json::object() : *schema,
                      .is_read_only = hint(hints, "readOnlyHint", false),
                      .is_idempotent = hint(hints, "idempotentHint", false),
                      .server = label});
    remotes_.push_back({.server = servers_.size(),
                        .name = each.name,
                        .may_become_task = may_become_task(client, each.definition)});
  }
  const std::uint64_t listening = client.connection()->listen(
      // Whoever listens does not outlive the connection.
      [running = running_, label, connection = client.connection().get()](
          std::string_view method, const json::object& params) {
        if (method != "notifications/message") return;
        Call* const call = running->only(label);
        const bool is_its_own = call != nullptr && call->is_open() && connection->under_way() == 1;
        std::string text = is_its_own ? text_of_log_message(params) : std::string();
        if (!text.empty()) call->take_log(std::move(text));
      });
  std::string identity = server.identity.empty() ? label : server.identity;
  servers_.push_back({.label = std::move(server.label),
                      .identity = std::move(identity),
                      .client = std::move(server.client),
                      .listening = listening});
}

bool ClientTools::may_become_task(const Client& client, const json::object& tool) const {
  const json::object* const execution = object_at(tool, "execution");
  const std::string_view support =
      execution == nullptr ? std::string_view() : text_at(*execution, "taskSupport");
  if (support == "required" || !prefers_tasks_) return support == "required";
  // Servers of 2026-07-28 decide at the call; before, a tool that says nothing must not be asked.
  const Revision* const revision = find_revision(client.revision());
  return support == "optional" || (revision != nullptr && revision->tasks == TaskModel::extension);
}

std::unique_ptr<ToolCall> ClientTools::start(const AgentTool& tool, ToolRequest request,
                                             std::shared_ptr<ToolCallSink> sink) {
  const Remote& remote = remote_of(tool);
  Place& place = servers_[remote.server];
  auto call =
      std::make_unique<Call>(*loop_, running_, place, tool, request.idle_timeout, std::move(sink));
  auto begin = [client = place.client, &remote, wants_parts = wants_parts_,
                arguments = std::move(request.arguments),
                meta = std::move(request.meta)](Call& beginning) mutable {
    CallOptions options = Call::call_options();
    options.event_params = false;
    options.meta = std::move(meta);
    options.partial_results = wants_parts;
    if (remote.may_become_task) {
      beginning.begin(client.start(remote.name, std::move(arguments), std::move(options)));
    } else {
      beginning.begin(client.call(remote.name, std::move(arguments), std::move(options)));
    }
  };
  try {
    if (!request.task.empty()) {
      call->follow(std::move(request.task));
    } else if (!request.position.empty()) {
      call->take_up(request.position,
                    tool.is_read_only ? std::function<void(Call&)>(std::move(begin)) : nullptr);
    } else {
      begin(*call);
    }
  } catch (const Error& error) {
    call->fail_later(error);
  }
  return call;
}

}  // namespace sluice
