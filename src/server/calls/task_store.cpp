#include "server/calls/task_store.hpp"

#include <algorithm>

#include "core/crypto/random.hpp"
#include "core/log/over_limit.hpp"
#include "core/sharing/client.hpp"
#include "rpc/error_codes.hpp"

namespace sluice {
namespace {

const Error kExpired{kInvalidParams, "Failed to retrieve task: Task has expired", {}};

}  // namespace

TaskStore::TaskStore(TaskLimits limits, const Clock& clock, ChangeNotifier& changes,
                     std::function<TaskState::Time()> time_of_day)
    : environment_(std::make_shared<TaskEnvironment>(limits, changes, std::move(time_of_day))),
      clock_(&clock) {
  environment_->store = this;
}

TaskStore::~TaskStore() {
  environment_->store = nullptr;
}

Result<std::shared_ptr<TaskRecord>> TaskStore::create(Creation creation, Executor& loop) {
  sweep();
  const TaskLimits& limits = environment_->limits;
  const std::chrono::milliseconds ttl = std::clamp(
      creation.ttl.value_or(limits.ttl), std::min(kMinTtl, limits.max_ttl), limits.max_ttl);
  std::shared_ptr<TaskRecord> forgotten;
  std::unique_lock lock(mutex_);
  if (is_full(creation.principal)) {
    forgotten = dispensable(creation.principal);
    if (forgotten != nullptr) remove(*forgotten);
  }
  if (is_full(creation.principal)) {
    if (!is_at_limit(creation.principal)) {
      return over_limit("The server has " + std::to_string(limits.max_tasks) +
                        " tasks, the most it may; try again later");
    }
    return over_limit("You have " + std::to_string(limits.per_client) +
                      " tasks under way, the most a client may (tasks-per-client); "
                      "wait for some, or cancel them");
  }
  Owner& owner = owners_[client_of(creation.principal)];
  const std::uint64_t number = ++last_number_;
  auto task =
      std::make_shared<TaskRecord>(TaskRecord::Details{.id = random_id(kIdLength),
                                                       .number = number,
                                                       .principal = std::move(creation.principal),
                                                       .revision = creation.revision,
                                                       .session = creation.session,
                                                       .ttl = ttl,
                                                       .expires = clock_->now() + ttl},
                                   environment_, loop);
  owner.tasks.emplace(number, task);
  ranking_.set(owner, owner.tasks.size());
  tasks_.emplace(task->id(), task);
  by_expiry_.emplace(task->expires(), task.get());
  lock.unlock();
  if (forgotten != nullptr) forgotten->forget(kExpired);
  return task;
}

void TaskStore::hold(const TaskRecord& task, std::size_t bytes) {
  std::vector<std::shared_ptr<TaskRecord>> forgotten;
  {
    const std::lock_guard lock(mutex_);
    if (!tasks_.contains(task.id())) return;
    Results& own = owners_.find(client_of(task.principal()))->second.results;
    while (result_bytes_ + bytes > environment_->limits.result_memory) {
      const Results& most = *result_ranking_.most();
      const Results& from = own.bytes == 0 || most.bytes > own.bytes + bytes ? most : own;
      forgotten.push_back(tasks_.at(from.held.front().task->id()));
      remove(*forgotten.back());
    }
    own.held.push_back({&task, bytes});
    own.bytes += bytes;
    result_bytes_ += bytes;
    result_ranking_.set(own, own.bytes);
  }
  for (const auto& each : forgotten) each->forget(kExpired);
}

bool TaskStore::has_capacity(const std::string& principal) {
  sweep();
  const std::lock_guard lock(mutex_);
  return !is_full(principal) || dispensable(principal) != nullptr;
}

bool TaskStore::is_at_limit(const std::string& principal) const {
  const auto owner = owners_.find(client_of(principal));
  return owner != owners_.end() && owner->second.tasks.size() >= environment_->limits.per_client;
}

bool TaskStore::is_full(const std::string& principal) const {
  return tasks_.size() >= environment_->limits.max_tasks || is_at_limit(principal);
}

std::shared_ptr<TaskRecord> TaskStore::dispensable(const std::string& principal) const {
  const auto found = owners_.find(client_of(principal));
  const Owner* const own = found == owners_.end() ? nullptr : &found->second;
  const Owner* const most = ranking_.most();
  const bool has_less =
      !is_at_limit(principal) && (own == nullptr || own->rank.has < most->rank.has);
  for (const Owner* owner : {has_less ? most : nullptr, own}) {
    if (owner == nullptr) continue;
    for (const auto& [number, task] : owner->tasks) {
      if (is_terminal(task->status())) return task;
    }
  }
  return nullptr;
}

void TaskStore::remove(const TaskRecord& task) {
  const auto owner = owners_.find(client_of(task.principal()));
  release(owner->second.results, task);
  owner->second.tasks.erase(task.number());
  ranking_.set(owner->second, owner->second.tasks.size());
  if (owner->second.tasks.empty()) owners_.erase(owner);
  by_expiry_.erase({task.expires(), &task});
  tasks_.erase(task.id());
}

void TaskStore::release(Results& results, const TaskRecord& task) {
  const auto held = std::ranges::find(results.held, &task, &Results::Held::task);
  if (held == results.held.end()) return;
  results.bytes -= held->bytes;
  result_bytes_ -= held->bytes;
  results.held.erase(held);
  result_ranking_.set(results, results.bytes);
}

std::shared_ptr<TaskRecord> TaskStore::find(std::string_view id, std::string_view principal,
                                            const Revision& revision) {
  std::shared_ptr<TaskRecord> task;
  {
    const std::lock_guard lock(mutex_);
    const auto found = tasks_.find(std::string(id));
    if (found == tasks_.end()) return nullptr;
    task = found->second;
  }
  const bool allowed = constant_time_equal(task->principal(), principal);
  if (!allowed || &task->revision() != &revision || task->expires() <= clock_->now()) {
    return nullptr;
  }
  return task;
}

std::vector<std::shared_ptr<TaskRecord>> TaskStore::list(const std::string& principal,
                                                         const Revision& revision,
                                                         std::uint64_t after,
                                                         std::size_t count) const {
  std::vector<std::shared_ptr<TaskRecord>> tasks;
  const TimePoint now = clock_->now();
  const std::lock_guard lock(mutex_);
  const auto owner = owners_.find(client_of(principal));
  if (owner == owners_.end()) return tasks;
  const ByNumber& own = owner->second.tasks;
  for (auto each = own.upper_bound(after); each != own.end(); ++each) {
    if (tasks.size() == count) break;
    const TaskRecord& task = *each->second;
    if (task.principal() == principal && &task.revision() == &revision && task.expires() > now) {
      tasks.push_back(each->second);
    }
  }
  return tasks;
}

std::vector<std::shared_ptr<TaskRecord>> TaskStore::take_expired() {
  std::vector<std::shared_ptr<TaskRecord>> expired;
  const TimePoint now = clock_->now();
  const std::lock_guard lock(mutex_);
  while (!by_expiry_.empty() && by_expiry_.begin()->first <= now) {
    const TaskRecord& task = *by_expiry_.begin()->second;
    expired.push_back(tasks_.at(task.id()));
    remove(task);
  }
  return expired;
}

void TaskStore::sweep() {
  for (const auto& task : take_expired()) task->forget(kExpired);
}

std::vector<std::shared_ptr<TaskRecord>> TaskStore::take_all() {
  std::vector<std::shared_ptr<TaskRecord>> all;
  const std::lock_guard lock(mutex_);
  for (auto& [id, task] : tasks_) all.push_back(std::move(task));
  tasks_.clear();
  ranking_ = {};
  result_ranking_ = {};
  result_bytes_ = 0;
  owners_.clear();
  by_expiry_.clear();
  return all;
}

void TaskStore::end_all(const Error& error) {
  for (const auto& task : take_all()) task->abandon(error);
}

void TaskStore::end_all_stopped(const Error& error) {
  for (const auto& task : take_all()) task->abandon_stopped(error);
}

std::size_t TaskStore::size() const {
  const std::lock_guard lock(mutex_);
  return tasks_.size();
}

}  // namespace sluice
