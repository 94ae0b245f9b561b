#pragma once

#include <gtest/gtest.h>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "server/dispatch/server_test_support.hpp"
#include "server/tasks/task_service.hpp"

namespace sluice {

/// Tasks of clients of both eras. The server's tool `later` keeps its calls and may run as a task.
class TaskTestBench : public ::testing::Test {
 protected:
  TaskTestBench() {
    Tool& later = bench.definition.tools[1];
    later.task_support = TaskSupport::optional;
    Tool needed = later;
    needed.name = "needed";
    needed.task_support = TaskSupport::required;
    bench.definition.tools.push_back(needed);
    Tool first = needed;
    first.name = "first";
    first.asks_first = true;
    bench.definition.tools.push_back(first);
    Tool at_once = bench.definition.tools[0];
    at_once.name = "at_once";
    at_once.task_support = TaskSupport::optional;
    bench.definition.tools.push_back(at_once);
    serve({});
  }
  ~TaskTestBench() override {
    bench.calls.clear();
    bench.run_all();
  }

  void serve(const TaskLimits& limits) {
    bench.tasks = std::make_unique<TaskStore>(limits, bench.executors[0].clock(), *bench.changes,
                                              [this] { return time_of_day; });
    bench.serve();
  }

  /// Initializes a client of 2025-11-25. Messages to its session are recorded in `told`.
  void initialize(std::string_view capabilities = "{}") {
    bench.request("initialize",
                  R"("protocolVersion":"2025-11-25","capabilities":)" + std::string(capabilities),
                  caller);
    caller.agreed->set_outlet(bench.executors[0],
                              [this](const std::string& /*state_of*/, const std::string& message) {
                                told.push_back(message);
                              });
  }

  std::string call(std::string_view tool, std::string_view more = R"(,"task":{})") {
    return bench.request("tools/call", R"("name":")" + std::string(tool) + "\"" + std::string(more),
                         caller);
  }
  /// Sends a request of a client of 2026-07-28 with the extension.
  std::string modern(
      std::string_view method, std::string_view params,
      std::string_view capabilities =
          R"({"elicitation":{},"extensions":{"io.modelcontextprotocol/tasks":{}}})") {
    return bench.request(method,
                         R"("_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",)"
                         R"("io.modelcontextprotocol/clientCapabilities":)" +
                             std::string(capabilities) + "}," + std::string(params),
                         caller);
  }
  /// Begins a task of 2025-11-25, whose call is bench.calls.back().
  std::string begin(std::string_view tool = "later", std::string_view more = R"(,"task":{})") {
    const std::string response = call(tool, more);
    bench.run_all();
    return id_of(response);
  }
  std::string begin_modern(std::string_view tool = "later") {
    const std::string response = modern("tools/call", R"("name":")" + std::string(tool) + "\"");
    bench.run_all();
    return id_of(response);
  }

  static json::object result_of(std::string_view response) {
    const Result<json::value> value = parse_json(response);
    const json::value* const result = value ? value->get_object().if_contains("result") : nullptr;
    EXPECT_NE(result, nullptr) << response;
    return result == nullptr ? json::object() : result->get_object();
  }
  static std::string id_of(std::string_view response) {
    json::object result = result_of(response);
    if (const json::value* task = result.if_contains("task")) result = task->get_object();
    return result.contains("taskId") ? std::string(result["taskId"].get_string()) : std::string();
  }
  std::string get(const std::string& id) {
    return bench.request("tasks/get", R"("taskId":")" + id + "\"", caller);
  }
  std::string get_modern(const std::string& id) {
    return modern("tasks/get", R"("taskId":")" + id + "\"");
  }
  std::string wait(const std::string& id) {
    return bench.request("tasks/result", R"("taskId":")" + id + "\"", caller);
  }
  std::string cancel(const std::string& id) {
    return bench.request("tasks/cancel", R"("taskId":")" + id + "\"", caller);
  }
  static std::string status_of(std::string_view response) {
    const json::object result = result_of(response);
    return std::string(result.at("status").get_string());
  }

  PendingRequest::Withdraw ask_for_name(std::string_view key = "name") {
    PendingRequest::Withdraw withdraw = bench.calls.back()->ask(
        {{std::string(key),
          "elicitation/create",
          {{"message", "Who?"},
           {"requestedSchema", {{"type", "object"}, {"properties", json::object()}}}}}},
        [this](const Result<std::vector<json::value>>& answers) {
          heard = answers ? to_json(answers->front()) : std::to_string(answers.error().code);
        });
    bench.run_all();
    return withdraw;
  }

  TaskState::Time time_of_day{std::chrono::seconds(1764066600)};
  ServerBench bench;
  RecordingCaller caller;
  std::vector<std::string> told;
  std::string heard;
};

}  // namespace sluice
