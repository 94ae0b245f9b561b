#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "cli/options/serve_config.hpp"
#include "cli/serve/machine.hpp"

namespace sluice {

/// One line of `sluice doctor`.
struct Check {
  enum class Status : std::uint8_t { ok, warn, fail };
  Status status = Status::ok;
  std::string subject;  // "memory"
  std::string finding;  // what was found
  std::string fix;      // what to do about it; empty when ok
};

using Checks = std::vector<Check>;

void check_machine(Checks& out, const MachineFacts& machine, const ServeConfig& config);
void check_limits(Checks& out, const MachineFacts& machine, const ServeConfig& config);

/// The file is there, readable, a GGUF of a version that can be read, not cut short as far as its
/// header tells, and fits into memory.
void check_model(Checks& out, const MachineFacts& machine, const ServeConfig& config);

/// Address and port can be listened on now.
void check_port(Checks& out, const ServeConfig& config);

/// Certificate and key can be read, belong together, and are valid at `now`; the key is nobody
/// else's to read.
void check_tls(Checks& out, const ServeConfig& config, std::chrono::system_clock::time_point now);

/// Who may reach the server and call it.
void check_access(Checks& out, const ServeConfig& config);

}  // namespace sluice
