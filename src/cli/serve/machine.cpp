#include "cli/serve/machine.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <fstream>
#include <sched.h>
#include <string_view>
#include <sys/resource.h>
#include <utility>

namespace sluice {
namespace {

std::uint64_t leading_number(std::string_view text) {
  const auto begin = text.find_first_of("0123456789");
  if (begin == std::string_view::npos) return 0;
  std::uint64_t value = 0;
  std::from_chars(text.data() + begin, text.data() + text.size(), value);
  return value;
}

void read_cpu(MachineFacts& facts) {
  static constexpr std::array<std::pair<std::string_view, std::string_view>, 6> kFeatures = {
      {{" avx ", "AVX"},
       {" avx2 ", "AVX2"},
       {" f16c ", "F16C"},
       {" avx512f ", "AVX-512"},
       {" amx_tile ", "AMX"},
       {" asimd ", "NEON"}}};
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const auto colon = line.find(':');
    if (colon == std::string::npos) continue;
    const std::string value = line.substr(std::min(colon + 2, line.size()));
    if (line.starts_with("model name") && facts.cpu.empty()) facts.cpu = value;
    if (!line.starts_with("flags") && !line.starts_with("Features")) continue;
    const std::string padded = " " + value + " ";
    for (const auto& [flag, name] : kFeatures) {
      if (padded.find(flag) != std::string::npos) facts.features.emplace_back(name);
    }
    return;  // the first core stands for all
  }
}

void read_memory(MachineFacts& facts) {
  std::ifstream file("/proc/meminfo");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("MemTotal:")) facts.memory_total = leading_number(line) * 1024;
    if (line.starts_with("MemAvailable:")) facts.memory_available = leading_number(line) * 1024;
  }
}

}  // namespace

MachineFacts read_machine() {
  MachineFacts facts;
  read_cpu(facts);
  read_memory(facts);
  cpu_set_t cores;
  if (::sched_getaffinity(0, sizeof cores, &cores) == 0) {
    facts.cores = static_cast<std::uint32_t>(CPU_COUNT(&cores));
  }
  rlimit files{};
  if (::getrlimit(RLIMIT_NOFILE, &files) == 0) {
    facts.open_files_soft = files.rlim_cur;
    facts.open_files_hard = files.rlim_max;
  }
  std::ifstream somaxconn("/proc/sys/net/core/somaxconn");
  std::string line;
  if (std::getline(somaxconn, line)) facts.somaxconn = leading_number(line);
  return facts;
}

std::uint64_t files_for_connections(std::uint64_t connections) {
  constexpr std::uint64_t kOwnFiles = 64;
  return connections + kOwnFiles;
}

std::uint64_t raise_open_files(std::uint64_t wanted) {
  rlimit files{};
  if (::getrlimit(RLIMIT_NOFILE, &files) != 0) return 0;
  if (files.rlim_cur >= wanted) return files.rlim_cur;
  rlimit raised = files;
  raised.rlim_cur = std::min<rlim_t>(wanted, files.rlim_max);
  return ::setrlimit(RLIMIT_NOFILE, &raised) == 0 ? raised.rlim_cur : files.rlim_cur;
}

}  // namespace sluice
