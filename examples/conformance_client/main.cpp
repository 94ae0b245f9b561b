// The client that the official conformance suite of MCP tests (its client mode). It gets the URL of
// a server, and the name of a scenario in the environment, which says what to do there.

#include <cstdlib>
#include <exception>
#include <iostream>
#include <string>
#include <string_view>
#include <utility>

#include <boost/json/parse.hpp>

#include "login.hpp"
#include "sluice/client.hpp"

namespace {

using sluice::Client;
namespace json = sluice::json;

std::string variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

/// Calls a tool and prints what it says, be it an error.
void call(Client& client, std::string_view tool, json::object arguments = {}) {
  try {
    std::cout << tool << ": " << client.call(tool, std::move(arguments)).result().text() << "\n";
  } catch (const sluice::Error& error) {
    std::cout << tool << ": error " << error.code << " " << error.message << "\n";
  }
}

void list_tools(Client& client) {
  for (const sluice::Listed& tool : client.tools()) std::cout << tool.name << "\n";
}

/// Asks for everything that the server lists.
void use_everything(Client& client) {
  for (const sluice::Listed& tool : client.tools()) call(client, tool.name);
  for (const sluice::Listed& resource : client.resources()) {
    client.read_resource(std::string_view(resource.definition.at("uri").as_string()));
  }
  for (const sluice::Listed& prompt : client.prompts()) client.get_prompt(prompt.name);
}

/// Makes the calls that the scenario's context names.
void make_given_calls(Client& client, const json::object& context) {
  list_tools(client);
  const json::value* const calls = context.if_contains("toolCalls");
  if (calls == nullptr) return;
  for (const json::value& each : calls->as_array()) {
    const json::object& wanted = each.as_object();
    const json::value* const arguments = wanted.if_contains("arguments");
    call(client, std::string_view(wanted.at("name").as_string()),
         arguments == nullptr ? json::object() : arguments->as_object());
  }
}

void call_every_tool(Client& client) {
  for (const sluice::Listed& tool : client.tools()) call(client, tool.name);
}

/// Sends a tool's schema back as it was received.
void echo_schema(Client& client) {
  for (const sluice::Listed& tool : client.tools()) {
    if (tool.name != "json_schema_2020_12_tool") continue;
    call(client, "json_schema_echo", {{"schema", tool.definition.at("inputSchema")}});
  }
}

/// Loads every skill: its SKILL.md first, and then, if that is what the server has listed, the
/// rest.
void load_skills(Client& client) {
  for (const sluice::Listed& skill : client.skills()) {
    const std::string_view manifest(skill.definition.at("uri").as_string());
    std::cout << client.read_skill_file(skill, manifest) << "\n";
    for (const json::value& file : skill.definition.at("resources").as_array()) {
      const std::string_view uri(file.at("uri").as_string());
      if (uri != manifest) client.read_skill_file(skill, uri);
    }
  }
}

void run(Client& client, const std::string& scenario, const json::object& context) {
  if (scenario == "tools_call") {
    list_tools(client);
    return call(client, "add_numbers", {{"a", 5}, {"b", 3}});
  }
  if (scenario == "elicitation-sep1034-client-defaults") {
    return call(client, "test_client_elicitation_defaults");
  }
  if (scenario == "sse-retry") return call(client, "test_reconnection");
  if (scenario == "http-standard-headers") return use_everything(client);
  if (scenario == "http-custom-headers") return make_given_calls(client, context);
  if (scenario == "http-invalid-tool-headers" || scenario == "sep-2322-client-request-state") {
    return call_every_tool(client);
  }
  if (scenario == "json-schema-2020-12-preservation") return echo_schema(client);
  if (scenario == "sep-2640-client-no-prefetch") {
    client.skills();
    return;
  }
  if (scenario.starts_with("sep-2640-client-verify-")) return load_skills(client);
  list_tools(client);
  if (scenario.starts_with("auth/")) call(client, "test-tool");
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 2) {
    std::cerr << "usage: sluice-conformance-client URL\n";
    return 2;
  }
  try {
    sluice::ClientOptions options{.info = {.name = "sluice-conformance-client", .version = "1"}};
    const std::string scenario = variable("MCP_CONFORMANCE_SCENARIO");
    // This one's server refuses the first revision that a client asks for.
    if (scenario != "request-metadata") {
      options.revision = variable("MCP_CONFORMANCE_PROTOCOL_VERSION");
    }
    // An accepted form without content gets the defaults of its schema.
    options.on_elicitation = [](const json::object&) -> json::object {
      return {{"action", "accept"}, {"content", json::object()}};
    };
    options.on_sampling = [](const json::object&) -> json::object {
      return {{"role", "assistant"},
              {"content", {{"type", "text"}, {"text", "Paris"}}},
              {"model", "none"},
              {"stopReason", "endTurn"}};
    };
    options.on_roots = [](const json::object&) -> json::object {
      return {{"roots", {{{"uri", "file:///"}, {"name", "root"}}}}};
    };
    json::object context;
    if (const std::string text = variable("MCP_CONFORMANCE_CONTEXT"); !text.empty()) {
      context = boost::json::parse(text).as_object();
    }
    options.authorization = authorization_of(scenario, context);
    Client client = sluice::connect(arguments[1], options);
    run(client, scenario, context);
    return 0;
  } catch (const std::exception& exception) {
    std::cerr << exception.what() << "\n";
    return 1;
  }
}
