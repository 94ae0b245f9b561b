#pragma once

#include <cstddef>
#include <gtest/gtest.h>
#include <string>
#include <string_view>

#include "json/json.hpp"
#include "server/api/server_state.hpp"
#include "server/dispatch/server_test_support.hpp"
#include "sluice/server.hpp"

namespace sluice {

/// A server whose definition a bench serves.
class PublicServerTest : public ::testing::Test {
 protected:
  struct Add {
    int a;
    int b;
  };
  struct Total {
    int sum = 0;
  };
  struct Name {
    std::string name;
  };

  void serve() {
    const ServerDefinition made = server.state()->definition();
    bench.definition.tools = made.tools;
    bench.definition.resources = made.resources;
    bench.definition.resource_templates = made.resource_templates;
    bench.definition.prompts = made.prompts;
    bench.definition.middleware = made.middleware;
    bench.definition.workers = made.workers;
    bench.definition.logs = true;
    bench.definition.list_caching = made.list_caching;
    bench.serve();
  }
  static std::string modern(std::string_view capabilities, std::string_view more = {}) {
    std::string out =
        R"("_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","progressToken":7,)"
        R"("io.modelcontextprotocol/clientCapabilities":)";
    out.append(capabilities).append("}");
    if (!more.empty()) out.append(",").append(more);
    return out;
  }
  /// Calls a tool as a client of 2026-07-28. Returns the answer, given at once or through the
  /// channel; null if there is none yet.
  json::value call(std::string_view tool, std::string_view arguments,
                   std::string_view capabilities = "{}", std::string_view more = {}) {
    std::string members =
        R"("name":")" + std::string(tool) + R"(","arguments":)" + std::string(arguments);
    if (!more.empty()) members.append(",").append(more);
    return answer_of(bench.request("tools/call", modern(capabilities, members), caller));
  }
  json::value answer_of(const std::string& now) {
    bench.run_all();
    if (!now.empty()) return parse_json(now).value();
    const RecordingChannel& channel = caller.channel();
    if (!channel.replies.empty()) return parse_json(channel.replies.back()).value();
    // The last event is the answer.
    const std::size_t data = channel.written.rfind("data: ");
    if (data == std::string::npos) return nullptr;
    return parse_json(channel.written.substr(data + 6)).value();
  }
  static std::string text_of(const json::value& answer) {
    return std::string(answer.at_pointer("/result/content/0/text").as_string());
  }
  std::size_t events() {
    std::size_t count = 0;
    const std::string& written = caller.channel().written;
    for (std::size_t at = 0; (at = written.find("data: ", at)) != std::string::npos; ++at) ++count;
    return count;
  }

  Server server{"test", "1"};
  ServerBench bench;
  RecordingCaller caller;
};

}  // namespace sluice
