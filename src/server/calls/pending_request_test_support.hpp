#pragma once

// Calls that are answered later, of clients of both eras.

#include <chrono>
#include <cmath>
#include <cstdint>
#include <future>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "protocol/error_codes.hpp"
#include "rpc/error_codes.hpp"
#include "server/calls/long_result.hpp"
#include "server/calls/pending_request.hpp"
#include "server/calls/session_questions.hpp"
#include "server/dispatch/server_test_support.hpp"
#include "server/notifications/message_events.hpp"
#include "server/workers/worker_pool.hpp"
#include "sluice/call.hpp"
#include "stream/stream_test_support.hpp"

namespace sluice {

inline constexpr std::string_view kAsksForName =
    R"({"message":"Who?","requestedSchema":{"type":"object","properties":{"name":{"type":"string"}}}})";

/// Calls of the tool `later`, from clients of both eras.
class PendingRequestTest : public ::testing::Test {
 protected:
  PendingRequest& call() { return *bench.calls.back(); }
  RecordingChannel& channel() { return caller.channel(); }

  /// A client of 2025-11-25 initializes and calls.
  void call_in_session(std::string_view capabilities = "{}", std::string_view meta = "") {
    bench.request("initialize",
                  R"("protocolVersion":"2025-11-25","capabilities":)" + std::string(capabilities),
                  caller);
    bench.request("tools/call", R"("name":"later","_meta":{)" + std::string(meta) + "}", caller);
    ASSERT_FALSE(bench.calls.empty());
  }

  /// A client of 2026-07-28 calls. `more` are further members of the parameters.
  std::string call_modern(std::string_view capabilities = "{}", std::string_view more = "",
                          std::string_view meta = "") {
    return bench.request(
        "tools/call",
        R"("name":"later","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",)"
        R"("io.modelcontextprotocol/clientCapabilities":)" +
            std::string(capabilities) + std::string(meta) + "}" + std::string(more),
        caller);
  }

  /// Asks the client for a name and its roots. `heard` gets the answers or the error.
  void ask_for_name_and_roots() {
    heard.clear();
    call().ask({{"name", "elicitation/create", parse_json(kAsksForName)->get_object()},
                {"roots", "roots/list", {}}},
               [this](const Result<std::vector<json::value>>& answers) {
                 if (!answers) {
                   heard = std::to_string(answers.error().code) + " " + answers.error().data;
                   return;
                 }
                 for (const json::value& answer : *answers) heard += to_json(answer);
               });
    bench.run_all();
  }

  void respond(const std::string& id, const std::string& outcome) {
    MessageParser parser;
    const std::string text = R"({"jsonrpc":"2.0","id":)" + id + "," + outcome + "}";
    const auto message = parser.parse(text);
    ASSERT_TRUE(message);
    caller.agreed->on_response(*message);
    bench.run_all();
  }
  /// The id of the last request of `method` to the client.
  std::string asked_id(const std::string& method) {
    const std::string& written = channel().written;
    const std::size_t at = written.rfind(R"(,"method":")" + method);
    const std::size_t from = written.rfind("\"id\":", at) + 5;
    return written.substr(from, at - from);
  }

  ServerBench bench;
  RecordingCaller caller;
  std::string heard;
};

inline constexpr const char* kAsksAll = R"({"elicitation":{},"roots":{}})";

}  // namespace sluice
