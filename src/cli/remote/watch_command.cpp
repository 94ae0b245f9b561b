#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/options/command.hpp"
#include "cli/options/command_line.hpp"
#include "cli/options/exit_code.hpp"
#include "cli/remote/remote_server.hpp"
#include "cli/remote/stop_on_interrupt.hpp"
#include "cli/terminal/terminal.hpp"
#include "json/json.hpp"
#include "protocol/revision.hpp"

namespace sluice {
namespace {

constexpr const char* kWatchExamples =
    "Examples:\n"
    "  sluice watch http://127.0.0.1:8080/mcp\n"
    "  sluice watch notes --resource note://today --level debug\n"
    "  sluice watch notes --json | jq .method\n"
    "\n"
    "Prints the notifications of the server, a line each, until it is interrupted: changes of its "
    "lists, changes of the resources that --resource names, and its log.\n";

struct WatchOptions {
  RemoteOptions remote;
  std::vector<std::string> resources;
  std::string level;
};

std::string watched_line(std::string_view method, const json::object& params, bool as_json) {
  if (as_json) return to_json(json::object{{"method", method}, {"params", params}}) + "\n";
  constexpr std::string_view kPrefix = "notifications/";
  if (method.starts_with(kPrefix)) method.remove_prefix(kPrefix.size());
  json::object shown = params;
  shown.erase("_meta");
  std::string out = one_line(method);
  if (!shown.empty()) out.append(" ").append(one_line(to_json(shown)));
  return out + "\n";
}

/// Asks for everything that the server tells of. The answer comes when it tells no more.
PendingCall<json::object> listen_to_changes(RemoteServer& server, const WatchOptions& options,
                                            CallOptions call) {
  json::array resources;
  for (const std::string& uri : options.resources) resources.emplace_back(uri);
  json::object filter{
      {"toolsListChanged", true}, {"promptsListChanged", true}, {"resourcesListChanged", true}};
  if (!resources.empty()) filter["resourceSubscriptions"] = std::move(resources);
  if (!options.level.empty()) {
    call.meta["io.modelcontextprotocol/logLevel"] = options.level;
  }
  return server.client.request("subscriptions/listen", {{"notifications", std::move(filter)}},
                               std::move(call));
}

/// In the legacy era, changes of lists are told without being asked for.
void subscribe(RemoteServer& server, const WatchOptions& options) {
  for (const std::string& uri : options.resources) {
    server.client.request("resources/subscribe", {{"uri", uri}}, server.call).result();
  }
  if (!options.level.empty()) {
    server.client.request("logging/setLevel", {{"level", options.level}}, server.call).result();
  }
}

bool is_modern(const Client& client) {
  const Revision* const revision = find_revision(client.revision());
  return revision != nullptr && revision->era == Era::modern;
}

/// Waits until the user or the reader of the output has enough, or the server has gone.
int watch(RemoteServer& server, const WatchOptions& options, const std::atomic<int>& printed) {
  constexpr std::chrono::milliseconds kTick = std::chrono::seconds(1);
  constexpr int kTicksPerPing = 30;
  const StopOnInterrupt interrupt;
  std::optional<PendingCall<json::object>> listening;
  if (is_modern(server.client)) {
    CallOptions call = server.call;
    call.idle_timeout = Duration();
    listening.emplace(listen_to_changes(server, options, std::move(call)));
  } else {
    subscribe(server, options);
  }
  for (int ticks = 1; !interrupt.wait_for(kTick); ticks = ticks % kTicksPerPing + 1) {
    if (printed != kExitOk) return printed;
    if (listening && listening->is_ready()) {
      listening->result();
      complain("watch: the server tells no more");
      return kExitFailure;
    }
    if (ticks == kTicksPerPing) server.client.ping();
  }
  return kExitInterrupted;
}

}  // namespace

void add_watch_command(CommandLine& program) {
  const auto options = std::make_shared<WatchOptions>();
  Subcommand command = program.add_subcommand(
      "watch", "Print what an MCP server tells of its changes", kWatchExamples, [options] {
        std::atomic<int> printed = kExitOk;
        ClientOptions client;
        client.on_notification = [as_json = options->remote.as_json, &printed](
                                     std::string_view method, const json::object& params) {
          if (printed == kExitOk) printed = print(watched_line(method, params, as_json));
        };
        return with_server("watch", options->remote, {}, std::move(client),
                           [&](RemoteServer& server, const RemoteWords&) {
                             return watch(server, *options, printed);
                           });
      });
  add_remote_options(command, options->remote,
                     {.operand = "TARGET", .text = std::string(kTargetText)});
  command.add_repeatable(
      "--resource", Keep::all,
      [options](const std::vector<std::string>& values) { options->resources = values; },
      {.text = "Tell of changes of this resource too. Repeat it for several", .operand = "URI"});
  command.add_option("--level", &options->level,
                     {.text = "Tell of log messages of at least this level",
                      .operand = "debug|info|notice|warning|error|critical|alert|emergency"});
}

}  // namespace sluice
