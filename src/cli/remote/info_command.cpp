#include <chrono>
#include <cmath>
#include <memory>
#include <string>
#include <string_view>
#include <unistd.h>

#include "cli/options/command.hpp"
#include "cli/options/command_line.hpp"
#include "cli/remote/remote_server.hpp"
#include "cli/terminal/terminal.hpp"
#include "json/members.hpp"
#include "protocol/server_info.hpp"

namespace sluice {
namespace {

constexpr const char* kInfoExamples =
    "Examples:\n"
    "  sluice info http://127.0.0.1:8080/mcp\n"
    "  sluice info notes --json | jq .server.capabilities\n"
    "  sluice info -- npx -y some-server\n";

constexpr const char* kPingExamples =
    "Examples:\n"
    "  sluice ping http://127.0.0.1:8080/mcp\n"
    "  sluice ping unix:/run/notes.sock && echo it answers\n";

/// Name and version, as the legacy era and the modern one have them.
std::string names_of_members(const json::object* object) {
  std::string out;
  if (object == nullptr) return "nothing";
  for (const auto& [name, value] : *object) out.append(out.empty() ? "" : ", ").append(name);
  return out.empty() ? "nothing" : one_line(out);
}

/// What the server says about itself. A server of a revision that the user names has not been
/// asked.
json::object described(Client& client) {
  if (!client.about().empty()) return client.about();
  return client.request("server/discover").result();
}

std::string info_text(const Client& client, const json::object& about, const Style& style) {
  std::string out(style.bold());
  if (const json::object* const info = server_info_in(about)) {
    const std::string_view title = text_at(*info, "title");
    out.append(one_line(text_at(*info, "name"))).append(style.reset()).append(" ");
    out.append(one_line(text_at(*info, "version")));
    if (!title.empty()) out.append("  ").append(one_line(title));
  } else {
    out.append("A server without a name").append(style.reset());
  }
  out.append("\nrevision  ").append(one_line(client.revision()));
  out.append("\noffers    ").append(names_of_members(object_at(about, "capabilities")));
  out.push_back('\n');
  const std::string_view instructions = text_at(about, "instructions");
  if (!instructions.empty()) out.append("\n").append(printable(instructions)).append("\n");
  return out;
}

int run_info(Client& client, bool as_json) {
  const json::object about = described(client);
  if (!as_json) return print(info_text(client, about, Style::of(STDOUT_FILENO)));
  return print(
      printable_json(to_json(json::object{{"revision", client.revision()}, {"server", about}})) +
      "\n");
}

int run_ping(Client& server, bool as_json) {
  const auto before = std::chrono::steady_clock::now();
  server.ping();
  const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - before;
  const double milliseconds = std::round(took.count() * 100) / 100;
  if (as_json) return print(to_json(json::object{{"milliseconds", milliseconds}}) + "\n");
  return print("The server answered in " + to_json(json::value(milliseconds)) + " ms\n");
}

}  // namespace

void add_info_command(CommandLine& program) {
  const auto options = std::make_shared<RemoteOptions>();
  Subcommand command = program.add_subcommand(
      "info", "Say what an MCP server is and offers", kInfoExamples, [options] {
        return with_server("info", *options, {}, {}, [&](Client& server, const RemoteWords&) {
          return run_info(server, options->as_json);
        });
      });
  add_remote_options(command, *options, {.operand = "TARGET", .text = std::string(kTargetText)});
}

void add_ping_command(CommandLine& program) {
  const auto options = std::make_shared<RemoteOptions>();
  Subcommand command = program.add_subcommand(
      "ping", "Ask an MCP server whether it is there", kPingExamples, [options] {
        return with_server("ping", *options, {}, {}, [&](Client& server, const RemoteWords&) {
          return run_ping(server, options->as_json);
        });
      });
  add_remote_options(command, *options, {.operand = "TARGET", .text = std::string(kTargetText)});
}

}  // namespace sluice
