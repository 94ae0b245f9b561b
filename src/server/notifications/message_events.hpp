#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "stream/stream.hpp"

namespace sluice {

/// The JSON-RPC messages of a stream as server-sent events whose ids name the stream and how far
/// the client then is, so that a GET with Last-Event-ID goes on there (2025-11-25, Resumability and
/// Redelivery). One for all readers.
const ChunkEncoder& message_events();

/// The id of the event after which the reader has everything below `next`.
void append_event_id(std::string& out, const StreamId& stream, Seq next);

struct EventPosition {
  std::string stream_id;
  Seq next = 0;
};
/// What Last-Event-ID says; nothing if no event had such an id.
std::optional<EventPosition> parse_event_id(std::string_view id);

/// An event without a message that lets the client resume from the start of `stream`, should the
/// connection break before the first one (SEP-1699).
std::string priming_event(const StreamId& stream);

/// Tells the client to come back to a stream that is about to be closed, after this long.
std::string retry_event(std::chrono::milliseconds after);

}  // namespace sluice
