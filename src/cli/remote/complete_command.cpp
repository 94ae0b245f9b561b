#include <memory>
#include <string>
#include <utility>

#include "cli/options/command.hpp"
#include "cli/options/command_line.hpp"
#include "cli/options/exit_code.hpp"
#include "cli/remote/call_arguments.hpp"
#include "cli/remote/remote_server.hpp"
#include "cli/terminal/terminal.hpp"

namespace sluice {
namespace {

constexpr const char* kCompleteExamples =
    "Examples:\n"
    "  sluice complete notes summarize style=sh\n"
    "  sluice complete notes 'note://{owner}/{title}' title=sh owner=mira\n"
    "\n"
    "Prints what the server suggests for the first argument, a line each. Further arguments have "
    "their values already. What has :// or a brace is a template of a resource, another name "
    "is a prompt.\n";

constexpr WordForm kCompleteForm = {
    .name = "a prompt or a template, which `sluice prompts` and `sluice resources` list",
    .takes_assignments = true};

int run_complete(Client& server, const RemoteWords& words, bool as_json) {
  const auto failed = [](const std::string& message) {
    complain("complete: " + message);
    return kExitUsage;
  };
  auto given = text_arguments(words.assignments);
  if (!given) return failed(given.error().message);
  if (given->empty()) return failed("give the argument to complete, such as style=sh");
  TypedArgument argument{
      .name = given->front().first, .value = given->front().second, .context = {}};
  for (auto one = given->begin() + 1; one != given->end(); ++one) {
    argument.context.emplace(one->first, one->second);
  }
  const bool is_template = words.name.contains("://") || words.name.contains('{');
  const ArgumentCompletion completion = is_template ? server.complete_resource(words.name, argument)
                                                    : server.complete_prompt(words.name, argument);
  if (as_json) {
    json::array values;
    for (const std::string& value : completion.values) values.emplace_back(value);
    json::object out{{"values", std::move(values)}, {"hasMore", completion.has_more}};
    if (completion.total) out["total"] = *completion.total;
    return print(printable_json(to_json(out)) + "\n");
  }
  std::string text;
  for (const std::string& value : completion.values) text.append(one_line(value)).append("\n");
  return print(text);
}

}  // namespace

void add_complete_command(CommandLine& program) {
  const auto options = std::make_shared<RemoteOptions>();
  Subcommand command = program.add_subcommand(
      "complete", "Complete the argument of a prompt or of a resource", kCompleteExamples,
      [options] {
        return with_server("complete", *options, kCompleteForm, {},
                           [&](Client& server, const RemoteWords& words) {
                             return run_complete(server, words, options->as_json);
                           });
      });
  add_remote_options(
      command, *options,
      {.operand = "TARGET PROMPT NAME=VALUE",
       .text = std::string(kTargetText) + "; what has the argument; the argument so far"});
}

}  // namespace sluice
