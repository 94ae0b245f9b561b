#pragma once

#include <functional>
#include <optional>
#include <string_view>

#include "sluice/detail/duration.hpp"
#include "sluice/error.hpp"

namespace sluice {

/// A request, for those that look at all of them.
struct RequestInfo {
  std::string_view method;  // such as "tools/call"
  std::string_view name;    // of the tool or prompt, URI of the resource, id of the task; or empty
  std::string_view principal;  // see Call::principal()
  std::string_view revision;   // empty for the stream methods (docs/streaming.md)
};

/// How a request ended.
struct RequestEnd {
  std::chrono::nanoseconds duration;
  int error = 0;  // the JSON-RPC error's code; 0: a result
  bool cancelled = false;
};

/// Asked before a request, on its loop: an Error, returned or thrown, refuses it. What else it
/// throws is logged, and refuses it with -32603.
using BeforeRequest = std::function<std::optional<Error>(const RequestInfo& request)>;
/// Told after a request, on its loop: for a stream method when it has begun. What it throws is
/// logged.
using AfterRequest = std::function<void(const RequestInfo& request, const RequestEnd& end)>;

}  // namespace sluice
