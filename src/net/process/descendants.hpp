#pragma once

#include <cstdint>
#include <string>
#include <sys/types.h>

namespace sluice {

/// The processes that a child has started, and those that these have, also outside of its group and
/// session. They are known by a mark in the environment that they were started with.
class Descendants {
 public:
  /// `child` runs, and `mark` is the whole NAME=VALUE in its environment.
  Descendants(pid_t child, std::string mark);

  /// Kills them. Looks again as long as there are any, because they may have started others
  /// meanwhile. Returns whether a later call may find more, as some process is in the middle of
  /// exec.
  [[nodiscard]] bool kill() const;

 private:
  std::string mark_;
  std::uint64_t start_;  // of the child, in ticks since the system was started
};

}  // namespace sluice
