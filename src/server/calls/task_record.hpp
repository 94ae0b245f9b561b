#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/clock.hpp"
#include "core/error.hpp"
#include "core/executor.hpp"
#include "json/json.hpp"
#include "protocol/input_answers.hpp"
#include "protocol/logging_level.hpp"
#include "protocol/revision.hpp"
#include "protocol/task.hpp"
#include "server/sessions/session.hpp"

namespace sluice {

class ChangeNotifier;
class PendingRequest;
class TaskStore;

struct TaskLimits {
  std::size_t max_tasks = 10'000;  // held, ended ones included
  std::size_t per_client = 100;    // the same, of one client
  /// A task and its result are kept for this long from its creation, unless its client asks for
  /// another time of at most `max_ttl`.
  std::chrono::milliseconds ttl = std::chrono::hours(1);
  std::chrono::milliseconds max_ttl = std::chrono::hours(24);
  std::chrono::milliseconds poll_interval = std::chrono::seconds(1);  // recommended to clients
  std::size_t max_result = std::size_t{4} << 20U;       // bytes of one; at most half of all
  std::size_t result_memory = std::size_t{256} << 20U;  // bytes of all results
};

/// What the tasks of a server share. Thread-safe.
struct TaskEnvironment {
  TaskEnvironment(TaskLimits task_limits, ChangeNotifier& announced,
                  std::function<TaskState::Time()> wall_clock)
      : limits(task_limits), changes(&announced), time_of_day(std::move(wall_clock)) {}

  [[nodiscard]] std::size_t max_result() const {
    return std::min(limits.max_result, limits.result_memory / 2);
  }

  const TaskLimits limits;
  ChangeNotifier* const changes;
  const std::function<TaskState::Time()> time_of_day;
  /// The store that keeps the tasks. Null once it has been destroyed, which is after the loops have
  /// stopped.
  std::atomic<TaskStore*> store = nullptr;
  std::atomic<std::size_t> running = 0;
};

/// Is told what happens to a task. Called on the observer's loop, as long as the observer exists.
class TaskObserver {
 public:
  virtual ~TaskObserver() = default;
  /// The state or the open questions of the task have changed.
  virtual void on_task_change() = 0;
  /// `message` is a whole notification of the task's request, for its client.
  virtual void on_task_message(const std::string& /*message*/) {}
};

/// A question to the client while a task runs: requests that are answered together.
struct TaskQuestion {
  using Answer = std::move_only_function<void(Result<std::vector<json::value>>)>;

  AskedInputs asked;  // the requests in it do not change
  Answer answer;
  std::weak_ptr<TaskObserver> asker;  // which sends the question to the client
};

/// A task: a request that goes on after it was answered with the id of the task. The record has the
/// task's state, its questions to the client and, at the end, its result (2025-11-25, Tasks;
/// SEP-2663). Requests about the task may be on any loop, so this class is thread-safe, except
/// where it says otherwise.
class TaskRecord final : public std::enable_shared_from_this<TaskRecord> {
 public:
  struct Details {
    std::string id;
    std::uint64_t number;  // in the order of creation
    std::string principal;
    const Revision* revision;
    std::weak_ptr<Session> session;  // of its creator
    std::chrono::milliseconds ttl;
    TimePoint expires;
  };

  TaskRecord(Details details, std::shared_ptr<TaskEnvironment> environment, Executor& loop);
  ~TaskRecord();
  TaskRecord(const TaskRecord&) = delete;
  TaskRecord& operator=(const TaskRecord&) = delete;

  [[nodiscard]] const std::string& id() const { return id_; }
  [[nodiscard]] std::uint64_t number() const { return number_; }
  [[nodiscard]] const std::string& principal() const { return principal_; }
  [[nodiscard]] const Revision& revision() const { return *revision_; }
  [[nodiscard]] TimePoint expires() const { return expires_; }
  /// The member of `_meta` that messages of the task carry; empty in revisions that have none.
  [[nodiscard]] const std::string& meta() const { return meta_; }

  // --- what its client sees ------------------------------------------------------------------

  [[nodiscard]] TaskStatus status() const;
  /// Appends the members of the Task in the form of its revision.
  void append_state(std::string& out) const;
  /// Appends the members of the DetailedTask of SEP-2663, which include its input requests, its
  /// result or its error.
  void append_details(std::string& out) const;
  /// The answer of the request: the member `result` or `error` of the response, with a comma before
  /// it. Nothing until the task has ended.
  [[nodiscard]] std::optional<std::string> outcome() const;

