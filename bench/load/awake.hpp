#pragma once

#include <thread>
#include <vector>

namespace sluice::bench {

/// Threads of idle priority, one on each processor, which run whenever nothing else wants it. So no
/// processor halts, and latencies do not contain the time that a hypervisor needs to wake one.
class AwakeProcessors {
 public:
  /// Throws a std::runtime_error if the system refuses.
  AwakeProcessors();

 private:
  std::vector<std::jthread> threads_;
};

}  // namespace sluice::bench
