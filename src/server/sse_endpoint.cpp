#include "server/sse_endpoint.hpp"

#include <memory>
#include <optional>
#include <utility>

#include "core/json.hpp"
#include "protocol/chunk_json.hpp"
#include "rpc/error_codes.hpp"
#include "server/http_channel.hpp"
#include "stream/stream_error.hpp"

namespace sluice {
namespace {

/// A chunk as an event, its seq as the event's id. Blocks shared by several readers are sealed as
/// HTTP chunks, so that they are framed once.
class EventEncoder final : public ChunkEncoder {
 public:
  void encode(std::string& out, const Stream& stream, const Chunk& chunk) const override {
    out.append("id: ");
    append_number(out, chunk.seq);
    out.append("\ndata: ");
    append_pushed_chunk(out, stream, chunk);
    out.append("\n\n");
  }
  void seal(std::string& block) const override { frame_chunk(block); }
};

const EventEncoder kEventEncoder;

class EventSink final : public BlockSink {
 public:
  EventSink(HttpExchangePtr exchange, std::string cors_origin)
      : exchange_(std::move(exchange)), cors_origin_(std::move(cors_origin)) {}

  void start() {
    if (cors_origin_.empty()) {
      exchange_->start(200, "text/event-stream", event_stream_headers());
    } else {
      exchange_->start(200, "text/event-stream",
                       {{"Cache-Control", "no-store"},
                        {"X-Accel-Buffering", "no"},
                        {"Access-Control-Allow-Origin", cors_origin_},
                        {"Vary", "Origin"}});
    }
    // Something must be sent for the client to know that the stream is open.
    exchange_->write(std::string_view(": open\n\n"));
  }

  bool write(std::string_view block) override {
    const bool room = exchange_->write(block);
    exchange_->flush();
    return room;
  }
  bool write(const Bytes& block) override {
    const bool room = exchange_->write(ChunkBlock::from_framed(block));
    exchange_->flush();
    return room;
  }
  void finish() override {
    // The exchange's callbacks keep the subscription, and so this sink: they go with the reply.
    const HttpExchangePtr exchange = exchange_;
    exchange->finish();
  }
  void drop(const Error& error) override {
    std::string event = "event: error\ndata: ";
    append_error(event, {}, error);
    event.append("\n\n");
    exchange_->write(std::string_view(event));
    finish();
  }

 private:
  HttpExchangePtr exchange_;
  std::string cors_origin_;
};

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

void SseEndpoint::open(const HttpRequest& request, HttpExchangePtr exchange,
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
  std::string origin(request.header(KnownHeader::origin));
  auto sink = std::make_unique<EventSink>(exchange, std::move(origin));
  EventSink* const events = sink.get();
  // The exchange keeps the subscription; letting go of it detaches the reader.
  service_->streams.subscribe(
      std::string(stream_id), principal, from, 0, kEventEncoder, true, std::move(sink),
      [exchange, events](Result<std::unique_ptr<Subscription>> subscribed) mutable {
        if (!subscribed) {
          std::string body;
          append_error(body, {}, subscribed.error());
          exchange->reply(status_of(subscribed.error()), "application/json", body);
          return;
        }
        // The reader may have gone while the stream's loop was asked.
        if (!exchange->is_open()) return;
        const auto subscription =
            std::make_shared<std::unique_ptr<Subscription>>(std::move(*subscribed));
        exchange->on_close([subscription] { subscription->reset(); });
        exchange->on_drain([weak = std::weak_ptr(subscription)] {
          if (const auto open = weak.lock(); open != nullptr && *open != nullptr) {
            (*open)->resume();
          }
        });
        events->start();
        (*subscription)->resume();
      });
}

}  // namespace sluice
