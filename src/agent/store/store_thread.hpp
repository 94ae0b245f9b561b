#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "core/error.hpp"
#include "json/json.hpp"
#include "sluice/run_store.hpp"

namespace sluice {

/// The thread on which the runs of an agent are saved. Thread-safe. Destroying it waits until all
/// is saved.
class StoreThread {
 public:
  explicit StoreThread(std::shared_ptr<RunStore> store);
  ~StoreThread();
  StoreThread(const StoreThread&) = delete;
  StoreThread& operator=(const StoreThread&) = delete;

  [[nodiscard]] RunStore& store() const { return *store_; }
  /// `done` is called on the thread, with the new version.
  using Done = std::function<void(const Result<std::uint64_t>&)>;
  void save(std::string run_id, json::object state, std::uint64_t version, Done done);

 private:
  struct Job {
    std::string run_id;
    json::object state;
    std::uint64_t version;
    Done done;
  };

  void work();
  Result<std::uint64_t> save_now(const Job& job);

  const std::shared_ptr<RunStore> store_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Job> jobs_;  // at most one of each run
  bool is_closing_ = false;
  std::thread thread_;
};

}  // namespace sluice
