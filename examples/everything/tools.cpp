#include <chrono>
#include <string>
#include <vector>

#include <boost/json/serialize.hpp>

#include "everything.hpp"

namespace everything {
namespace {

using namespace std::chrono_literals;
using sluice::Call;
using sluice::Content;
using sluice::LoggingLevel;
using sluice::Stream;
using sluice::Task;

/// Clients repeat `region` in the header Mcp-Param-Region (x-mcp-header).
struct Place {
  std::string region;

  static auto describe() {
    return sluice::describe(sluice::field<&Place::region>("Where to look").header("Region"));
  }
};

struct Range {
  int to = 10;
};
struct Sum {
  int sum = 0;
};

sluice::json::value schema_2020_12() {
  return sluice::json::value{
      {"$schema", "https://json-schema.org/draft/2020-12/schema"},
      {"type", "object"},
      {"$defs",
       {{"address",
         {{"$anchor", "addressDef"},
          {"type", "object"},
          {"properties", {{"street", {{"type", "string"}}}, {"city", {{"type", "string"}}}}}}}}},
      {"properties",
       {{"name", {{"type", "string"}}},
        {"address", {{"$ref", "#/$defs/address"}}},
        {"contactMethod", {{"type", "string"}, {"enum", {"phone", "email"}}}},
        {"phone", {{"type", "string"}}},
        {"email", {{"type", "string"}}}}},
      {"allOf",
       sluice::json::array{
           {{"anyOf",
             sluice::json::array{
                 sluice::json::object{{"required", sluice::json::array{"phone"}}},
                 sluice::json::object{{"required", sluice::json::array{"email"}}}}}}}},
      {"if",
       {{"properties", {{"contactMethod", {{"const", "phone"}}}}},
        {"required", sluice::json::array{"contactMethod"}}}},
      {"then", {{"required", sluice::json::array{"phone"}}}},
      {"else", {{"required", sluice::json::array{"email"}}}},
      {"additionalProperties", false}};
}

void add_content_tools(sluice::Server& server) {
  server.tool("test_simple_text", "Returns text",
              [] { return "This is a simple text response for testing."; });
  server.tool("test_image_content", "Returns an image",
              [] { return Content::image(png(), "image/png"); });
  server.tool("test_audio_content", "Returns audio",
              [] { return Content::audio(wav(), "audio/wav"); });
  server.tool("test_embedded_resource", "Returns a resource", [] {
    return Content::resource({.uri = "test://embedded-resource",
                              .mime_type = "text/plain",
                              .data = "This is an embedded resource content."});
  });
  server.tool("test_multiple_content_types", "Returns text, an image and a resource", [] {
    return std::vector{Content::text("Multiple content types test:"),
                       Content::image(png(), "image/png"),
                       Content::resource({.uri = "test://mixed-content-resource",
                                          .mime_type = "application/json",
                                          .data = R"({"test":"data","value":123})"})};
  });
  server.tool("test_error_handling", "Fails", []() -> std::string {
    throw sluice::ToolError("This tool intentionally returns an error for testing");
  });
  server.tool("json_schema_2020_12_tool", "Has a schema with everything of JSON Schema 2020-12",
              [](sluice::json::object in) { return "Called with " + sluice::json::serialize(in); },
              {.input_schema = schema_2020_12()});
  server.tool("test_x_mcp_header", "Looks at a place that clients name in a header, too",
              [](Place in) { return "Looked at " + in.region; });
}

void add_streaming_tools(sluice::Server& server) {
  server.tool("test_tool_with_logging", "Logs while it works", [](Call& call) -> Task<std::string> {
    call.log(LoggingLevel::info, "Tool execution started");
    co_await call.sleep(50ms);
    call.log(LoggingLevel::info, "Tool processing data");
    co_await call.sleep(50ms);
    call.log(LoggingLevel::info, "Tool execution completed");
    co_return "Logged three messages";
  });
  server.tool("test_logging_tool", "Logs one message of each level",
              [](Call& call) -> Task<std::string> {
                for (const LoggingLevel level : {LoggingLevel::debug, LoggingLevel::info,
                                                 LoggingLevel::warning, LoggingLevel::error}) {
                  call.log(level, "A message");
                }
                co_return "Logged";
              });
  server.tool("test_tool_with_progress", "Tells how far it is",
              [](Call& call) -> Task<std::string> {
                call.progress(0, 100);
                co_await call.sleep(50ms);
                call.progress(50, 100);
                co_await call.sleep(50ms);
                call.progress(100, 100);
                co_return "Done";
              });
  server.tool("test_reconnection", "Closes the connection while it works; the client comes back",
              [](Call& call) -> Task<std::string> {
                call.disconnect(500ms);
                co_await call.sleep(100ms);
                co_return "Delivered after the client came back";
              });
  server.tool("count", "Counts aloud", [](Range in) -> Stream<Sum> {
    Sum out;
    for (int i = 1; i <= in.to; ++i) {
      out.sum += i;
      co_yield sluice::text(std::to_string(i) + "\n");
    }
    co_return out;
  });
  server.tool("slow_sum", "Adds up on a worker thread, and tells how far it is",
              sluice::blocking([](Range in, Call& call) {
                Sum out;
                for (int i = 1; i <= in.to; ++i) {
                  out.sum += i;
                  call.progress(i, in.to);
                }
                return out;
              }));
}

}  // namespace

void add_tools(sluice::Server& server) {
  add_content_tools(server);
  add_streaming_tools(server);
  server.tool("test_trigger_tool_change", "Announces that the tools have changed", [&server] {
    server.tools_changed();
    return "Announced";
  });
  server.tool("test_trigger_prompt_change", "Announces that the prompts have changed", [&server] {
    server.prompts_changed();
    return "Announced";
  });
  server.tool("test_trigger_resource_list_change",
              "Announces that the list of resources has changed", [&server] {
                server.resources_changed();
                return "Announced";
              });
  server.tool("test_trigger_resource_update", "Announces that test://watched-resource has changed",
              [&server] {
                server.resource_updated("test://watched-resource");
                return "Announced";
              });
}

}  // namespace everything
