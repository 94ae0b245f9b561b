#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/options/command.hpp"
#include "cli/options/command_line.hpp"
#include "cli/options/exit_code.hpp"
#include "cli/options/suggestion.hpp"
#include "cli/targets/named_values.hpp"
#include "cli/targets/own_servers.hpp"
#include "cli/targets/process_targets.hpp"
#include "cli/targets/server_report.hpp"
#include "cli/targets/target.hpp"
#include "cli/terminal/terminal.hpp"
#include "core/text/secrets.hpp"
#include "core/text/text.hpp"

namespace sluice {
namespace {

struct McpArguments {
  std::string action;
  std::string name;
  std::string target;
  std::vector<std::string> command;
  std::vector<std::string> headers;
  std::vector<std::string> variables;
  std::string transport;
};

constexpr const char* kMcpExamples =
    "Examples:\n"
    "  sluice mcp add docs https://example.org/mcp\n"
    "  sluice mcp add docs https://example.org/mcp --header 'X-Key: ${KEY}'\n"
    "  sluice mcp add files -- npx -y @modelcontextprotocol/server-filesystem /srv/files\n"
    "  sluice mcp add local http+unix:/run/local.sock\n"
    "  sluice mcp remove docs\n"
    "\n"
    "The servers are in $XDG_CONFIG_HOME/sluice/servers.json (~/.config/sluice/servers.json), in "
    "the form of `mcpServers`. ${VAR} and ${VAR:-default} in it are expanded when the server is "
    "used: so secrets can stay in the environment. Files of other applications are not changed.\n";

constexpr std::size_t kMaxOwnName = 128;

Result<void> check_name(std::string_view name) {
  const auto is_good = [](char c) {
    return is_letter(c) || is_digit(c) || c == '.' || c == '_' || c == '-';
  };
  if (name.empty()) return fail(kExitUsage, "give the name of the server");
  if (name.size() > kMaxOwnName || name.starts_with('-') || !std::ranges::all_of(name, is_good)) {
    return fail(kExitUsage, "\"" + std::string(name) + "\": a name has 1 to " +
                                std::to_string(kMaxOwnName) +
                                " letters, digits, dots, underscores and hyphens, and does not "
                                "begin with a hyphen");
  }
  return {};
}

Result<ConfiguredPlace> command_place(const McpArguments& arguments) {
  if (!arguments.headers.empty() || !arguments.transport.empty()) {
    return fail(kExitUsage, "--header and --transport are for servers with a URL");
  }
  auto variables = split_named_values(arguments.variables, '=', "--env KEY=VALUE");
  if (!variables) return std::unexpected(std::move(variables.error()));
  if (arguments.command.front().empty()) return fail(kExitUsage, "the command is empty");
  ConfiguredCommand out{.program = arguments.command.front(),
                        .arguments = {arguments.command.begin() + 1, arguments.command.end()},
                        .environment = *std::move(variables),
                        .environment_file = {},
                        .directory = {}};
  return out;
}

Result<ConfiguredPlace> url_place(const McpArguments& arguments) {
  if (!arguments.variables.empty()) {
    return fail(kExitUsage, "--env is for servers that are started, with a command after --");
  }
  ConfiguredUrl out{.url = arguments.target,
                    .transport = TransportHint::any,
                    .headers = {},
                    .variable_headers = {}};
  const bool has_variable = arguments.target.contains("${");
  if (!is_address(arguments.target) && !has_variable) {
    return fail(kExitUsage, "\"" + masked_word(arguments.target) +
                                "\" is no URL or socket; give one, or a command after --");
  }
  if (!has_variable) {
    const auto place = parse_address(arguments.target);
    if (!place) return std::unexpected(place.error());
    const auto* socket = std::get_if<UnixTarget>(&*place);
    if (socket != nullptr && !socket->path.starts_with('/')) {
      return fail(kExitUsage, "give the absolute path of the socket");
    }
  }
  constexpr std::array<TransportHint, 3> kHints = {
      {TransportHint::http, TransportHint::sse, TransportHint::ws}};
  for (const TransportHint hint : kHints) {
    if (arguments.transport == to_string(hint)) out.transport = hint;
  }
  if (!arguments.transport.empty() && out.transport == TransportHint::any) {
    return fail(kExitUsage, "--transport is http, sse or ws");
  }
  auto headers = split_named_values(arguments.headers, ':', "--header \"Name: value\"");
  if (!headers) return std::unexpected(std::move(headers.error()));
  out.headers = *std::move(headers);
  return out;
}

Result<ConfiguredPlace> place_to_add(const McpArguments& arguments) {
  if (arguments.command.empty() == arguments.target.empty()) {
    return fail(kExitUsage, "give the URL or the socket of the server, or a command after --");
  }
  return arguments.command.empty() ? url_place(arguments) : command_place(arguments);
}

Result<std::string> add_server(const std::string& path, const McpArguments& arguments) {
  const auto place = place_to_add(arguments);
  if (!place) return std::unexpected(place.error());
  if (auto added = add_own_server(path, arguments.name, *place); !added) {
    return std::unexpected(std::move(added.error()));
  }
  return "Added " + arguments.name + " to " + shown_path(path, process_places().home) + "\n";
}

/// Where else the name is, so that nobody looks for it in our file.
std::string elsewhere(const std::string& name) {
  const FoundServers found = process_servers();
  for (const ServerConfig* const server : found.named(name)) {
    if (server->source.application == Application::sluice) continue;
    return "; " + server->source.path + " has one, which is only read: remove it with " +
           std::string(name_of(server->source.application).title);
  }
  return {};
}

Result<std::string> remove_server(const std::string& path, const McpArguments& arguments) {
  if (!arguments.target.empty() || !arguments.command.empty() || !arguments.headers.empty() ||
      !arguments.variables.empty() || !arguments.transport.empty()) {
    return fail(kExitUsage, "remove takes a name and nothing else");
  }
  if (auto removed = remove_own_server(path, arguments.name); !removed) {
    Error error = std::move(removed.error());
    if (error.code == kExitUsage) error.message.append(elsewhere(arguments.name));
    return std::unexpected(std::move(error));
  }
  return "Removed " + arguments.name + " from " + shown_path(path, process_places().home) + "\n";
}

Result<std::string> change_own_file(const McpArguments& arguments) {
  const std::vector<std::string> actions = {"add", "remove"};
  if (std::ranges::find(actions, arguments.action) == actions.end()) {
    const auto meant = suggestion(arguments.action, actions);
    std::string message = arguments.action.empty() ? "say what to do: add or remove"
                                                   : "there is no mcp " + arguments.action;
    if (!meant.empty()) message.append("; did you mean ").append(meant).append("?");
    return fail(kExitUsage, message.append(meant.empty() ? "; see sluice mcp --help" : ""));
  }
  if (auto good = check_name(arguments.name); !good) return std::unexpected(good.error());
  const std::string path = own_servers_path(process_places());
  if (path.empty()) return fail(kExitUsage, "there is no home folder; set HOME or XDG_CONFIG_HOME");
  return arguments.action == "add" ? add_server(path, arguments) : remove_server(path, arguments);
}

int run_mcp(const McpArguments& arguments) {
  const auto done = change_own_file(arguments);
  if (done) return print(*done);
  complain("mcp: " + done.error().message);
  return done.error().code;
}

}  // namespace

void add_mcp_command(CommandLine& program) {
  const auto arguments = std::make_shared<McpArguments>();
  Subcommand command =
      program.add_subcommand("mcp", "Add a server to our own configuration file, or remove it",
                             kMcpExamples, [arguments] { return run_mcp(*arguments); });
  command.add_option("action", &arguments->action, {.text = "What to do", .operand = "add|remove"});
  command.add_option("name", &arguments->name,
                     {.text = "The name of the server", .operand = "NAME"});
  command.add_option(
      "target", &arguments->target,
      {.text = "A URL (http, https, ws, wss) or a socket (unix:PATH, http+unix:PATH)",
       .operand = "TARGET"});
  command.add_command_words(arguments->command,
                            {.text = "The command that starts the server", .operand = "COMMAND"});
  command.add_repeatable(
      "--header", Keep::all,
      [arguments](const std::vector<std::string>& values) { arguments->headers = values; },
      {.text = "Send this header with every request. Repeat it for several",
       .operand = "\"Name: value\""});
  command.add_repeatable(
      "--env", Keep::all,
      [arguments](const std::vector<std::string>& values) { arguments->variables = values; },
      {.text = "Set this variable for the command. Repeat it for several", .operand = "KEY=VALUE"});
  command.add_option(
      "--transport", &arguments->transport,
      {.text = "How to talk to the URL, if its server has one way only", .operand = "http|sse|ws"});
}

}  // namespace sluice
