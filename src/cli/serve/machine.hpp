#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace sluice {

/// The resources of this machine and process. A number that could not be determined is 0.
struct MachineFacts {
  std::string cpu;                    // name of the CPU model
  std::uint32_t cores = 0;            // cores that this process may use
  std::vector<std::string> features;  // vector instructions, best last: "AVX2", "AVX-512", "NEON"
  std::uint64_t memory_total = 0;     // bytes
  std::uint64_t memory_available = 0;
  std::uint64_t open_files_soft = 0;
  std::uint64_t open_files_hard = 0;
  std::uint64_t somaxconn = 0;
};

MachineFacts read_machine();

/// How many open files a server with that many connections needs, including its listeners, event
/// loops, model and logs.
std::uint64_t files_for_connections(std::uint64_t connections);

/// Raises the soft limit of open files to `wanted`, or as far as the hard limit allows. Never
/// lowers it. Returns the resulting limit.
std::uint64_t raise_open_files(std::uint64_t wanted);

}  // namespace sluice
