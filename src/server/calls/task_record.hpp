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
  std::size_t per_client = 100;    // the same of one principal
  /// A task and its result are kept for this long from its creation, unless its client asks for
  /// another time of at most `max_ttl`.
  std::chrono::milliseconds ttl = std::chrono::hours(1);
  std::chrono::milliseconds max_ttl = std::chrono::hours(24);
  std::chrono::milliseconds poll_interval = std::chrono::seconds(1);  // recommended to clients
  std::size_t max_result = std::size_t{4} << 20U;       // bytes of one; never above half of all
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
  /// Where the tasks are kept. Null when it has gone, which is after the loops have stopped.
  std::atomic<TaskStore*> store = nullptr;
  std::atomic<std::size_t> running = 0;
};

/// Somebody who waits for what becomes of a task. Called on the observer's loop, as long as it
/// lives.
class TaskObserver {
 public:
  virtual ~TaskObserver() = default;
  /// The task is in another state than before, or asks something else.
  virtual void on_task_change() = 0;
  /// A whole notification of the task's request, for its client.
  virtual void on_task_message(const std::string& /*message*/) {}
};

/// One question to the client while a task runs: requests that are answered together.
struct TaskQuestion {
  using Answer = std::move_only_function<void(Result<std::vector<json::value>>)>;

  AskedInputs asked;  // of which the requests do not change
  Answer answer;
  std::weak_ptr<TaskObserver> asker;  // who has put it to the client
};

/// A request that goes on after its answer, and what is kept of it: its state, its questions to the
/// client and at last its result (2025-11-25, Tasks; SEP-2663). Requests about it may be on any
/// loop: thread-safe, except what says otherwise.
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
  /// The member of `_meta` that messages of the task carry; empty in revisions without.
  [[nodiscard]] const std::string& meta() const { return meta_; }

  // --- what its client sees ------------------------------------------------------------------

  [[nodiscard]] TaskStatus status() const;
  /// Appends the members of the Task in the form of its revision.
  void append_state(std::string& out) const;
  /// The same of the DetailedTask of SEP-2663: with what it asks, its result or its error.
  void append_details(std::string& out) const;
  /// How the request was answered: the member `result` or `error` of the response with a comma
  /// before it. Nothing before the task has ended.
  [[nodiscard]] std::optional<std::string> outcome() const;

  // --- what its client does ------------------------------------------------------------------

  /// Stops the request. False: it has ended before.
  bool cancel();
  /// Responses by the keys of what is asked; others are ignored. -32602 if one does not fit what it
  /// answers: none is taken then that comes behind it, and the task goes on waiting.
  Result<void> answer(const json::object& responses);
  /// Tells of changes from now on. kLimitReached beyond kMaxObservers.
  Result<void> observe(Executor& loop, std::weak_ptr<TaskObserver> observer);

  /// The first question that nobody has put to the client and that `fits`; `asker` does so from now
  /// on, until it has answered, gives it back or is gone. Null: there is none.
  using Fits = std::function<bool(const std::vector<InputRequest>& requests)>;
  std::shared_ptr<const TaskQuestion> take_question(const std::shared_ptr<TaskObserver>& asker,
                                                    const Fits& fits);
  void give_back(const std::shared_ptr<const TaskQuestion>& question);
  /// Whether the question still waits for an answer.
  [[nodiscard]] bool is_open(const std::shared_ptr<const TaskQuestion>& question) const;
  void answer(const std::shared_ptr<const TaskQuestion>& question,
              Result<std::vector<json::value>> answers);

  /// Ends it with `error`, and stops its request.
  void abandon(const Error& error);
  /// The same, of a task whose loop runs no longer; on any thread.
  void abandon_stopped(const Error& error);

  /// It is no longer kept: drops the result, so that whoever still follows it holds no memory, and
  /// has `error` instead. One that runs is abandoned.
  void forget(const Error& error);

  static constexpr std::size_t kMaxObservers = 64;

  // --- what its request does; on its loop ----------------------------------------------------

  /// The id that the responses of requests have which run as tasks.
  static constexpr std::string_view kRequestId = "0";

  void attach(const std::weak_ptr<PendingRequest>& request);
  /// The least severe log messages that its client wants; none: no messages.
  [[nodiscard]] std::optional<LoggingLevel> logging_level() const;
  /// A whole notification: to somebody who waits for the result, or else to the session.
  void send(const std::shared_ptr<const std::string>& message);
  /// Keys that were used before are made different. What is returned takes back what has not been
  /// answered, or is empty.
  std::move_only_function<void()> ask(std::vector<InputRequest> requests,
                                      TaskQuestion::Answer answer);
  /// How a request has ended.
  enum class Ending : std::uint8_t { result, error_result, error };
  /// `response` is the whole response to kRequestId, `why` the text of what went wrong.
  void end(Ending ending, std::string_view why, std::string_view response);

 private:
  struct Observer {
    Executor* loop;
    std::weak_ptr<TaskObserver> observer;
  };

  void withdraw(const std::shared_ptr<TaskQuestion>& question);
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
