#pragma once

#include <string>
#include <string_view>

#include "stream/stream.hpp"

namespace sluice {

// Encodes a stream's chunks as JSON (docs/streaming.md).

/// Appends `"seq":n,"delta":"...","end":false`. Chunks that are not text have an empty delta and
/// the member `"reasoning"`, `"tool_call"` or `"message"` besides. The last chunk has the stream's
/// trailer besides.
void append_chunk_members(std::string& out, const ChunkStream& stream, const Chunk& chunk);

/// Appends one element of `chunks` in the reply to a poll.
void append_poll_chunk(std::string& out, const ChunkStream& stream, const Chunk& chunk);

/// Appends a pushed chunk: {"jsonrpc":"2.0","method":<the method
/// called>,"params":{"stream_id":...,<members>}}.
void append_pushed_chunk(std::string& out, const ChunkStream& stream, const Chunk& chunk);

}  // namespace sluice
