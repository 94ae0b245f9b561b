#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "stream/stream.hpp"

namespace sluice {

/// Encodes the JSON-RPC messages of a stream as server-sent events. The id of an event names the
/// stream and the client's position after the event, so that a GET with Last-Event-ID continues
/// there (2025-11-25, Resumability and Redelivery). One encoder for all readers.
const ChunkEncoder& message_events();

/// The error of a stream for a client that uses no stream methods: kLimitReached in the place of a
/// code that only these methods have.
Error without_stream_code(Error error);

/// Appends the id of the event after which the reader has everything below `next`.
void append_event_id(std::string& out, const StreamId& stream, Seq next);

struct EventPosition {
  std::string stream_id;
  Seq next = 0;
};
/// Parses a Last-Event-ID. Returns nothing if it does not have the form of an event's id.
std::optional<EventPosition> parse_event_id(std::string_view id);

/// An event without a message that lets the client resume from the start of `stream`, should the
/// connection break before the first message (SEP-1699).
std::string priming_event(const StreamId& stream);

/// An event that tells the client to come back after this long. Its stream is about to be closed.
std::string retry_event(std::chrono::milliseconds after);

}  // namespace sluice
