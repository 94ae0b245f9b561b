#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "core/ranking.hpp"

namespace sluice {

/// Threads for what must not run on an event loop. They start when there is work for them, and are
/// joined by the destructor, which drops what has not begun. Clients have their turns, and of two
/// threads or more no client has all: one client alone never stops the jobs of another. A client is
/// client_of() a principal. Thread-safe; jobs do not throw.
class WorkerPool {
 public:
  using Job = std::move_only_function<void()>;
  using JobId = std::uint64_t;

  /// At most `max_waiting` jobs wait for one of `threads` threads.
  WorkerPool(std::size_t threads, std::size_t max_waiting);
  ~WorkerPool();
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  /// For run(). Unique in this pool.
  JobId new_id() { return ++last_id_; }

  /// Runs `job` in the turn of `client`. If too many wait, the newest of the client with most jobs
  /// is dropped, and its `refuse` is called, which may be null: that is this job, unless the client
  /// has at least two more than `client`. On the thread that calls this, with no lock held.
  void run(JobId id, std::string_view client, Job job, Job refuse = {});
  /// The job does not wait any more. False: it does not wait, for it has begun or been refused.
  bool drop(JobId id, std::string_view client);
  /// Whether a job waits that could run if a thread that runs one of `client` became free.
  [[nodiscard]] bool is_wanted(std::string_view client);
  /// Whether the caller is on one of its threads.
  [[nodiscard]] bool on_worker_thread() const;

 private:
  struct Waiting {
    Job job;
    Job refuse;
  };
  /// One that has jobs.
  struct Client {
    std::map<JobId, Waiting> waiting;
    std::size_t running = 0;
    RankKey rank;  // by those that wait
  };
  using Clients = std::map<std::string, Client, std::less<>>;

  void work();
  [[nodiscard]] Clients::iterator next();
  Waiting take(Client& client, std::map<JobId, Waiting>::iterator job);
  void forget_unused(Clients::iterator client);
  /// Makes room for a job of a client of which `has` jobs wait. False: there is none.
  bool make_room(std::size_t has, Waiting& refused);

  const std::size_t most_threads_;
  const std::size_t most_of_one_;  // threads that run jobs of one client
  const std::size_t max_waiting_;
  std::atomic<JobId> last_id_ = 0;
  std::mutex mutex_;
  std::condition_variable wake_;
  Clients clients_;
  Ranking<Client> ranking_;
  std::size_t waiting_ = 0;
  std::string last_;  // whose turn was last
  std::vector<std::thread> threads_;
  std::size_t idle_ = 0;
  bool stopped_ = false;
};

}  // namespace sluice
