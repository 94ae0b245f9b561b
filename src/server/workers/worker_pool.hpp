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

#include "core/sharing/ranking.hpp"

namespace sluice {

/// Threads for jobs that must not run on an event loop. They are started when there is work for
/// them. The destructor drops the jobs that have not started, and joins the threads. Clients are
/// served in turn. If there are two or more threads, one client never gets all of them, so its jobs
/// alone cannot block those of others. A client is client_of() a principal. Thread-safe. Jobs must
/// not throw.
class WorkerPool {
 public:
  using Job = std::move_only_function<void()>;
  using JobId = std::uint64_t;

  /// At most `max_waiting` jobs wait for one of `threads` threads, besides those that an idle
  /// thread is about to take.
  WorkerPool(std::size_t threads, std::size_t max_waiting);
  ~WorkerPool();
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  /// An id for run(), unique in this pool.
  JobId new_id() { return ++last_id_; }

  /// Queues `job` for `client`. If too many jobs wait, one is dropped: the newest waiting job of
  /// the client that has the most, if that client has at least two more than `client`; otherwise
  /// `job`. The `refuse` of the dropped job, which may be null, is called on the thread that called
  /// run(), with no lock held. If there is no memory for the job, throws std::bad_alloc and changes
  /// nothing.
  void run(JobId id, std::string_view client, Job job, Job refuse = {});
  /// Removes a waiting job. Returns false if it does not wait, because it has started or was
  /// refused.
  bool drop(JobId id, std::string_view client);
  /// Whether a waiting job could start if a thread that runs a job of `client` became free.
  [[nodiscard]] bool is_wanted(std::string_view client);
  /// Whether no job waits or runs. What a job that has run posted before is then posted.
  [[nodiscard]] bool is_idle();
  /// Whether the caller is on one of its threads.
  [[nodiscard]] bool on_worker_thread() const;

 private:
  struct Waiting {
    Job job;
    Job refuse;
  };
  /// A client that has jobs.
  struct Client {
    std::map<JobId, Waiting> waiting;
    std::size_t running = 0;
    RankKey rank;  // by the number of waiting jobs
  };
  using Clients = std::map<std::string, Client, std::less<>>;

  Clients::iterator add(JobId id, std::string_view client, Waiting job);
  void start_thread();
  void work();
  [[nodiscard]] Clients::iterator next();
  Waiting take(Client& client, std::map<JobId, Waiting>::iterator job);
  void forget_unused(Clients::iterator client);
  /// How many of the waiting jobs idle threads are about to take.
  [[nodiscard]] std::size_t about_to_start() const;
  /// Makes room for the newest job of `client`: moves the job to drop into `refused`. Returns false
  /// if no other client has more waiting jobs.
  bool make_room(const Client& client, Waiting& refused);

  const std::size_t most_threads_;
  const std::size_t most_of_one_;  // threads that may run jobs of the same client
  const std::size_t max_waiting_;
  std::atomic<JobId> last_id_ = 0;
  std::mutex mutex_;
  std::condition_variable wake_;
  Clients clients_;
  Ranking<Client> ranking_;
  std::size_t waiting_ = 0;
  std::string last_;  // the client whose turn was last
  std::vector<std::thread> threads_;
  std::size_t idle_ = 0;  // threads that run no job
  bool stopped_ = false;
};

}  // namespace sluice
