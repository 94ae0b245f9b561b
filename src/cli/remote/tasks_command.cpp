#include <memory>
#include <string>
#include <vector>

#include "cli/content/content_options.hpp"
#include "cli/options/command.hpp"
#include "cli/options/command_line.hpp"
#include "cli/options/exit_code.hpp"
#include "cli/questions/question_options.hpp"
#include "cli/remote/call_output.hpp"
#include "cli/remote/remote_server.hpp"
#include "cli/terminal/terminal.hpp"
#include "json/json.hpp"

namespace sluice {
namespace {

constexpr const char* kTasksExamples =
    "Examples:\n"
    "  sluice call notes summarize --task\n"
    "  sluice tasks notes --wait 8f0c2k1m9q4w7x5z3b6n1v8c2k1m9q4w\n"
    "  sluice tasks notes --get 8f0c2k1m9q4w7x5z3b6n1v8c2k1m9q4w --json\n"
    "  sluice tasks notes\n"
    "\n"
    "Without an id it lists your tasks, which servers of 2026-07-28 do not. A task that is waited "
    "for may ask you something. Ctrl-C ends the waiting, and not the task. A task that fails "
    "ends with 5.\n";

struct TasksOptions {
  RemoteOptions remote;
  ContentOptions content;
  QuestionOptions questions;
  std::string get;
  std::string wait;
  std::string cancel;
};

std::string task_line(const TaskDescription& task) {
  std::string out = one_line(task.id) + "  " + one_line(task.status);
  if (!task.message.empty()) out.append("  ").append(one_line(task.message));
  return out + "\n";
}

int list_tasks(Client& server, bool as_json) {
  const std::vector<TaskDescription> tasks = server.tasks();
  if (as_json) {
    json::array all;
    for (const TaskDescription& task : tasks) all.emplace_back(task.definition);
    return print(printable_json(to_json(json::object{{"tasks", std::move(all)}})) + "\n");
  }
  if (tasks.empty()) complain("tasks: you have none there");
  std::string out;
  for (const TaskDescription& task : tasks) out.append(task_line(task));
  return print(out);
}

int show_task(const RemoteTask<>& task, bool as_json) {
  const TaskDescription state = task.state();
  return print(as_json ? printable_json(to_json(state.definition)) + "\n" : task_line(state));
}

int wait_for_task(Client& server, const TasksOptions& options) {
  const auto place = content_place(options.content);
  if (!place) {
    complain("tasks: " + place.error().message);
    return place.error().code;
  }
  auto call = server.task(options.wait).wait();
  return show_call(call, options.remote.as_json, *place);
}

int run_tasks(Client& server, const TasksOptions& options) {
  const int given = static_cast<int>(!options.get.empty()) +
                    static_cast<int>(!options.wait.empty()) +
                    static_cast<int>(!options.cancel.empty());
  if (given > 1) {
    complain("tasks: give one of --get, --wait and --cancel");
    return kExitUsage;
  }
  const bool as_json = options.remote.as_json;
  if (!options.wait.empty()) return wait_for_task(server, options);
  if (!options.get.empty()) return show_task(server.task(options.get), as_json);
  if (options.cancel.empty()) return list_tasks(server, as_json);
  const RemoteTask<> task = server.task(options.cancel);
  task.cancel();
  return show_task(task, as_json);
}

}  // namespace

void add_tasks_command(CommandLine& program) {
  const auto options = std::make_shared<TasksOptions>();
  Subcommand command = program.add_subcommand(
      "tasks", "Show, await and cancel the tasks of an MCP server", kTasksExamples, [options] {
        return with_server(
            "tasks", options->remote, {}, client_answers(options->questions),
            [&](Client& server, const RemoteWords&) { return run_tasks(server, *options); });
      });
  add_remote_options(command, options->remote,
                     {.operand = "TARGET", .text = std::string(kTargetText)});
  command.add_option("--get", &options->get,
                     {.text = "Show the state of this task", .operand = "ID"});
  command.add_option(
      "--wait", &options->wait,
      {.text = "Wait until this task has ended, and print its result", .operand = "ID"});
  command.add_option("--cancel", &options->cancel,
                     {.text = "Ask the server to stop this task", .operand = "ID"});
  add_content_options(command, options->content);
  add_question_options(command, options->questions);
}

}  // namespace sluice
