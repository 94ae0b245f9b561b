#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace sluice {

/// What this machine and process have. Numbers that could not be found out are 0.
struct MachineFacts {
  std::string cpu;                    // the model's name
  std::uint32_t cores = 0;            // that this process may use
  std::vector<std::string> features;  // vector instructions, best last: "AVX2", "AVX-512", "NEON"
  std::uint64_t memory_total = 0;     // bytes
  std::uint64_t memory_available = 0;
  std::uint64_t open_files_soft = 0;
  std::uint64_t open_files_hard = 0;
  std::uint64_t somaxconn = 0;
};

MachineFacts read_machine();

/// How many files a server with that many connections may have open: its listeners, event loops,
/// the model and logs besides.
std::uint64_t files_for_connections(std::uint64_t connections);

/// Raises the soft limit of open files to `wanted` or as far as the hard one allows; never lowers
/// it. Returns what it is then.
std::uint64_t raise_open_files(std::uint64_t wanted);

}  // namespace sluice
