#pragma once

namespace sluice {

/// The whole program: parses the command line and runs the subcommand. Returns the exit code.
int run_program(int argc, const char* const* argv);

}  // namespace sluice
