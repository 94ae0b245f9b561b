#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/clock.hpp"
#include "core/error.hpp"
#include "core/executor.hpp"
#include "core/sharing/ranking.hpp"
#include "server/calls/task_record.hpp"

namespace sluice {

/// The tasks of a server, by id and by owner. A task can be seen only by its own principal, and
/// only in its own revision. Limits count the tasks of a client (client_of() the principal).
/// Thread-safe; shared by all loops.
class TaskStore {
 public:
  TaskStore(TaskLimits limits, const Clock& clock, ChangeNotifier& changes,
            std::function<TaskState::Time()> time_of_day = std::chrono::system_clock::now);
  ~TaskStore();
  TaskStore(const TaskStore&) = delete;
  TaskStore& operator=(const TaskStore&) = delete;

  struct Creation {
    std::string principal;
    const Revision* revision;
    std::shared_ptr<Session> session = {};              // or null
    std::optional<std::chrono::milliseconds> ttl = {};  // the time that the client asks for
  };
  /// Creates a task with an id from the CSPRNG. Its request runs on `loop`. At a limit, the oldest
  /// task that has ended is forgotten: at the client's own limit, one of its own; at that of the
  /// server, one of the client with the most tasks, or else one of its own. Error: kLimitReached if
  /// there is none.
  Result<std::shared_ptr<TaskRecord>> create(Creation creation, Executor& loop);

  /// Counts the result of `task`, which is about to end, as `bytes`, at most
  /// TaskEnvironment::max_result(). If all results together would exceed `result_memory`, tasks of
  /// the client whose results have the most bytes are forgotten, in the order in which they ended.
  /// The new result counts for the client of `task`, so that its own tasks are forgotten if it
  /// would have the most.
  void hold(const TaskRecord& task, std::size_t bytes);

  /// Whether create() would find room for another task of `principal`.
  [[nodiscard]] bool has_capacity(const std::string& principal);

  /// Null if there is no such task, it has expired, or it belongs to another principal or revision.
  std::shared_ptr<TaskRecord> find(std::string_view id, std::string_view principal,
                                   const Revision& revision);

  /// Up to `count` tasks of `principal` and `revision` with numbers above `after`, oldest first.
  [[nodiscard]] std::vector<std::shared_ptr<TaskRecord>> list(const std::string& principal,
                                                              const Revision& revision,
                                                              std::uint64_t after,
                                                              std::size_t count) const;

  /// Forgets the tasks that have expired, and stops those that still run. Call it periodically.
  void sweep();

  /// Ends every task with `error`, and stops its request on its loop. For shutdown.
  void end_all(const Error& error);
  /// The same, after the loops have stopped.
  void end_all_stopped(const Error& error);

  [[nodiscard]] std::size_t size() const;
  [[nodiscard]] std::size_t running() const {
    return environment_->running.load(std::memory_order_relaxed);
  }
  [[nodiscard]] const TaskLimits& limits() const { return environment_->limits; }

  static constexpr std::size_t kIdLength = 32;
  static constexpr std::chrono::milliseconds kMinTtl{1000};

 private:
  using ByNumber = std::map<std::uint64_t, std::shared_ptr<TaskRecord>>;
  /// The results of one client.
  struct Results {
    struct Held {
      const TaskRecord* task;
      std::size_t bytes;
    };
    std::vector<Held> held;  // in the order in which the tasks have ended
    std::size_t bytes = 0;   // of all of them
    RankKey rank;
  };
  struct Owner {
    ByNumber tasks;
    RankKey rank;
    Results results;
  };

  // With the lock held.
  [[nodiscard]] bool is_at_limit(const std::string& principal) const;
  [[nodiscard]] bool is_full(const std::string& principal) const;
  /// The ended task to forget so that there is room for one of `principal`. Null if there is none.
  [[nodiscard]] std::shared_ptr<TaskRecord> dispensable(const std::string& principal) const;
  void remove(const TaskRecord& task);
  void release(Results& results, const TaskRecord& task);

  std::vector<std::shared_ptr<TaskRecord>> take_expired();
  std::vector<std::shared_ptr<TaskRecord>> take_all();

  const std::shared_ptr<TaskEnvironment> environment_;
  const Clock* clock_;

  mutable std::mutex mutex_;
  std::uint64_t last_number_ = 0;
  std::unordered_map<std::string, std::shared_ptr<TaskRecord>> tasks_;
  std::map<std::string, Owner, std::less<>> owners_;  // by client
  Ranking<Owner> ranking_;
  Ranking<Results> result_ranking_;
  std::size_t result_bytes_ = 0;
  std::set<std::pair<TimePoint, const TaskRecord*>> by_expiry_;
};

}  // namespace sluice
