#include <memory>
#include <string>
#include <string_view>
#include <unistd.h>
#include <utility>
#include <vector>

#include "cli/content/content_options.hpp"
#include "cli/content/content_text.hpp"
#include "cli/options/command.hpp"
#include "cli/options/command_line.hpp"
#include "cli/options/exit_code.hpp"
#include "cli/questions/question_options.hpp"
#include "cli/remote/call_arguments.hpp"
#include "cli/remote/listing.hpp"
#include "cli/remote/remote_server.hpp"
#include "cli/terminal/terminal.hpp"
#include "json/members.hpp"

namespace sluice {
namespace {

constexpr const char* kPromptsExamples =
    "Examples:\n"
    "  sluice prompts http://127.0.0.1:8080/mcp\n"
    "  sluice prompts notes --json | jq -r '.prompts[].name'\n";

constexpr const char* kPromptExamples =
    "Examples:\n"
    "  sluice prompt notes summarize style=short\n"
    "  sluice prompt notes summarize style=short --json | jq .messages\n"
    "\n"
    "Each message has its role before it. With a command after --, the prompt and its arguments "
    "stand at the end of it, as those of `sluice call`.\n";

constexpr WordForm kPromptForm = {.name = "the name of a prompt, which `sluice prompts` lists",
                                  .takes_assignments = true};

int run_prompts(Client& server, bool as_json) {
  const std::vector<Listed> prompts = server.prompts();
  if (as_json) return print(json_listing("prompts", prompts));
  if (prompts.empty()) complain("prompts: the server has none");
  return print(listing_of(prompts, Style::of(STDOUT_FILENO)));
}

/// All messages, each with its role before it.
ShownContent shown_messages(const json::array& messages, const ContentPlace& place) {
  ShownContent out;
  for (const json::value& each : messages) {
    const json::object* const message = each.if_object();
    const json::value* const content =
        message == nullptr ? nullptr : message->if_contains("content");
    if (content == nullptr) continue;
    ShownContent shown = shown_content({*content}, place);
    out.text.append(one_line(text_at(*message, "role"))).append(": ").append(shown.text);
    if (!out.text.ends_with('\n')) out.text.push_back('\n');
    for (std::string& note : shown.notes) out.notes.push_back(std::move(note));
    out.has_failed = out.has_failed || shown.has_failed;
  }
  return out;
}

int run_prompt(Client& server, const RemoteWords& words, bool as_json,
               const ContentOptions& options) {
  const auto failed = [](const Error& error) {
    complain("prompt: " + error.message);
    return error.code;
  };
  const auto place = content_place(options);
  if (!place) return failed(place.error());
  const auto given = text_arguments(words.assignments);
  if (!given) return failed(given.error());
  json::object arguments;
  for (const auto& [name, value] : *given) arguments[name] = value;
  json::object params{{"name", words.name}, {"arguments", std::move(arguments)}};
  const json::object result = server.request("prompts/get", std::move(params)).result();
  if (as_json) return print(printable_json(to_json(result)) + "\n");
  const json::value* const messages = result.if_contains("messages");
  return messages != nullptr && messages->is_array()
             ? print(shown_messages(messages->get_array(), *place))
             : print(server_mistake("messages must be an array"));
}

}  // namespace

void add_prompts_command(CommandLine& program) {
  const auto options = std::make_shared<RemoteOptions>();
  Subcommand command = program.add_subcommand(
      "prompts", "List the prompts of an MCP server", kPromptsExamples, [options] {
        return with_server("prompts", *options, {}, {}, [&](Client& server, const RemoteWords&) {
          return run_prompts(server, options->as_json);
        });
      });
  add_remote_options(command, *options, {.operand = "TARGET", .text = std::string(kTargetText)});
}

void add_prompt_command(CommandLine& program) {
  const auto options = std::make_shared<RemoteOptions>();
  const auto content = std::make_shared<ContentOptions>();
  const auto questions = std::make_shared<QuestionOptions>();
  Subcommand command = program.add_subcommand(
      "prompt", "Get a prompt of an MCP server", kPromptExamples, [options, content, questions] {
        return with_server("prompt", *options, kPromptForm, client_answers(*questions),
                           [&](Client& server, const RemoteWords& words) {
                             return run_prompt(server, words, options->as_json, *content);
                           });
      });
  add_remote_options(command, *options,
                     {.operand = "TARGET PROMPT [NAME=VALUE]",
                      .text = std::string(kTargetText) + "; the prompt; its arguments"});
  add_content_options(command, *content);
  add_question_options(command, *questions);
}

}  // namespace sluice
