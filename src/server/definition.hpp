#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/error.hpp"
#include "core/json.hpp"
#include "stream/stream.hpp"

namespace sluice {

class Call;

/// What a tool answers. `structured` is JSON text, or empty.
struct ToolResult {
  std::string text;
  std::string structured = {};
  bool is_error = false;
};

/// One tool. Handlers are called on the loop of the request, from several loops at once, and must
/// not block; they know nothing of eras and transports.
struct Tool {
  /// Answers at once. An Error is a JSON-RPC error (-32602 for bad arguments).
  using Immediate = std::function<Result<ToolResult>(const json::object& arguments)>;
  /// Answers through the call, now or later. An Error answers the call with it.
  using Deferred =
      std::function<Result<void>(const json::object& arguments, std::shared_ptr<Call> call)>;

  std::string name;
  std::string description;
  std::string input_schema;  // JSON text of an object schema
  std::variant<Immediate, Deferred> handler;
};

/// A stream method such as `run`: given its parameters (without `stream` and what else concerns
/// the delivery), makes chunks in `stream` from then on. Called on the stream's loop.
struct StreamMethod {
  using Handler = std::function<Result<void>(const json::object& params,
                                             const std::shared_ptr<Stream>& stream)>;
  /// JSON members that tell how far the stream's producer is, for is_running; or empty.
  using Status = std::function<std::string(const Stream& stream)>;

  std::string name;
  Handler handler;
  Status status = {};
};

/// What a server offers. Immutable once served, shared by all loops.
struct ServerDefinition {
  std::string name;
  std::string version;
  std::string instructions = {};
  std::vector<Tool> tools = {};
  std::vector<StreamMethod> stream_methods = {};
  /// Why requests cannot be served yet or no longer, or empty; asked by /readyz. Thread-safe.
  std::function<std::string()> not_ready = {};
  /// Prometheus text to add to /metrics. Thread-safe.
  std::function<std::string()> metrics = {};

  [[nodiscard]] const Tool* find_tool(std::string_view tool) const;
  [[nodiscard]] const StreamMethod* find_stream_method(std::string_view method) const;
};

}  // namespace sluice
