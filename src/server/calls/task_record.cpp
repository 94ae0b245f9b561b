#include "server/calls/task_record.hpp"

#include <algorithm>
#include <mutex>
#include <utility>

#include "core/text/utf8.hpp"
#include "rpc/error_codes.hpp"
#include "rpc/message.hpp"
#include "server/calls/pending_request.hpp"
#include "server/calls/task_store.hpp"
#include "server/notifications/change_notifier.hpp"
#include "stream/stream_error.hpp"

namespace sluice {
namespace {

constexpr std::string_view kWaitsForClient = "The task waits for answers of its client.";

/// The most bytes of a `statusMessage`. A longer text is cut.
constexpr std::size_t kMaxStatusMessage = 1000;

/// The outcome in `response`, the response to TaskRecord::kRequestId: its last member, with the
/// comma before it.
std::string_view outcome_of(std::string_view response) {
  const std::size_t head =
      std::string_view(R"({"jsonrpc":"2.0","id":)").size() + TaskRecord::kRequestId.size();
  return response.substr(head, response.size() - head - 1);
}

std::string outcome_of(const Error& error) {
  std::string response;
  append_error(response, std::string(TaskRecord::kRequestId), error);
  return std::string(outcome_of(response));
}

}  // namespace

TaskRecord::TaskRecord(Details details, std::shared_ptr<TaskEnvironment> environment,
                       Executor& loop)
    : id_(std::move(details.id)),
      number_(details.number),
      principal_(std::move(details.principal)),
      revision_(details.revision),
      session_(std::move(details.session)),
      expires_(details.expires),
      environment_(std::move(environment)),
      loop_(&loop) {
  const TaskState::Time now = environment_->time_of_day();
  state_ = {.id = id_,
            .created = now,
            .updated = now,
            .ttl = details.ttl,
            .poll_interval = environment_->limits.poll_interval};
  if (revision_->tasks == TaskModel::requested) {
    meta_ = "\"" + std::string(kRelatedTaskKey) + R"(":{"taskId":)";
    append_json_string(meta_, id_);
    meta_.push_back('}');
  }
  environment_->running.fetch_add(1, std::memory_order_relaxed);
  if (const auto session = session_.lock()) session->add_task();
}

TaskRecord::~TaskRecord() {
  if (!ended()) stop_counting();
}

void TaskRecord::stop_counting() {
  environment_->running.fetch_sub(1, std::memory_order_relaxed);
  if (const auto session = session_.lock()) session->remove_task();
}

TaskStatus TaskRecord::status() const {
  const std::lock_guard lock(mutex_);
  return state_.status;
}

void TaskRecord::append_state(std::string& out) const {
  const std::lock_guard lock(mutex_);
  append_task(out, state_, *revision_);
}

void TaskRecord::append_details(std::string& out) const {
  const std::lock_guard lock(mutex_);
  append_task(out, state_, *revision_);
  if (state_.status == TaskStatus::input_required) {
    std::vector<const InputRequest*> missing;
    for (const auto& question : questions_) {
      for (const InputRequest* request : question->asked.missing()) missing.push_back(request);
    }
    out.push_back(',');
    append_input_requests(out, missing);
  } else if (state_.status == TaskStatus::completed || state_.status == TaskStatus::failed) {
    out.append(outcome_);
  }
}

std::optional<std::string> TaskRecord::outcome() const {
  const std::lock_guard lock(mutex_);
  if (!ended()) return std::nullopt;
  return outcome_;
}

bool TaskRecord::finish(TaskStatus status, std::string_view message, std::string outcome) {
  std::deque<std::shared_ptr<TaskQuestion>> unanswered;
  {
    const std::lock_guard lock(mutex_);
    if (ended()) return false;
    outcome_ = std::move(outcome);
    unanswered.swap(questions_);
    set_status(status, message);
    stop_counting();
  }
  // The callbacks that wait for answers belong to the loop, and may release the request.
  if (!unanswered.empty()) loop_->post([unanswered = std::move(unanswered)] {});
  return true;
}

bool TaskRecord::cancel() {
  static constexpr std::string_view kWhy = "The task was cancelled by request.";
  if (!finish(TaskStatus::cancelled, kWhy, outcome_of({kCancelled, std::string(kWhy), {}}))) {
    return false;
  }
  loop_->post([weak = request()] {
    if (const auto request = weak.lock()) request->cancel();
  });
  return true;
}

void TaskRecord::abandon(const Error& error) {
  if (!finish(TaskStatus::failed, error.message, outcome_of(error))) return;
  loop_->post([weak = request()] {
    if (const auto request = weak.lock()) request->cancel();
  });
}

void TaskRecord::abandon_stopped(const Error& error) {
  finish(TaskStatus::failed, error.message, outcome_of(error));
  if (const auto request = this->request().lock()) request->cancel();
}

void TaskRecord::forget(const Error& error) {
  abandon(error);
  const std::lock_guard lock(mutex_);
  state_.status = TaskStatus::failed;
  state_.message = error.message;
  outcome_ = outcome_of(error);
}

Result<void> TaskRecord::answer(const json::object& responses) {
  std::deque<std::shared_ptr<TaskQuestion>> answered;
  Result<void> all_taken;
  {
    const std::lock_guard lock(mutex_);
    // If one of them does not fit, none is taken.
    bool changed = false;
    for (const bool takes : {false, true}) {
      for (const auto& question : questions_) {
        AskedInputs& asked = question->asked;
        for (std::size_t i = 0; i < asked.requests().size(); ++i) {
          const json::value* const response = responses.if_contains(asked.requests()[i].key);
          if (response == nullptr || asked.answered(i)) continue;
          if (!takes) {
            if (Result<void> fits = asked.check(i, *response); !fits) return fits;
          } else if (Result<void> taken = asked.take(i, *response); !taken) {
            all_taken = std::move(taken);
          } else {
            changed = true;
          }
        }
        if (takes && asked.complete()) answered.push_back(question);
      }
    }
    if (!changed) return all_taken;
    std::erase_if(questions_, [&](const auto& question) {
      return std::ranges::find(answered, question) != answered.end();
    });
    if (questions_.empty()) {
      set_status(TaskStatus::working, {});
    } else {
      set_status(TaskStatus::input_required, kWaitsForClient);
    }
  }
  for (std::shared_ptr<TaskQuestion>& question : answered) {
    loop_->post([question = std::move(question)] { question->answer(question->asked.release()); });
  }
  return all_taken;
}

Result<void> TaskRecord::observe(Executor& loop, std::weak_ptr<TaskObserver> observer) {
  const std::lock_guard lock(mutex_);
  std::erase_if(observers_, [](const Observer& each) { return each.observer.expired(); });
  if (observers_.size() >= kMaxObservers) {
    return fail(kLimitReached, "As many as may (" + std::to_string(kMaxObservers) +
                                   ") wait for this task already; look at it with tasks/get");
  }
  observers_.push_back({&loop, std::move(observer)});
  return {};
}

std::shared_ptr<const TaskQuestion> TaskRecord::take_question(
    const std::shared_ptr<TaskObserver>& asker, const Fits& fits) {
  const std::lock_guard lock(mutex_);
  for (const auto& question : questions_) {
    if (!question->asker.expired() || !fits(question->asked.requests())) continue;
    question->asker = asker;
    return question;
  }
  return nullptr;
}

void TaskRecord::give_back(const std::shared_ptr<const TaskQuestion>& question) {
  const std::lock_guard lock(mutex_);
  const auto found = std::ranges::find(questions_, question);
  if (found == questions_.end()) return;
  (*found)->asker.reset();
  announce();
}

bool TaskRecord::is_open(const std::shared_ptr<const TaskQuestion>& question) const {
  const std::lock_guard lock(mutex_);
  return std::ranges::find(questions_, question) != questions_.end();
}

void TaskRecord::answer(const std::shared_ptr<const TaskQuestion>& question,
                        Result<std::vector<json::value>> answers) {
  std::shared_ptr<TaskQuestion> answered;
  {
    const std::lock_guard lock(mutex_);
    const auto found = std::ranges::find(questions_, question);
    if (found == questions_.end()) return;
    answered = std::move(*found);
    questions_.erase(found);
    set_status(questions_.empty() ? TaskStatus::working : TaskStatus::input_required, {});
  }
  loop_->post([question = std::move(answered), answers = std::move(answers)]() mutable {
    question->answer(std::move(answers));
  });
}

void TaskRecord::attach(const std::weak_ptr<PendingRequest>& request) {
  const std::lock_guard lock(mutex_);
  request_ = request;
}

std::weak_ptr<PendingRequest> TaskRecord::request() const {
  const std::lock_guard lock(mutex_);
  return request_;
}

std::optional<LoggingLevel> TaskRecord::logging_level() const {
  const std::shared_ptr<Session> session = session_.lock();
  return session == nullptr ? std::nullopt : std::optional(session->logging_level());
}

void TaskRecord::send(const std::shared_ptr<const std::string>& message) {
  // The extension has neither progress nor log messages for tasks.
  if (revision_->tasks != TaskModel::requested) return;
  const std::lock_guard lock(mutex_);
  if (ended()) return;
  for (const Observer& each : observers_) {
    if (each.observer.expired()) continue;
    each.loop->post([weak = each.observer, message] {
      if (const auto observer = weak.lock()) observer->on_task_message(*message);
    });
    return;
  }
  if (const auto session = session_.lock()) environment_->changes->send(session, {}, message);
}

void TaskRecord::make_unique(InputRequest& request) {
  const std::string wanted = request.key;
  for (std::size_t count = 2; !used_keys_.insert(request.key).second; ++count) {
    request.key = wanted + "-" + std::to_string(count);
  }
  if (meta_.empty()) return;
  json::value& meta = request.params["_meta"];
  if (!meta.is_object()) meta = json::object();
  meta.get_object()[kRelatedTaskKey] = json::object{{"taskId", id_}};
}

std::move_only_function<void()> TaskRecord::ask(std::vector<InputRequest> requests,
                                                TaskQuestion::Answer answer, MemoryHold memory) {
  if (requests.empty()) {
    answer(std::vector<json::value>());
    return {};
  }
  std::unique_lock lock(mutex_);
  if (ended()) return {};
  if (used_keys_.size() + requests.size() > kMaxQuestions) {
    lock.unlock();
    answer(fail(kLimitReached,
                "A task may ask at most " + std::to_string(kMaxQuestions) + " questions"));
    return {};
  }
  for (InputRequest& request : requests) make_unique(request);
  const auto question =
      std::make_shared<TaskQuestion>(AskedInputs(std::move(requests), std::move(memory)),
                                     std::move(answer), std::weak_ptr<TaskObserver>());
  questions_.push_back(question);
  set_status(TaskStatus::input_required, kWaitsForClient);
  return [weak = weak_from_this(), asked = std::weak_ptr(question)] {
    const auto task = weak.lock();
    const auto unanswered = asked.lock();
    if (task != nullptr && unanswered != nullptr) task->withdraw(unanswered);
  };
}

void TaskRecord::withdraw(const std::shared_ptr<TaskQuestion>& question) {
  const std::lock_guard lock(mutex_);
  if (std::erase(questions_, question) == 0) return;
  set_status(questions_.empty() ? TaskStatus::working : TaskStatus::input_required, {});
}

void TaskRecord::end(Ending ending, std::string_view why, std::string_view response) {
  // In 2025-11-25, a tool result that is an error makes the task a failed one. In SEP-2663, only a
  // JSON-RPC error does.
  const bool failed = ending == Ending::error ||
                      (ending == Ending::error_result && revision_->tasks == TaskModel::requested);
  if (is_terminal(status())) return;
  const std::string_view outcome = outcome_of(response);
  if (outcome.size() > environment_->max_result()) {
    const std::string too_large = "The result is larger than the " +
                                  std::to_string(environment_->max_result()) +
                                  " bytes that are kept";
    finish(TaskStatus::failed, too_large, outcome_of({kInternalError, too_large, {}}));
    return;
  }
  // Not with the lock held, because other tasks may be forgotten to make room. If this task is
  // cancelled meanwhile, its client is charged for these bytes until the task is forgotten.
  if (TaskStore* const store = environment_->store.load()) store->hold(*this, outcome.size());
  finish(failed ? TaskStatus::failed : TaskStatus::completed,
         ending == Ending::result ? std::string_view() : why, std::string(outcome));
}

void TaskRecord::set_status(TaskStatus status, std::string_view message) {
  state_.status = status;
  message = message.substr(0, kMaxStatusMessage);
  state_.message = message.substr(0, complete_utf8_prefix(message));
  state_.updated = std::max(state_.updated, environment_->time_of_day());
  announce();
}

void TaskRecord::announce() {
  for (const Observer& each : observers_) {
    each.loop->post([weak = each.observer] {
      if (const auto observer = weak.lock()) observer->on_task_change();
    });
  }
  if (revision_->tasks != TaskModel::requested) return;
  const auto session = session_.lock();
  if (session == nullptr) return;
  std::string message = R"({"jsonrpc":"2.0","method":"notifications/tasks/status","params":{)";
  append_task(message, state_, *revision_);
  message.append("}}");
  environment_->changes->send(session, id_,
                              std::make_shared<const std::string>(std::move(message)));
}

}  // namespace sluice
