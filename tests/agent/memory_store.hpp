#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "sluice/error.hpp"
#include "sluice/run_store.hpp"

namespace sluice {

/// Keeps runs in memory.
class MemoryStore : public RunStore {
 public:
  std::uint64_t save(const std::string& run_id, const std::string& state,
                     std::uint64_t version) override {
    const std::lock_guard lock(mutex_);
    KeptRun& kept = runs_[run_id];
    if (kept.version != version) throw Error{kBusy, "The run goes on elsewhere"};
    kept = {.state = state, .version = version + 1};
    return kept.version;
  }
  KeptRun load(const std::string& run_id) override {
    const std::lock_guard lock(mutex_);
    return runs_[run_id];
  }
  std::vector<std::string> list() override { return {}; }
  void erase(const std::string& /*run_id*/) override {}

 private:
  std::mutex mutex_;
  std::map<std::string, KeptRun> runs_;
};

}  // namespace sluice
