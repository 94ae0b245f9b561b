#include "cli/program.hpp"

#include <exception>
#include <string>

#include "cli/options/command.hpp"
#include "cli/options/command_line.hpp"
#include "cli/options/exit_code.hpp"
#include "cli/terminal/terminal.hpp"
#include "core/version.hpp"

namespace sluice {
namespace {

constexpr const char* kFooter =
    "Examples:\n"
    "  sluice chat --model model.gguf             # talk to a model, no server needed\n"
    "  sluice serve --model model.gguf            # serve it on http://127.0.0.1:8080\n"
    "  sluice chat --url http://127.0.0.1:8080 \"Tell me a story\"\n"
    "  sluice doctor                              # what is wrong, and how to fix it\n"
    "\n"
    "Exit codes: 0 done; 1 failed; 2 wrong usage or configuration; 3 the server cannot be\n"
    "reached; 130 interrupted. Colours are used on terminals only, and not if NO_COLOR is set.\n";

int parse_and_run(int argc, const char* const* argv) {
  CommandLine program(
      {.name = "sluice",
       .description = "Streams a language model's tokens over HTTP, SSE, WebSocket and MCP.",
       .version = "sluice " + std::string(kVersion),
       .footer = kFooter});
  add_serve_command(program);
  add_chat_command(program);
  add_doctor_command(program);
  add_bench_command(program);
  add_version_command(program);
  return program.run(argc, argv);
}

}  // namespace

int run_program(int argc, const char* const* argv) {
  try {
    return parse_and_run(argc, argv);
  } catch (const std::exception& error) {
    complain(std::string("unexpected error: ") + error.what());
    return kExitFailure;
  }
}

}  // namespace sluice
