#pragma once

#include <functional>

namespace CLI {
class App;
}

namespace sluice {

/// What the command line asked for; set while it is parsed, run afterwards. Returns the program's
/// exit code.
using Command = std::function<int()>;

// Each adds one subcommand to `program`. When it is the one given, `chosen` becomes what to do;
// both outlive the parsing.
void add_serve_command(CLI::App& program, Command& chosen);
void add_chat_command(CLI::App& program, Command& chosen);
void add_doctor_command(CLI::App& program, Command& chosen);
void add_bench_command(CLI::App& program, Command& chosen);
void add_version_command(CLI::App& program, Command& chosen);

}  // namespace sluice
