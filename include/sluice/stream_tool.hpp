#pragma once

// A stream of a Sluice server as the output of a tool.

#include <string>
#include <string_view>

#include "sluice/client.hpp"
#include "sluice/json.hpp"
#include "sluice/server.hpp"

namespace sluice {

struct StreamToolOptions {
  std::string method = "run";  // that begins a stream (docs/streaming.md)
  /// Parameters of it that hold for every call, such as max_tokens, whatever the call says.
  json::object params = {};
  /// Without an `input_schema`, the tool takes a `prompt`. Its arguments are parameters of the
  /// method.
  ToolOptions tool = {};
};

/// Adds a tool to `server` which begins a stream at the server of `from` and yields its text as
/// that comes, by polling. Its result is the whole text, at most 8 MiB. A call that ends early
/// aborts the stream. Throws what Server::tool() throws.
void add_stream_tool(Server& server, std::string_view name, std::string_view description,
                     Client from, StreamToolOptions options = {});

}  // namespace sluice
