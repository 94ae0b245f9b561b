#include "server/transport/http/session_endpoint.hpp"

#include <utility>

#include "rpc/error_codes.hpp"
#include "server/notifications/message_events.hpp"
#include "server/transport/http/event_sink.hpp"
#include "server/transport/http/http_refusal.hpp"
#include "stream/stream_error.hpp"

namespace sluice {

std::shared_ptr<Session> SessionEndpoint::find(const HttpRequest& request, HttpExchange& exchange,
                                               const std::string& principal) {
  const std::string_view id = request.header(KnownHeader::mcp_session_id);
  if (id.data() == nullptr) {
    refuse(exchange, 400, kInvalidRequest,
           "Mcp-Session-Id is required here; POST initialize gives you one");
    return nullptr;
  }
  std::shared_ptr<Session> session = service_->sessions->find(id, principal);
  if (session == nullptr) refuse(exchange, 404, kInvalidRequest, std::string(kNoSuchSession));
  return session;
}

void SessionEndpoint::remove(const HttpRequest& request, const HttpExchangePtr& exchange,
                             const std::string& principal) {
  const std::shared_ptr<Session> session = find(request, *exchange, principal);
  if (session == nullptr) return;
  service_->sessions->remove(*session);
  exchange->reply(204, {}, {});
}

void SessionEndpoint::get(const HttpRequest& request, HttpExchangePtr exchange,
                          const std::string& principal) {
  if (!accepts(request, "text/event-stream", "text/*")) {
    refuse(*exchange, 406, kInvalidRequest, "Accept text/event-stream");
    return;
  }
  const std::shared_ptr<Session> session = find(request, *exchange, principal);
  if (session == nullptr) return;
  const std::string_view last = request.header(KnownHeader::last_event_id);
  if (last.data() == nullptr) {
    listen(session, std::move(exchange));
    return;
  }
  const std::optional<EventPosition> position = parse_event_id(last);
  if (!position) {
    refuse(*exchange, 400, kInvalidRequest, "Last-Event-ID is the id of no event of this server");
    return;
  }
  read(session, exchange, StreamId(position->stream_id), position->next,
       [exchange](const Error& error) {
         const bool is_there = error.code == kStreamInvalidState;
         refuse(*exchange, is_there ? 400 : 410, kInvalidRequest,
                is_there ? "Last-Event-ID is ahead of its stream: " + error.data
                         : std::string("The stream of Last-Event-ID has expired"));
       });
}

void SessionEndpoint::listen(const std::shared_ptr<Session>& session, HttpExchangePtr exchange) {
  const std::optional<StreamId> known = session->standalone_stream();
  if (known) {
    // A stream that has expired because nobody listened is replaced.
    read(session, exchange, *known, kUndelivered, [this, session, exchange, known](const Error&) {
      session->forget_standalone_stream(*known);
      if (exchange->is_open()) listen(session, exchange);
    });
    return;
  }
  if (service_->streams.draining()) {
    const Error refused = StreamService::shutting_down();
    refuse(*exchange, 503, refused.code, refused.message);
    return;
  }
  const std::shared_ptr<ChunkStream> stream = service_->streams.streams().start_private(
      session->stream_principal(), "", session->principal());
  const StreamId id = service_->changes->add(session, stream);
  if (id != stream->id()) stream->discard();
  read(session, exchange, id, kUndelivered,
       [exchange](const Error& error) { refuse(*exchange, 503, error.code, error.message); });
}

void SessionEndpoint::read(const std::shared_ptr<Session>& session, HttpExchangePtr exchange,
                           const StreamId& stream, Seq from,
                           std::move_only_function<void(const Error&)> gone) {
  auto sink = std::make_unique<EventSink>(exchange);
  EventSink* const events = sink.get();
  service_->streams.subscribe(
      std::string(stream), session->stream_principal(), from, 0, message_events(), false,
      std::move(sink),
      [session, exchange, events,
       gone = std::move(gone)](Result<std::unique_ptr<Subscription>> subscribed) mutable {
        if (!subscribed) {
          gone(subscribed.error());
          return;
        }
        std::shared_ptr<Session::Reader> reader =
            Session::add_reader(session, exchange->executor(), [exchange] { exchange->finish(); });
        if (reader == nullptr) {
          refuse(*exchange, 404, kInvalidRequest, std::string(kNoSuchSession));
          return;
        }
        events->open(std::move(*subscribed), std::move(reader));
      });
}

}  // namespace sluice
