#include <memory>
#include <string>

#include "cli/completion/completion_scripts.hpp"
#include "cli/options/command.hpp"
#include "cli/options/command_line.hpp"
#include "cli/options/exit_code.hpp"
#include "cli/terminal/terminal.hpp"

namespace sluice {
namespace {

int run_completion(const CommandLine& program, const std::string& shell) {
  std::string script;
  if (shell == "bash") {
    script = bash_completion(program.outline());
  } else if (shell == "zsh") {
    script = zsh_completion(program.outline());
  } else if (shell == "fish") {
    script = fish_completion(program.outline());
  } else {
    complain("completion: give the shell: bash, zsh or fish");
    return kExitUsage;
  }
  return print(script);
}

constexpr const char* kCompletionExamples =
    "Examples:\n"
    "  source <(sluice completion bash)\n"
    "  source <(sluice completion zsh)\n"
    "  sluice completion fish | source\n"
    "\n"
    "`cmake --install` puts the scripts where the shells look for them.\n";

}  // namespace

void add_completion_command(CommandLine& program) {
  const auto shell = std::make_shared<std::string>();
  Subcommand command = program.add_subcommand(
      "completion", "Print a script that completes commands and options in a shell",
      kCompletionExamples, [&program, shell] { return run_completion(program, *shell); });
  command.add_option("shell", shell.get(), {.text = "The shell", .operand = "bash|zsh|fish"});
}

}  // namespace sluice
