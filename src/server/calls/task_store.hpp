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
#include "core/ranking.hpp"
#include "server/calls/task_record.hpp"

namespace sluice {

/// The tasks of a server, by their ids and by whom they belong to. A task is seen by its own
/// principal only, and in its own revision's form; it counts among those of client_of() that.
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
    std::optional<std::chrono::milliseconds> ttl = {};  // as its client asks
  };
  /// A new task with an id from the CSPRNG, whose request runs on `loop`. At a limit the oldest
  /// task that has ended makes room: the client's own, or where all have too many, that of the
  /// client that has most. kLimitReached if there is none.
  Result<std::shared_ptr<TaskRecord>> create(Creation creation, Executor& loop);

  /// `task` is about to end with a result of `bytes`, of TaskEnvironment::max_result() at most. If
  /// all results would be more than `result_memory`, tasks are forgotten: those of the client that
  /// has most bytes of results, in the order in which they have ended. The client of `task` is
  /// counted with the new result; when it would have most, its own go first.
  void hold(const TaskRecord& task, std::size_t bytes);

  /// Whether create() would find room for another task of `principal`.
  [[nodiscard]] bool has_capacity(const std::string& principal);

  /// Null if there is none, it has expired, or is another principal's or revision's.
  std::shared_ptr<TaskRecord> find(std::string_view id, std::string_view principal,
                                   const Revision& revision);

  /// Up to `count` tasks of `principal` and `revision` with numbers above `after`, oldest first.
  [[nodiscard]] std::vector<std::shared_ptr<TaskRecord>> list(const std::string& principal,
                                                              const Revision& revision,
                                                              std::uint64_t after,
                                                              std::size_t count) const;

  /// Forgets the tasks whose time is over, and stops those that still run. To be called now and
  /// then.
  void sweep();

  /// The server is shutting down: ends every task with `error`, on its loop.
  void end_all(const Error& error);
  /// The same after the loops have stopped.
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
  /// What makes room for a task of `principal`.
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
