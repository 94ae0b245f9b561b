#include "server/notifications/message_events.hpp"

#include "json/json.hpp"
#include "protocol/stream_params.hpp"
#include "rpc/message.hpp"
#include "stream/stream_error.hpp"

namespace sluice {
namespace {

constexpr char kSeparator = '.';

class MessageEvents final : public ChunkEncoder {
 public:
  void encode(std::string& out, const ChunkStream& stream, const Chunk& chunk) const override {
    if (chunk.kind == ChunkKind::end) {
      if (stream.state() != StreamState::failed) return;
      // The response can no longer be delivered. An error without an id takes its place.
      out.append("data: ");
      append_error(out, {}, without_stream_code(stream.error()));
      out.append("\n\n");
      return;
    }
    append_event_id(out, stream.id(), chunk.seq + 1);
    out.append("data: ").append(chunk.escaped).append("\n\n");
  }
};

const MessageEvents kMessageEvents;

}  // namespace

const ChunkEncoder& message_events() {
  return kMessageEvents;
}

Error without_stream_code(Error error) {
  const bool is_of_streams = error.code == kStreamNotFound || error.code == kStreamExpired ||
                             error.code == kStreamInvalidState;
  if (is_of_streams) error.code = kLimitReached;
  return error;
}

void append_event_id(std::string& out, const StreamId& stream, Seq next) {
  out.append("id: ").append(stream).push_back(kSeparator);
  append_number(out, next);
  out.push_back('\n');
}

std::optional<EventPosition> parse_event_id(std::string_view id) {
  if (id.size() <= StreamId::kLength || id[StreamId::kLength] != kSeparator) return std::nullopt;
  const std::optional<Seq> next = parse_seq(id.substr(StreamId::kLength + 1));
  if (!next) return std::nullopt;
  return EventPosition{std::string(id.substr(0, StreamId::kLength)), *next};
}

std::string priming_event(const StreamId& stream) {
  std::string event;
  append_event_id(event, stream, 0);
  event.append("data: \n\n");
  return event;
}

std::string retry_event(std::chrono::milliseconds after) {
  return "retry: " + std::to_string(after.count()) + "\n\n";
}

}  // namespace sluice
