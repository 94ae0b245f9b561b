#pragma once

#include <cstdint>

namespace sluice::bench {

/// CLOCK_MONOTONIC in nanoseconds: what a chunk's `t_ns` counts in.
std::int64_t now_ns();

/// CPU time since the process started, all its threads; and of the machine since it booted.
struct CpuTimes {
  double server_s = 0;
  double server_user_s = 0;  // in steps of 10 ms
  double load_s = 0;
  double machine_s = 0;  // in steps of 10 ms
};
/// `server_pid` 0: leaves the server's at 0. Throws if it is gone.
CpuTimes cpu_times(int server_pid);

/// Memory of a process in bytes: all that is resident, and the part that is its own heap and
/// stacks.
struct Memory {
  std::int64_t resident = 0;
  std::int64_t anonymous = 0;
};
Memory memory_of(int pid);

}  // namespace sluice::bench
