#pragma once

// Where runs of agents are kept, so that they go on after a restart.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace sluice {

/// What is kept of a run.
struct KeptRun {
  std::string state = {};     // JSON; empty: nothing is kept
  std::uint64_t version = 0;  // changes whenever it is saved; 0: nothing is kept
};

/// Keeps the states of runs. Thread-safe: an agent saves on a thread of its own.
class RunStore {
 public:
  RunStore() = default;
  virtual ~RunStore() = default;
  RunStore(const RunStore&) = delete;
  RunStore& operator=(const RunStore&) = delete;

  /// Keeps `state` in place of what was kept, and returns the new version once it is durable.
  /// Throws Error: kBusy if what is kept has not this version, so somebody else runs it; another if
  /// it cannot be kept.
  virtual std::uint64_t save(const std::string& run_id, const std::string& state,
                             std::uint64_t version) = 0;
  /// Throws Error.
  virtual KeptRun load(const std::string& run_id) = 0;
  /// The ids of all runs, the one that was saved last first. Throws Error.
  virtual std::vector<std::string> list() = 0;
  /// Throws Error.
  virtual void erase(const std::string& run_id) = 0;
};

/// Keeps runs in a SQLite database, which is made if it does not exist, with mode 0600. Several
/// processes may use it. Nothing is kept any more once the file is moved or deleted. Throws Error
/// 500, also for ":memory:", which would keep nothing.
std::shared_ptr<RunStore> sqlite_run_store(const std::string& path);

}  // namespace sluice
