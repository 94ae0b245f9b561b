#include "cli/program.hpp"

#include <algorithm>
#include <cstddef>
#include <exception>
#include <string>
#include <string_view>
#include <unistd.h>
#include <vector>

#include "cli/completion/server_offers.hpp"
#include "cli/options/command.hpp"
#include "cli/options/command_line.hpp"
#include "cli/options/exit_code.hpp"
#include "cli/serve/npu_engine.hpp"
#include "cli/terminal/terminal.hpp"
#include "core/version.hpp"

namespace sluice {
namespace {

constexpr const char* kExamples =
    "Examples:\n"
    "  sluice chat --model model.gguf   # talk to a model, no server needed\n"
    "  sluice serve --model model.gguf  # serve it on http://127.0.0.1:8080\n"
    "  sluice chat --url http://127.0.0.1:8080 \"Tell me a story\"\n"
    "  sluice doctor                    # what is wrong, and how to fix it\n"
    "\n"
    "`sluice COMMAND --help` explains a command. Colours are used on terminals only, and not if "
    "NO_COLOR is set.\n"
    "\n";

std::string footer() {
  std::string codes;
  for (const ExitCode& one : kExitCodes) {
    codes.append(codes.empty() ? "Exit codes: " : "; ");
    codes.append(std::to_string(one.code)).append(" ").append(one.meaning);
  }
  return kExamples + codes + ".\n";
}

/// The width of the help.
std::size_t help_width() {
  constexpr std::size_t kUsual = 80;
  constexpr std::size_t kLeast = 40;
  const std::size_t columns = terminal_width(STDOUT_FILENO);
  return columns == 0 ? kUsual : std::max(columns, kLeast);
}

int parse_and_run(int argc, const char* const* argv) {
  CommandLine program(
      {.name = "sluice",
       .description = "Streams a language model's tokens over HTTP, SSE, WebSocket and MCP",
       .version = "sluice " + std::string(kVersion),
       .footer = footer(),
       .width = help_width(),
       .print = [](const std::string& text) { return print(text); }});
  add_serve_command(program);
  add_import_config_command(program);
  add_chat_command(program);
  add_agent_command(program);
  add_doctor_command(program);
  add_bench_command(program);
  add_servers_command(program);
  add_mcp_command(program);
  add_login_command(program);
  add_logout_command(program);
  add_info_command(program);
  add_ping_command(program);
  add_tools_command(program);
  add_call_command(program);
  add_resources_command(program);
  add_read_command(program);
  add_prompts_command(program);
  add_prompt_command(program);
  add_complete_command(program);
  add_watch_command(program);
  add_tasks_command(program);
  add_proxy_command(program);
  add_session_command(program);
  add_version_command(program);
  add_completion_command(program);
  add_man_command(program);
  if (argc > 1 && std::string_view(argv[1]) == kOfferCommand) {
    return print_offers(program.outline(), std::vector<std::string>(argv + 2, argv + argc));
  }
  if (argc > 1 && std::string_view(argv[1]) == kNpuWorkerCommand) return run_npu_worker();
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
