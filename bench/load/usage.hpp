#pragma once

#include <cstdint>

namespace sluice::bench {

/// CLOCK_MONOTONIC in nanoseconds, the clock of a chunk's `t_ns`.
std::int64_t now_ns();

/// CPU time of all threads of a process since its start, and of the machine since it booted.
struct CpuTimes {
  double server_s = 0;
  double server_user_s = 0;  // resolution: 10 ms
  double load_s = 0;
  double machine_s = 0;  // resolution: 10 ms
};
/// If `server_pid` is 0, the server's times stay 0. Throws if the process is gone.
CpuTimes cpu_times(int server_pid);

/// Memory of a process in bytes: all resident memory, and the part that is its own heap and stacks.
struct Memory {
  std::int64_t resident = 0;
  std::int64_t anonymous = 0;
};
Memory memory_of(int pid);

}  // namespace sluice::bench
