#include "client/session/task_follower.hpp"

#include <algorithm>
#include <utility>

#include "client/reply.hpp"
#include "json/members.hpp"
#include "protocol/task.hpp"
#include "rpc/error_codes.hpp"

namespace sluice {
namespace {

bool has_ended(std::string_view status) {
  return status == to_string(TaskStatus::completed) || status == to_string(TaskStatus::failed);
}

bool is_known(std::string_view status) {
  return has_ended(status) || status == to_string(TaskStatus::working) ||
         status == to_string(TaskStatus::input_required) ||
         status == to_string(TaskStatus::cancelled);
}

}  // namespace

std::string_view related_task(const json::object& params) {
  const json::object* const meta = object_at(params, "_meta");
  const json::object* const task = meta == nullptr ? nullptr : object_at(*meta, kRelatedTaskKey);
  return task == nullptr ? std::string_view() : text_at(*task, "taskId");
}

TaskFollower::TaskFollower(ClientSession& session, Executor& loop, Questions& questions,
                           std::string id, const RequestOptions& options,
                           RequestCallbacks callbacks)
    : SessionActivity(session, loop, options, std::move(callbacks)),
      questions_(&questions),
      id_(std::move(id)) {}

void TaskFollower::on_stop() {
  for (const auto& [key, question] : open_inputs_) questions_->withdraw(question);
}

bool TaskFollower::is_extension() {
  return session().server().revision->tasks == TaskModel::extension;
}

void TaskFollower::poll() {
  poll_ = ask("tasks/get", {{"taskId", id_}}, {.idle_timeout = options().idle_timeout},
              [this](Result<json::object> answer) { on_polled(std::move(answer)); });
}

void TaskFollower::on_polled(Result<json::object> answer) {
  poll_ = 0;
  if (answer) {
    failed_polls_ = 0;
    return take(*answer);
  }
  if (!is_passing(answer.error()) || ++failed_polls_ > kMaxFailures) return end(std::move(answer));
  later(interval_, [this] { poll(); });
}

void TaskFollower::take(const json::object& state) {
  const bool by_extension = is_extension();
  const std::string_view status = text_at(state, "status");
  // Who waits for such a task would wait for ever.
  if (!is_known(status)) {
    return end(fail(kInternalError, "The server gives the task no status that this client knows"));
  }
  std::string seen(status);
  seen.append(" ").append(text_at(state, "statusMessage"));
  if (seen_ != seen) {
    seen_ = std::move(seen);
    report(state);
    if (is_over()) return;
  }
  const json::value* const wanted =
      state.if_contains(by_extension ? "pollIntervalMs" : "pollInterval");
  if (wanted != nullptr && wanted->is_int64()) {
    constexpr std::int64_t kLongest =
        std::chrono::duration_cast<std::chrono::milliseconds>(kLongestInterval).count();
    const auto interval = std::chrono::milliseconds(std::min(wanted->get_int64(), kLongest));
    interval_ = std::max<Duration>(interval, kShortestInterval);
  }
  if (status == to_string(TaskStatus::cancelled)) {
    std::string why = "The task was cancelled";
    if (const auto message = text_at(state, "statusMessage"); !message.empty()) {
      why.append(": ").append(message);
    }
    return end(fail(kCancelled, std::move(why)));
  }
  if (has_ended(status) && !by_extension) {
    ask_for_result(true);
  } else if (status == to_string(TaskStatus::completed)) {
    const json::object* const result = object_at(state, "result");
    if (result == nullptr) {
      return end(fail(kInternalError, "The server's completed task has no result"));
    }
    return end(json::object(*result, json::storage_ptr()));
  } else if (status == to_string(TaskStatus::failed)) {
    const auto error = error_of(state);
    return end(std::unexpected(
        error ? *error
              : Error(kInternalError, "The task has failed, and the server says not why")));
  } else if (status == to_string(TaskStatus::input_required)) {
    by_extension ? take_questions(state) : ask_for_result(false);
  }
  if (is_over()) return;
  if (by_extension && !std::exchange(has_listened_, true)) listen();
  later(interval_, [this] {
    // What is under way sets the timer again.
    if (poll_ == 0) poll();
  });
}

void TaskFollower::listen() {
  RequestOptions request;
  request.idle_timeout = {};
  request.may_become_task = true;
  listening_ = ask("subscriptions/listen", {{"notifications", {{"taskIds", json::array{id_}}}}},
                   request, [this](const Result<json::object>& /*answer*/) {
                     // The server tells no more, or never did: the polls go on.
                     listening_ = 0;
                   });
}

bool TaskFollower::on_notification(std::string_view method, const json::object& params) {
  if (method == "notifications/progress") {
    if (related_task(params) == id_) report(json::object(params, json::storage_ptr()));
    return false;
  }
  const bool is_own = is_subscription(listening_, params);
  const bool is_state = method == "notifications/tasks/status" || method == "notifications/tasks";
  if (is_state && text_at(params, "taskId") == id_) take(params);
  return is_own;
}

void TaskFollower::ask_for_result(bool has_ended) {
  if (result_ != 0 && result_waits_ && has_ended) drop(std::exchange(result_, 0));
  if (result_ != 0) return;
  result_waits_ = !has_ended;
  // Before the task has ended, the server answers when it ends.
  result_ = ask("tasks/result", {{"taskId", id_}},
                {.idle_timeout = has_ended ? options().idle_timeout : Duration()},
                [this](Result<json::object> answer) {
                  result_ = 0;
                  const bool is_lost = !answer && is_passing(answer.error());
                  // The next state asks for it again.
                  if (!is_lost || ++failed_results_ > kMaxFailures) end(std::move(answer));
                });
}

void TaskFollower::take_questions(const json::object& state) {
  auto inputs = questions_->inputs_of(
      state, [this](std::string_view key) { return !seen_inputs_.contains(std::string(key)); });
  if (inputs && seen_inputs_.size() + inputs->size() > kMaxQuestions) {
    inputs = fail(kLimitReached,
                  "The task asks more than " + std::to_string(kMaxQuestions) + " questions");
  }
  if (!inputs) return end(std::unexpected(std::move(inputs.error())));
  for (AskedInput& input : *inputs) {
    seen_inputs_.insert(input.key);
    std::uint64_t& question = open_inputs_[input.key];
    std::string key = input.key;
    question = questions_->ask(std::move(input), number(),
                               [this, key = std::move(key)](Result<json::object> answer) {
                                 on_input(key, std::move(answer));
                               });
  }
  send_answers();
}

void TaskFollower::on_input(const std::string& key, Result<json::object> answer) {
  // It is not over: then its questions would have been withdrawn.
  open_inputs_.erase(key);
  if (!answer) return end(std::move(answer));
  answers_[key] = *std::move(answer);
  send_answers();
}

void TaskFollower::send_answers() {
  if (answers_.empty() || update_ != 0) return;
  sent_answers_ = std::exchange(answers_, {});
  update_ = ask("tasks/update", {{"taskId", id_}, {"inputResponses", sent_answers_}},
                {.idle_timeout = options().idle_timeout}, [this](Result<json::object> answer) {
                  update_ = 0;
                  if (answer) {
                    failed_updates_ = 0;
                    return send_answers();
                  }
                  if (!is_passing(answer.error()) || ++failed_updates_ > kMaxFailures) {
                    return end(std::move(answer));
                  }
                  // They are sent again with the next state that has questions.
                  for (const auto& [key, value] : sent_answers_) answers_[key] = value;
                });
}

}  // namespace sluice