  // --- what its client does ------------------------------------------------------------------

  /// Cancels the task and stops its request. Returns false if it has already ended.
  bool cancel();
  /// Takes the client's responses, by the keys of the open requests; other keys are ignored. Error:
  /// -32602 if a response does not fit its request; then none is taken. kLimitReached if there is
  /// no memory for a response; the others are taken.
  Result<void> answer(const json::object& responses);
  /// Tells `observer` of changes from now on, on `loop`. Error: kLimitReached if there are
  /// kMaxObservers already.
  Result<void> observe(Executor& loop, std::weak_ptr<TaskObserver> observer);

  /// Gives `asker` the first question that no observer has and for which `fits` returns true.
  /// `asker` sends it to the client, and has it until it is answered or given back, or until
  /// `asker` is destroyed. Null if there is no such question.
  using Fits = std::function<bool(const std::vector<InputRequest>& requests)>;
  std::shared_ptr<const TaskQuestion> take_question(const std::shared_ptr<TaskObserver>& asker,
                                                    const Fits& fits);
  void give_back(const std::shared_ptr<const TaskQuestion>& question);
  /// Whether the question still waits for an answer.
  [[nodiscard]] bool is_open(const std::shared_ptr<const TaskQuestion>& question) const;
  void answer(const std::shared_ptr<const TaskQuestion>& question,
              Result<std::vector<json::value>> answers);

  /// Ends the task with `error`, and stops its request.
  void abandon(const Error& error);
  /// The same, for a task whose loop has stopped. Call it on any thread.
  void abandon_stopped(const Error& error);

  /// Called when the task is not kept any longer. Replaces its result by `error`, so that those who
  /// still hold the record do not keep that memory in use. A running task is abandoned.
  void forget(const Error& error);

  static constexpr std::size_t kMaxObservers = 64;
  static constexpr std::size_t kMaxQuestions = 1000;  // that a task asks, answered ones too

  // --- what its request does; on its loop ----------------------------------------------------

  /// The request id in the responses of requests that run as tasks.
  static constexpr std::string_view kRequestId = "0";

  void attach(const std::weak_ptr<PendingRequest>& request);
  /// The least severe level of the log messages that its client wants. Empty: none.
  [[nodiscard]] std::optional<LoggingLevel> logging_level() const;
  /// Sends a whole notification to the first observer or, if there is none, to the session.
  void send(const std::shared_ptr<const std::string>& message);
  /// Asks the client. A key that the task has used before is changed. `memory` is for AskedInputs.
  /// The returned function, which may be empty, withdraws what has not been answered.
  std::move_only_function<void()> ask(std::vector<InputRequest> requests,
                                      TaskQuestion::Answer answer,
                                      MemoryHold memory = MemoryHold());
  /// How a request has ended.
  enum class Ending : std::uint8_t { result, error_result, error };
  /// Ends the task. `response` is the whole response to kRequestId, and `why` says what went wrong.
  void end(Ending ending, std::string_view why, std::string_view response);

 private:
  struct Observer {
    Executor* loop;
    std::weak_ptr<TaskObserver> observer;
  };

  void withdraw(const std::shared_ptr<TaskQuestion>& question);
  /// The task no longer counts as running.
  void stop_counting();
  bool finish(TaskStatus status, std::string_view message, std::string outcome);
  std::weak_ptr<PendingRequest> request() const;
  // With the lock held.
  void set_status(TaskStatus status, std::string_view message);
  void announce();
  void make_unique(InputRequest& request);
  [[nodiscard]] bool ended() const { return is_terminal(state_.status); }

  const std::string id_;
  const std::uint64_t number_;
  const std::string principal_;
  const Revision* const revision_;
  const std::weak_ptr<Session> session_;
  const TimePoint expires_;
  const std::shared_ptr<TaskEnvironment> environment_;
  Executor* const loop_;
  std::string meta_;

  mutable std::mutex mutex_;
  TaskState state_;
  std::string outcome_;
  std::weak_ptr<PendingRequest> request_;
  std::deque<std::shared_ptr<TaskQuestion>> questions_;
  std::set<std::string, std::less<>> used_keys_;
  std::vector<Observer> observers_;
};

}  // namespace sluice
