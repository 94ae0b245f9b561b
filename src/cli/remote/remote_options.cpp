#include "cli/remote/remote_options.hpp"

#include "cli/options/command_line.hpp"

namespace sluice {
namespace {

constexpr const char* kGroupOfConnection = "Connection";

}  // namespace

void add_revision_option(Subcommand& command, RemoteOptions& options) {
  command.add_option("--revision", &options.revision,
                     {.text = "The revision of MCP to speak, such as 2025-11-25",
                      .operand = "DATE",
                      .group = kGroupOfConnection});
}

void add_remote_options(Subcommand& command, RemoteOptions& options, const WordsHelp& words) {
  command.add_option("words", &options.words, {.text = words.text, .operand = words.operand});
  command.add_command_words(
      options.command,
      {.text = "The command that starts the server, in place of TARGET", .operand = "COMMAND"});
  const std::string json_help = "Print the server's answer as JSON";
  if (words.arguments == nullptr) {
    command.add_flag("--json", options.as_json, {.text = json_help});
  } else {
    command.add_flag("--json", options.as_json, *words.arguments,
                     {.text = json_help + ". --json='{...}' gives the arguments too"});
  }
  command.add_flag("-v,--verbose", options.is_verbose,
                   {.text = "Show the traffic on standard error, without secrets"});
  command.add_repeatable(
      "-H,--header", Keep::all,
      [&options](const std::vector<std::string>& values) { options.headers = values; },
      {.text = "Send this header with every request. Repeat it for several",
       .operand = "\"Name: value\"",
       .group = kGroupOfConnection});
  add_revision_option(command, options);
  command.add_option(
      "--timeout", &options.timeout,
      {.text = "How long the server may be silent. Default 30 to connect, 60 for an answer",
       .operand = "SECONDS",
       .group = kGroupOfConnection});
}

}  // namespace sluice
