#pragma once

#include <algorithm>
#include <memory>
#include <mutex>
#include <vector>

#include "server/catalog/definition.hpp"
#include "server/workers/worker_pool.hpp"

namespace sluice {

/// The worker threads of the handlers that a host has ever served. A handler may still run when a
/// change of the definition has removed it. Thread-safe.
class HandlerPools {
 public:
  void add(const ServerDefinition& definition) {
    const std::lock_guard lock(mutex_);
    std::erase_if(pools_, [](const auto& pool) { return pool.expired(); });
    add_locked(definition.workers);
    for (const auto& pool : definition.mounted_workers) add_locked(pool);
  }
  /// Whether this is one of the threads.
  [[nodiscard]] bool on_worker_thread() const {
    return any_of([](const WorkerPool& pool) { return pool.on_worker_thread(); });
  }
  [[nodiscard]] bool is_busy() const {
    return any_of([](WorkerPool& pool) { return !pool.is_idle(); });
  }

 private:
  void add_locked(const std::shared_ptr<WorkerPool>& pool) {
    const auto is_pool = [&](const auto& known) { return known.lock() == pool; };
    if (pool != nullptr && std::ranges::none_of(pools_, is_pool)) pools_.push_back(pool);
  }
  template <class Question>
  [[nodiscard]] bool any_of(const Question& question) const {
    const std::lock_guard lock(mutex_);
    return std::ranges::any_of(pools_, [&](const auto& weak) {
      const auto pool = weak.lock();
      return pool != nullptr && question(*pool);
    });
  }

  mutable std::mutex mutex_;
  std::vector<std::weak_ptr<WorkerPool>> pools_;
};

}  // namespace sluice
