#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unistd.h>
#include <utility>
#include <vector>

#include "cli/options/command.hpp"
#include "cli/options/command_line.hpp"
#include "cli/options/exit_code.hpp"
#include "cli/options/suggestion.hpp"
#include "cli/proxy/proxy_targets.hpp"
#include "cli/remote/remote_options.hpp"
#include "cli/session/session_name.hpp"
#include "cli/session/session_process.hpp"
#include "cli/targets/named_values.hpp"
#include "cli/targets/process_targets.hpp"
#include "cli/targets/revision_choice.hpp"
#include "cli/targets/server_report.hpp"
#include "cli/terminal/terminal.hpp"
#include "core/text/secrets.hpp"
#include "json/json.hpp"

namespace sluice {
namespace {

constexpr double kUsualSessionIdle = 3600;  // seconds
constexpr double kLongestSessionIdle = 1e6;
constexpr std::size_t kMaxTarget = 1000;  // bytes that are shown

constexpr const char* kSessionExamples =
    "Examples:\n"
    "  sluice session start -- npx -y some-server\n"
    "  sluice call @some-server search query=\"cheap flights\"\n"
    "  sluice session start --name work https://mcp.example.com/mcp\n"
    "  sluice session list\n"
    "  sluice session stop work\n"
    "\n"
    "A session keeps the connection to a server open between commands, so that the next one takes "
    "milliseconds, and the server keeps what it knows. @NAME is a target of all commands. A "
    "session ends when nobody has used it for an hour, or for as long as --idle says.\n";

struct SessionArguments {
  std::string action;
  std::vector<std::string> words;
  std::vector<std::string> command;
  std::string name;
  std::vector<std::string> headers;
  std::string revision;
  std::optional<double> idle;
  bool all = false;
  bool as_json = false;
};

Result<void> check_session_words(const SessionArguments& arguments, std::size_t most,
                                 std::string_view what) {
  if (arguments.words.size() <= most) return {};
  return fail(kExitUsage, std::string(what) + ": there is no use for \"" +
                              masked_word(arguments.words[most]) + "\"");
}

/// Refuses options that only other actions have.
Result<void> check_session_options(const SessionArguments& arguments) {
  const std::string& action = arguments.action;
  const bool starts = action == "start";
  const struct {
    std::string_view name;
    bool is_given;
    bool fits;
  } options[] = {{"--name", !arguments.name.empty(), starts},
                 {"--idle", arguments.idle.has_value(), starts},
                 {"--header", !arguments.headers.empty(), starts},
                 {"--revision", !arguments.revision.empty(), starts},
                 {"-- COMMAND", !arguments.command.empty(), starts},
                 {"--json", arguments.as_json, starts || action == "list"},
                 {"--all", arguments.all, action == "stop"}};
  std::string wrong;
  for (const auto& each : options) {
    if (!each.is_given || each.fits) continue;
    wrong.append(wrong.empty() ? "" : ", ").append(each.name);
  }
  if (wrong.empty()) return {};
  return fail(kExitUsage, action + " does not take " + wrong + "; see sluice session --help");
}

json::object json_of_session(const SessionFiles& files, const SessionInfo& session) {
  return {{"name", session.name},     {"target", session.target},
          {"server", session.server}, {"pid", std::int64_t{session.process}},
          {"since", session.since},   {"socket", files.socket(session.name)}};
}

// --- start --------------------------------------------------------------------------------------

Result<SessionPlan> session_plan_of(const SessionArguments& arguments) {
  if (auto good = check_session_words(arguments, 1, "start"); !good)
    return std::unexpected(good.error());
  const double idle = arguments.idle.value_or(kUsualSessionIdle);
  if (!(idle > 0 && idle <= kLongestSessionIdle)) {
    return fail(kExitUsage, "--idle: give seconds, more than 0 and at most 1000000");
  }
  if (auto known = check_revision(arguments.revision); !known) {
    return std::unexpected(std::move(known.error()));
  }
  auto headers = split_named_values(arguments.headers, ':', "--header \"Name: value\"");
  if (!headers) return std::unexpected(std::move(headers.error()));
  auto target = find_target({.word = arguments.words.empty() ? "" : arguments.words.front(),
                             .command = arguments.command});
  if (!target) return std::unexpected(std::move(target.error()));
  SessionInfo info{.name = arguments.name.empty() ? session_name_of(*target) : arguments.name,
                   .target = shortened(describe_target(*target), kMaxTarget),
                   .request_timeout = target->request_timeout};
  if (info.name.empty()) return fail(kExitUsage, "give the session a --name");
  auto upstream = upstream_of(*std::move(target), *headers);
  if (!upstream) return std::unexpected(std::move(upstream.error()));
  upstream->revision = arguments.revision;
  return SessionPlan{
      .info = std::move(info),
      .upstream = *std::move(upstream),
      .idle_time = std::chrono::duration_cast<Duration>(std::chrono::duration<double>(idle))};
}

Result<std::string> begin_session(const SessionFiles& files, const SessionArguments& arguments) {
  auto plan = session_plan_of(arguments);
  if (!plan) return std::unexpected(std::move(plan.error()));
  const std::string name = plan->info.name;
  const auto server = start_session(files, *std::move(plan));
  if (!server) return std::unexpected(server.error());
  if (arguments.as_json) {
    const auto session = files.find(name);
    if (!session) return std::unexpected(session.error());
    return to_json(json_of_session(files, *session)) + "\n";
  }
  return "Session " + name + " is connected to " + *server + "\nUse it     sluice call @" + name +
         " TOOL [NAME=VALUE...]\nEnd it     sluice session stop " + name + "\n";
}

// --- list and stop ------------------------------------------------------------------------------

std::string json_of_sessions(const SessionFiles& files, const std::vector<SessionInfo>& sessions) {
  json::array out;
  for (const SessionInfo& each : sessions) out.push_back(json_of_session(files, each));
  return to_json(json::object{{"sessions", std::move(out)}}) + "\n";
}

std::string text_of_sessions(const std::vector<SessionInfo>& sessions) {
  if (sessions.empty()) return "There are no sessions. Begin one: sluice session start TARGET\n";
  std::size_t width = 0;
  for (const SessionInfo& each : sessions) width = std::max(width, each.name.size());
  const Style style = Style::of(STDOUT_FILENO);
  std::string out;
  for (const SessionInfo& each : sessions) {
    out.append(style.bold()).append("@").append(each.name).append(style.reset());
    out.append(width - each.name.size() + 2, ' ');
    out.append(each.server.empty() ? "is being connected" : one_line(each.server)).append("\n");
    out.append(width + 3, ' ').append(style.dim()).append(one_line(each.target));
    out.append("  since ").append(one_line(each.since)).append(", process ");
    out.append(std::to_string(each.process)).append(style.reset()).append("\n");
  }
  return out;
}

Result<std::string> list_sessions(const SessionFiles& files, const SessionArguments& arguments) {
  if (auto good = check_session_words(arguments, 0, "list"); !good)
    return std::unexpected(good.error());
  const auto sessions = files.running();
  if (!sessions) return std::unexpected(sessions.error());
  return arguments.as_json ? json_of_sessions(files, *sessions) : text_of_sessions(*sessions);
}

Result<std::vector<SessionInfo>> sessions_to_end(const SessionFiles& files,
                                                 const SessionArguments& arguments) {
  if (auto good = check_session_words(arguments, 1, "stop"); !good)
    return std::unexpected(good.error());
  if (arguments.words.empty() != arguments.all) {
    return fail(kExitUsage, "stop: give the name of a session, or --all");
  }
  if (arguments.all) return files.running();
  const std::string& word = arguments.words.front();
  auto session = files.find(is_session_word(word) ? word.substr(1) : word);
  if (!session) return std::unexpected(std::move(session.error()));
  return std::vector{*std::move(session)};
}

Result<std::string> end_sessions(const SessionFiles& files, const SessionArguments& arguments) {
  const auto sessions = sessions_to_end(files, arguments);
  if (!sessions) return std::unexpected(sessions.error());
  std::string out;
  std::optional<Error> failed;  // the first that cannot be ended
  for (const SessionInfo& each : *sessions) {
    if (auto stopped = stop_session(files, each); stopped) {
      out.append("Session ").append(each.name).append(" has ended\n");
    } else if (!failed) {
      failed = std::move(stopped.error());
    }
  }
  if (!failed) return out;
  print(out);
  return std::unexpected(*std::move(failed));
}

// --- the command --------------------------------------------------------------------------------

Result<std::string> act_on_sessions(const SessionArguments& arguments) {
  const auto files = process_sessions();
  if (!files) return std::unexpected(files.error());
  if (arguments.action.empty()) return fail(kExitUsage, "say what to do: start, list or stop");
  const std::vector<std::string> actions = {"start", "list", "stop"};
  if (std::ranges::find(actions, arguments.action) != actions.end()) {
    if (auto fits = check_session_options(arguments); !fits) return std::unexpected(fits.error());
    if (arguments.action == "start") return begin_session(*files, arguments);
    if (arguments.action == "list") return list_sessions(*files, arguments);
    return end_sessions(*files, arguments);
  }
  const auto meant = suggestion(arguments.action, actions);
  return fail(kExitUsage, "there is no session " + arguments.action +
                              (meant.empty() ? "; see sluice session --help"
                                             : "; did you mean " + std::string(meant) + "?"));
}

int run_session_command(const SessionArguments& arguments) {
  const auto done = act_on_sessions(arguments);
  if (done) return print(*done);
  complain(done.error().message.empty() ? "" : "session: " + done.error().message);
  return done.error().code;
}

}  // namespace

void add_session_command(CommandLine& program) {
  const auto arguments = std::make_shared<SessionArguments>();
  Subcommand command = program.add_subcommand(
      "session", "Keep a connection to an MCP server open between commands", kSessionExamples,
      [arguments] { return run_session_command(*arguments); });
  command.add_option("action", &arguments->action,
                     {.text = "What to do", .operand = "start|list|stop"});
  command.add_option("words", &arguments->words,
                     {.text = "Of start, the server: " + std::string(kTargetText) +
                              ". Of stop, the name of the session",
                      .operand = "TARGET"});
  command.add_command_words(
      arguments->command,
      {.text = "The command that starts the server, in place of TARGET", .operand = "COMMAND"});
  command.add_flag("--all", arguments->all, {.text = "Of stop: stop all sessions"});
  command.add_flag("--json", arguments->as_json,
                   {.text = "Of start and list: print the session or the list as JSON"});
  const std::string group = "Of start";
  command.add_option("--name", &arguments->name,
                     {.text = "The name of the session. Default: that of the server, or one that "
                              "is made of its address or its command",
                      .operand = "NAME",
                      .group = group});
  command.add_option("--idle", &arguments->idle,
                     {.text = "End the session when nobody has used it for so long. Default 3600",
                      .operand = "SECONDS",
                      .group = group});
  command.add_repeatable(
      "-H,--header", Keep::all,
      [arguments](const std::vector<std::string>& values) { arguments->headers = values; },
      {.text = "Send this header with every request to the server. Repeat it for several",
       .operand = "\"Name: value\"",
       .group = group});
  command.add_option(
      "--revision", &arguments->revision,
      {.text = "The revision of MCP to speak with the server", .operand = "DATE", .group = group});
}

}  // namespace sluice
