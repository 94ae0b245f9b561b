#pragma once

#include <string>
#include <string_view>

#include "core/error.hpp"
#include "protocol/revision.hpp"
#include "rpc/message.hpp"

namespace sluice {

/// Where the stream of a legacy request's answer can be taken up, also by another process
/// (2025-11-25, Streamable HTTP, Resumability). The request's id is its progress token, too.
struct StreamPosition {
  const Revision* revision = nullptr;  // of the legacy era; never null
  std::string server = {};             // ServerLink::server()
  std::string session = {};            // its id, which is secret; empty: the server has none
  std::string tool = {};               // that was called
  RequestId request = {};
  std::string last_event = {};  // the id of the event behind which it goes on
};

/// The position as JSON text.
std::string to_text(const StreamPosition& position);
/// Reads that. Error -32602: it is no position.
Result<StreamPosition> parse_stream_position(std::string_view text);

}  // namespace sluice
