#pragma once

#include <array>
#include <string_view>

namespace sluice {

/// The program's exit codes, which `sluice --help` documents. Errors inside cli/ carry one of them
/// as their code.
inline constexpr int kExitOk = 0;
inline constexpr int kExitFailure = 1;
inline constexpr int kExitUsage = 2;  // a flag, a variable or the configuration file is wrong
inline constexpr int kExitAuthorization = 3;  // the server wants an authorization that is not there
inline constexpr int kExitUnreachable = 4;    // no connection to the server
inline constexpr int kExitToolError = 5;      // the tool says that it has failed
inline constexpr int kExitInterrupted = 130;

/// What the exit codes mean: in the help, the manual pages and docs/command-line.md.
struct ExitCode {
  int code;
  std::string_view meaning;
};
inline constexpr std::array<ExitCode, 7> kExitCodes = {
    {{kExitOk, "done"},
     {kExitFailure, "failed"},
     {kExitUsage, "wrong usage or configuration"},
     {kExitAuthorization, "not authorized"},
     {kExitUnreachable, "the server cannot be reached"},
     {kExitToolError, "the tool has failed"},
     {kExitInterrupted, "interrupted"}}};

}  // namespace sluice
