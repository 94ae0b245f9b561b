#pragma once

#include <chrono>
#include <string>

#include "cli/doctor/report/check.hpp"
#include "cli/options/serve_config.hpp"
#include "cli/serve/machine.hpp"

namespace sluice {

void check_machine(Checks& out, const MachineFacts& machine, const ServeConfig& config);
void check_limits(Checks& out, const MachineFacts& machine, const ServeConfig& config);

/// Checks that the model file is a whole GGUF file and fits into memory, and that there is the
/// device to run it on.
void check_model(Checks& out, const MachineFacts& machine, const ServeConfig& config);

/// Checks that there is the model, and a runtime for it, and what the board of the NPU is like: its
/// driver, its load, its clocks. `root`: where the files of the kernel are.
void check_npu(Checks& out, const ServeConfig& config, const std::string& root = "/");

/// Checks that the server could listen now, in all places together where it is to listen.
void check_ports(Checks& out, const ServeConfig& config);

/// Checks that the server could listen on the Unix domain socket now, if it is to.
void check_unix_socket(Checks& out, const ServeConfig& config);

/// Checks that the server could use the certificate and the key, that they are valid at `now`, and
/// that no other user can read the key.
void check_tls(Checks& out, const ServeConfig& config, std::chrono::system_clock::time_point now);

/// Checks that the log file, if there is to be one, can be written. Does not create it.
void check_log(Checks& out, const ServeConfig& config);

/// Checks who can reach the server and who may call it.
void check_access(Checks& out, const ServeConfig& config);

}  // namespace sluice
