#include <memory>
#include <string>
#include <unistd.h>
#include <vector>

#include "cli/content/content_options.hpp"
#include "cli/content/content_text.hpp"
#include "cli/options/command.hpp"
#include "cli/options/command_line.hpp"
#include "cli/questions/question_options.hpp"
#include "cli/remote/listing.hpp"
#include "cli/remote/remote_server.hpp"
#include "cli/terminal/terminal.hpp"
#include "json/json.hpp"
#include "rpc/error_codes.hpp"

namespace sluice {
namespace {

constexpr const char* kResourcesExamples =
    "Examples:\n"
    "  sluice resources http://127.0.0.1:8080/mcp\n"
    "  sluice resources notes --json | jq -r '.resources[].uri'\n"
    "\n"
    "A line has a URI, or a template of URIs in braces, and what is there.\n";

constexpr const char* kReadExamples =
    "Examples:\n"
    "  sluice read notes note://today\n"
    "  sluice read notes note://today --json\n"
    "  sluice read -- npx -y some-server file:///srv/files/a.txt\n"
    "\n"
    "With a command after --, the URI is the last word of it, or stands before --. Text is printed "
    "without control characters, and a binary resource is saved; no file is replaced.\n";

constexpr WordForm kReadForm = {.name = "the URI of a resource, which `sluice resources` lists"};

/// A server need not have templates.
std::vector<Listed> templates_of(Client& client) {
  try {
    return client.resource_templates();
  } catch (const Error& error) {
    if (error.code == kMethodNotFound) return {};
    throw;
  }
}

json::array definitions_of(const std::vector<Listed>& entries) {
  json::array out;
  for (const Listed& entry : entries) out.push_back(entry.definition);
  return out;
}

int run_resources(Client& server, bool as_json) {
  std::vector<Listed> resources = server.resources();
  const std::vector<Listed> templates = templates_of(server);
  if (as_json) {
    return print(
        printable_json(to_json(json::object{{"resources", definitions_of(resources)},
                                            {"resourceTemplates", definitions_of(templates)}})) +
        "\n");
  }
  resources.insert(resources.end(), templates.begin(), templates.end());
  if (resources.empty()) complain("resources: the server has none");
  return print(listing_of(resources, Style::of(STDOUT_FILENO)));
}

int run_read(Client& server, const std::string& uri, bool as_json, const ContentOptions& options) {
  const auto place = content_place(options);
  if (!place) {
    complain("read: " + place.error().message);
    return place.error().code;
  }
  const json::object result = server.request("resources/read", {{"uri", uri}}).result();
  if (as_json) return print(printable_json(to_json(result)) + "\n");
  const json::value* const contents = result.if_contains("contents");
  return contents != nullptr && contents->is_array()
             ? print(shown_resource(contents->get_array(), *place))
             : print(server_mistake("contents must be an array"));
}

}  // namespace

void add_resources_command(CommandLine& program) {
  const auto options = std::make_shared<RemoteOptions>();
  Subcommand command = program.add_subcommand(
      "resources", "List the resources of an MCP server", kResourcesExamples, [options] {
        return with_server("resources", *options, {}, {}, [&](Client& server, const RemoteWords&) {
          return run_resources(server, options->as_json);
        });
      });
  add_remote_options(command, *options, {.operand = "TARGET", .text = std::string(kTargetText)});
}

void add_read_command(CommandLine& program) {
  const auto options = std::make_shared<RemoteOptions>();
  const auto content = std::make_shared<ContentOptions>();
  const auto questions = std::make_shared<QuestionOptions>();
  Subcommand command = program.add_subcommand(
      "read", "Read a resource of an MCP server", kReadExamples, [options, content, questions] {
        return with_server("read", *options, kReadForm, client_answers(*questions),
                           [&](Client& server, const RemoteWords& words) {
                             return run_read(server, words.name, options->as_json, *content);
                           });
      });
  add_remote_options(
      command, *options,
      {.operand = "TARGET URI", .text = std::string(kTargetText) + "; the resource"});
  add_content_options(command, *content);
  add_question_options(command, *questions);
}

}  // namespace sluice
