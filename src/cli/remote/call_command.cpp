#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <unistd.h>
#include <utility>
#include <vector>

#include "cli/content/content_options.hpp"
#include "cli/content/content_text.hpp"
#include "cli/content/exact_json.hpp"
#include "cli/options/command.hpp"
#include "cli/options/command_line.hpp"
#include "cli/options/exit_code.hpp"
#include "cli/options/suggestion.hpp"
#include "cli/questions/question_options.hpp"
#include "cli/remote/call_arguments.hpp"
#include "cli/remote/call_output.hpp"
#include "cli/remote/remote_server.hpp"
#include "cli/terminal/standard_input.hpp"
#include "cli/terminal/terminal.hpp"
#include "json/members.hpp"

namespace sluice {
namespace {

constexpr const char* kCallExamples =
    "Examples:\n"
    "  sluice call http://127.0.0.1:8080/mcp count to=5\n"
    "  sluice call notes search query=\"cheap flights\" limit=3 tags=a tags=b\n"
    "  sluice call notes add '{\"title\": \"Milk\"}'\n"
    "  sluice call notes add - < note.json\n"
    "  sluice call -- npx -y some-server search query=\"cheap flights\"\n"
    "  sluice call notes summarize --sampling allow --model model.gguf\n"
    "  sluice call -v notes search query=\"cheap flights\"   # what is said, on standard error\n"
    "  sluice call search query=\"a=b\" -- npx -y some-server --mode=x\n"
    "  sluice call notes summarize --task\n"
    "\n"
    "NAME=VALUE is read by the tool's schema: as a number, true, false, null, JSON of an array or "
    "an object, or as text. A name that is repeated gives an array, a.b=1 a member of an object, "
    "and NAME:=JSON is that JSON. A word {...} is a JSON object with arguments, and - reads one "
    "from standard input.\n"
    "\n"
    "With a command after --, the tool and its arguments stand at the end of the command: the "
    "words NAME=VALUE, {...} and - there are arguments, and the word before them is the tool. If "
    "words of the command have that form too, put the tool and its arguments before --.\n"
    "\n"
    "What the tool says while it runs is printed as it comes. Images, audio and binary resources "
    "are saved; no file is replaced. Ctrl-C cancels the call. A tool that fails ends with 5.\n";

constexpr std::size_t kMaxArguments = std::size_t{16} << 20U;  // bytes of standard input
constexpr WordForm kCallForm = {.name = "the name of a tool, which `sluice tools` lists",
                                .takes_assignments = true,
                                .takes_object = true};

struct CallCommandOptions {
  RemoteOptions remote;
  ContentOptions content;
  QuestionOptions questions;
  std::string arguments;  // JSON, or "-"
  std::string json;       // the same, of --json=JSON
  bool as_task = false;
};

Result<json::object> given_arguments(const std::string& text) {
  if (text.empty()) return json::object();
  std::string read = text;
  if (text == "-") {
    auto input = read_input(STDIN_FILENO, kMaxArguments, "arguments",
                            [] { complain("call: waiting for the arguments on standard input"); });
    if (!input) return std::unexpected(std::move(input.error()));
    read = *std::move(input);
  }
  auto parsed = exact_json(read);
  if (!parsed) return fail(kExitUsage, "the arguments: " + parsed.error().message);
  if (!parsed->is_object()) return fail(kExitUsage, "the arguments: give a JSON object");
  return std::move(parsed->get_object());
}

Result<json::object> schema_of(Client& client, const std::string& name) {
  const std::vector<Listed> tools = client.tools(name);
  const auto found = std::ranges::find(tools, name, &Listed::name);
  if (found != tools.end()) {
    const json::object* const schema = object_at(found->definition, "inputSchema");
    return schema == nullptr ? json::object() : *schema;
  }
  std::vector<std::string> names;
  for (const Listed& tool : tools) names.push_back(tool.name);
  const auto meant = suggestion(name, names);
  return fail(kExitUsage, "the server has no tool " + name +
                              (meant.empty() ? "; `sluice tools` lists them"
                                             : "; did you mean " + std::string(meant) + "?"));
}

int call_tool(Client& server, const std::string& tool, const json::object& arguments,
              const CallCommandOptions& options, const ContentPlace& place) {
  const bool as_json = options.remote.as_json;
  if (!options.as_task) {
    auto call = server.call(tool, arguments);
    return show_call(call, as_json, place);
  }
  const auto task = server.start(tool, arguments).result();
  if (!task.id().empty()) {
    return print(as_json ? printable_json(to_json(json::object{{"taskId", task.id()}})) + "\n"
                         : one_line(task.id()) + "\n");
  }
  complain("call: the server has made no task of it, but answered");
  auto answer = task.wait();
  return show_call(answer, as_json, place);
}

int run_call(Client& server, const RemoteWords& words, const CallCommandOptions& options) {
  const auto failed = [](const Error& error) {
    complain("call: " + error.message);
    return error.code;
  };
  const auto place = content_place(options.content);
  if (!place) return failed(place.error());
  const std::array<const std::string*, 3> sources = {&words.object, &options.arguments,
                                                     &options.json};
  const auto is_given = [](const std::string* text) { return !text->empty(); };
  if (std::ranges::count_if(sources, is_given) > 1) {
    return failed({kExitUsage, "give either a JSON object, --arguments or --json={...}", {}});
  }
  const auto source = std::ranges::find_if(sources, is_given);
  auto given = given_arguments(source == sources.end() ? std::string() : **source);
  if (!given) return failed(given.error());
  const auto schema = schema_of(server, words.name);
  if (!schema) return failed(schema.error());
  const auto arguments = tool_arguments(words.assignments, *schema, *std::move(given));
  if (!arguments) return failed(arguments.error());
  return call_tool(server, words.name, *arguments, options, *place);
}

}  // namespace

void add_call_command(CommandLine& program) {
  const auto options = std::make_shared<CallCommandOptions>();
  Subcommand command =
      program.add_subcommand("call", "Call a tool of an MCP server", kCallExamples, [options] {
        return with_server("call", options->remote, kCallForm, client_answers(options->questions),
                           [&](Client& server, const RemoteWords& words) {
                             return run_call(server, words, *options);
                           });
      });
  add_remote_options(command, options->remote,
                     {.operand = "TARGET TOOL [NAME=VALUE]",
                      .text = std::string(kTargetText) + "; the tool; its arguments",
                      .arguments = &options->json});
  command.add_option("--arguments", &options->arguments,
                     {.text = "The arguments as a JSON object; - reads it from standard input",
                      .operand = "JSON"});
  add_content_options(command, options->content);
  add_question_options(command, options->questions);
  command.add_flag("--task", options->as_task,
                   {.text = "Start the call as a task and print its id; see sluice tasks"});
}

}  // namespace sluice
