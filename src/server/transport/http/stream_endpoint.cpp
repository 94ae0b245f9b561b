#include "server/transport/http/stream_endpoint.hpp"

#include <memory>
#include <optional>
#include <utility>

#include "json/json.hpp"
#include "protocol/chunk_json.hpp"
#include "rpc/error_codes.hpp"
#include "server/transport/http/event_sink.hpp"
#include "stream/stream_error.hpp"

namespace sluice {
namespace {

/// Encodes a chunk as an event whose id is the chunk's sequence number. Blocks shared by several
/// readers are sealed as HTTP chunks, so that they are framed once.
class EventEncoder final : public ChunkEncoder {
 public:
  void encode(std::string& out, const ChunkStream& stream, const Chunk& chunk) const override {
    out.append("id: ");
    append_number(out, chunk.seq);
    out.append("\ndata: ");
    append_pushed_chunk(out, stream, chunk);
    out.append("\n\n");
  }
  void seal(std::string& block) const override { frame_chunk(block); }
};

const EventEncoder kEventEncoder;

int status_of(const Error& error) {
  switch (error.code) {
    case kStreamNotFound:
      return 404;
    case kStreamExpired:
      return 410;
    case kStreamInvalidState:
      return 409;
    default:
      return 400;
  }
}

}  // namespace

void StreamEndpoint::open(const HttpRequest& request, HttpExchangePtr exchange,
                          std::string_view stream_id, const std::string& principal) {
  std::optional<Seq> from;
  const std::string_view last = request.header(KnownHeader::last_event_id);
  const std::string_view asked = request.query_parameter("from_seq");
  const std::string_view text = last.data() != nullptr ? last : asked;
  if (text.data() != nullptr) {
    from = parse_seq(text);
    if (!from) {
      std::string body;
      append_error(
          body, {},
          {kInvalidParams, "Last-Event-ID and from_seq are sequence numbers: integers from 0", {}});
      exchange->reply(400, "application/json", body);
      return;
    }
    if (last.data() != nullptr) ++*from;
  }
  auto sink = std::make_unique<EventSink>(exchange);
  EventSink* const events = sink.get();
  service_->streams.subscribe(
      std::string(stream_id), principal, from, 0, kEventEncoder, true, std::move(sink),
      [exchange, events](Result<std::unique_ptr<Subscription>> subscribed) mutable {
        if (subscribed && (*subscribed)->is_over()) {
          // An EventSource reconnects after every end, unless the status is 204 (HTML, Server-sent
          // events, Processing model).
          exchange->reply(204, {}, {});
          return;
        }
        if (subscribed) {
          events->open(std::move(*subscribed));
          return;
        }
        std::string body;
        append_error(body, {}, subscribed.error());
        exchange->reply(status_of(subscribed.error()), "application/json", body);
      });
}

}  // namespace sluice
