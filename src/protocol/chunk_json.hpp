#pragma once

#include <string>
#include <string_view>

#include "stream/stream.hpp"

namespace sluice {

// A stream's chunks as JSON (docs/streaming.md).

/// `"seq":n,"delta":"...","end":false` and what stands beside them: `"reasoning"` or
/// `"tool_call"` instead of text in the delta, and on the last chunk the stream's trailer.
void append_chunk_members(std::string& out, const ChunkStream& stream, const Chunk& chunk);

/// One element of a poll's `chunks`.
void append_poll_chunk(std::string& out, const ChunkStream& stream, const Chunk& chunk);

/// A pushed chunk: {"jsonrpc":"2.0","method":<the caller's>,"params":{"stream_id":...,<members>}}.
void append_pushed_chunk(std::string& out, const ChunkStream& stream, const Chunk& chunk);

}  // namespace sluice
