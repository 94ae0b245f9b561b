#include "usage.hpp"

#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <time.h>
#include <unistd.h>

namespace sluice::bench {
namespace {

std::int64_t read_clock(clockid_t clock) {
  timespec time{};
  if (clock_gettime(clock, &time) != 0) throw std::runtime_error("the server process is gone");
  return static_cast<std::int64_t>(time.tv_sec) * 1'000'000'000 + time.tv_nsec;
}

double seconds(std::int64_t nanoseconds) {
  return static_cast<double>(nanoseconds) / 1e9;
}

double ticks_to_seconds(long long ticks) {
  static const long per_second = sysconf(_SC_CLK_TCK);
  return static_cast<double>(ticks) / static_cast<double>(per_second);
}

double user_time(int pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string line;
  std::getline(file, line);
  // The name in parentheses may contain spaces; utime is the 12th field after it.
  std::istringstream rest(line.substr(line.rfind(')') + 1));
  std::string skipped;
  for (int i = 0; i < 11; ++i) rest >> skipped;
  long long ticks = 0;
  rest >> ticks;
  return ticks_to_seconds(ticks);
}

double machine_time() {
  std::ifstream file("/proc/stat");
  std::string label;
  long long user = 0;
  long long nice = 0;
  long long system = 0;
  long long idle = 0;
  long long wait = 0;
  long long irq = 0;
  long long softirq = 0;
  file >> label >> user >> nice >> system >> idle >> wait >> irq >> softirq;
  return ticks_to_seconds(user + nice + system + irq + softirq);
}

}  // namespace

std::int64_t now_ns() {
  return read_clock(CLOCK_MONOTONIC);
}

CpuTimes cpu_times(int server_pid) {
  CpuTimes times;
  if (server_pid != 0) {
    clockid_t clock{};
    if (clock_getcpuclockid(server_pid, &clock) != 0) {
      throw std::runtime_error("--server-pid: no such process");
    }
    times.server_s = seconds(read_clock(clock));
    times.server_user_s = user_time(server_pid);
  }
  times.load_s = seconds(read_clock(CLOCK_PROCESS_CPUTIME_ID));
  times.machine_s = machine_time();
  return times;
}

Memory memory_of(int pid) {
  Memory memory;
  std::ifstream file("/proc/" + std::to_string(pid) + "/smaps_rollup");
  std::string line;
  while (std::getline(file, line)) {
    std::istringstream fields(line);
    std::string name;
    std::int64_t kib = 0;
    fields >> name >> kib;
    if (name == "Rss:") memory.resident = kib * 1024;
    if (name == "Anonymous:") memory.anonymous = kib * 1024;
  }
  if (memory.resident == 0) throw std::runtime_error("cannot read the server's memory");
  return memory;
}

}  // namespace sluice::bench
