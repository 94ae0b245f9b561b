#pragma once

namespace sluice {

/// The program's exit codes, which `sluice --help` documents. Errors inside cli/ carry one of them
/// as their code.
inline constexpr int kExitOk = 0;
inline constexpr int kExitFailure = 1;
inline constexpr int kExitUsage = 2;        // a flag, a variable or the configuration file is wrong
inline constexpr int kExitUnreachable = 3;  // no connection to the server
inline constexpr int kExitInterrupted = 130;

}  // namespace sluice
