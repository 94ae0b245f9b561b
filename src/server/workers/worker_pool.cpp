#include "server/workers/worker_pool.hpp"

#include <algorithm>
#include <exception>
#include <iterator>
#include <new>
#include <utility>

#include "core/error.hpp"
#include "core/log/log.hpp"
#include "core/log/log_limit.hpp"
#include "core/sharing/client_turns.hpp"

namespace sluice {
namespace {

thread_local const WorkerPool* pool_of_this_thread = nullptr;

}  // namespace

WorkerPool::WorkerPool(std::size_t threads, std::size_t max_waiting)
    : most_threads_(std::max<std::size_t>(threads, 1)),
      most_of_one_(std::max<std::size_t>(most_threads_ - 1, 1)),
      max_waiting_(max_waiting) {}

WorkerPool::~WorkerPool() {
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
  }
  wake_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void WorkerPool::run(JobId id, std::string_view client, Job job, Job refuse) {
  Waiting refused;
  {
    const std::lock_guard lock(mutex_);
    const auto place = add(id, client, {.job = std::move(job), .refuse = std::move(refuse)});
    Client& own = place->second;
    if (waiting_ > idle_ && threads_.size() < most_threads_) start_thread();
    const bool fits = !threads_.empty() && waiting_ - about_to_start() <= max_waiting_;
    if (!fits && !make_room(own, refused)) {
      refused = take(own, own.waiting.find(id));
      forget_unused(place);
    }
    wake_.notify_one();
  }
  if (refused.refuse) refused.refuse();
}

WorkerPool::Clients::iterator WorkerPool::add(JobId id, std::string_view client, Waiting job) {
  const auto place = clients_.try_emplace(std::string(client)).first;
  Client& own = place->second;
  try {
    own.waiting.emplace(id, std::move(job));
    ranking_.set(own, own.waiting.size());
  } catch (...) {
    own.waiting.erase(id);
    forget_unused(place);
    throw;
  }
  ++waiting_;
  return place;
}

/// The system may refuse a thread. Then jobs wait for the threads that there are.
void WorkerPool::start_thread() {
  try {
    threads_.emplace_back([this] { work(); });
    ++idle_;
  } catch (const std::exception& failure) {
    log_error(
        "a worker thread cannot be started",
        {{"what", what_of(failure)}, {"threads", static_cast<std::int64_t>(threads_.size())}});
  }
}

bool WorkerPool::drop(JobId id, std::string_view client) {
  Waiting dropped;
  const std::lock_guard lock(mutex_);
  const auto place = clients_.find(client);
  if (place == clients_.end()) return false;
  const auto job = place->second.waiting.find(id);
  if (job == place->second.waiting.end()) return false;
  dropped = take(place->second, job);
  forget_unused(place);
  return true;
}

bool WorkerPool::is_wanted(std::string_view client) {
  const std::lock_guard lock(mutex_);
  return std::ranges::any_of(clients_, [&](const auto& each) {
    const auto& [name, other] = each;
    if (other.waiting.empty()) return false;
    // If a thread is idle, it is about to take a job that may run.
    const bool may_run = other.running < most_of_one_;
    return name == client ? idle_ == 0 || !may_run : idle_ == 0 && may_run;
  });
}

bool WorkerPool::is_idle() {
  const std::lock_guard lock(mutex_);
  return clients_.empty();
}

bool WorkerPool::on_worker_thread() const {
  return pool_of_this_thread == this;
}

void WorkerPool::work() {
  pool_of_this_thread = this;
  std::unique_lock lock(mutex_);
  while (true) {
    wake_.wait(lock, [this] { return stopped_ || next() != clients_.end(); });
    --idle_;
    if (stopped_) return;
    const auto client = next();
    try {
      last_ = client->first;
    } catch (const std::bad_alloc&) {
      last_.clear();  // the turns begin again
    }
    ++client->second.running;
    Waiting taken = take(client->second, client->second.waiting.begin());
    lock.unlock();
    try {
      taken.job();
    } catch (...) {
      static LogLimit limit;
      log_exception(limit, "A job of a worker thread failed");
    }
    taken = {};
    lock.lock();
    --client->second.running;
    forget_unused(client);
    ++idle_;
  }
}

WorkerPool::Clients::iterator WorkerPool::next() {
  return next_turn(clients_, last_, [this](const Client& client) {
    return !client.waiting.empty() && client.running < most_of_one_;
  });
}

WorkerPool::Waiting WorkerPool::take(Client& client, std::map<JobId, Waiting>::iterator job) {
  Waiting taken = std::move(job->second);
  client.waiting.erase(job);
  ranking_.set(client, client.waiting.size());
  --waiting_;
  return taken;
}

void WorkerPool::forget_unused(Clients::iterator client) {
  if (client->second.waiting.empty() && client->second.running == 0) clients_.erase(client);
}

std::size_t WorkerPool::about_to_start() const {
  std::size_t jobs = 0;
  for (const auto& [name, client] : clients_) {
    if (jobs >= idle_) break;
    jobs += std::min(client.waiting.size(), most_of_one_ - client.running);
  }
  return std::min(jobs, idle_);
}

bool WorkerPool::make_room(const Client& client, Waiting& refused) {
  Client* const most = ranking_.most();
  if (most == nullptr || most->waiting.size() <= client.waiting.size()) return false;
  // The client has other waiting jobs, so its entry stays.
  refused = take(*most, std::prev(most->waiting.end()));
  return true;
}

}  // namespace sluice
