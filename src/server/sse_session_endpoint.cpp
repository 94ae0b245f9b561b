#include "server/sse_session_endpoint.hpp"

#include <optional>
#include <utility>

#include "rpc/error_codes.hpp"
#include "server/http_refusal.hpp"
#include "server/sse_connection.hpp"

namespace sluice {
namespace {

void refuse_unknown(HttpExchange& exchange) {
  refuse(exchange, 404, kInvalidRequest,
         "Session not found; it ends with its event stream: begin another with GET /sse");
}

void answer(HttpExchange& exchange, bool delivered) {
  if (delivered) {
    exchange.reply(202, {}, {});
  } else {
    refuse_unknown(exchange);
  }
}

}  // namespace

void SseSessionEndpoint::open(const HttpRequest& request, HttpExchangePtr exchange,
                              const std::string& principal) {
  if (!sessions_->enabled()) {
    refuse(*exchange, 405, kInvalidRequest, "There are no sessions here; POST messages to /mcp",
           {{"Allow", "OPTIONS"}});
    return;
  }
  if (!accepts(request.header(KnownHeader::accept), "text/event-stream", "text/*")) {
    refuse(*exchange, 406, kInvalidRequest, "Accept text/event-stream");
    return;
  }
  if (request.method == Method::head) {
    exchange->reply(200, "text/event-stream", {});
    return;
  }
  if (service_->streams.draining()) {
    refuse(*exchange, 503, kInvalidRequest, "The server is shutting down; try another");
    return;
  }
  const auto connection = std::make_shared<SseConnection>(*service_, exchange, principal);
  Result<std::unique_ptr<SseSessions::Entry>> entry =
      sessions_->add(principal, {&exchange->executor(), connection});
  if (!entry) {
    refuse(*exchange, 503, entry.error().code, entry.error().message);
    return;
  }
  service_->changes->add(exchange->executor(), connection);
  connection->open(std::move(*entry));
}

void SseSessionEndpoint::post(const HttpRequest& request, HttpExchangePtr exchange,
                              const std::string& principal) {
  const std::string_view id = request.query_parameter("sessionId");
  if (id.data() == nullptr) {
    refuse(*exchange, 400, kInvalidRequest,
           "sessionId is missing; GET /sse tells where to post messages");
    return;
  }
  const std::optional<SseSessions::Route> route = sessions_->find(id, principal);
  if (!route) {
    refuse_unknown(*exchange);
    return;
  }
  if (route->loop->on_loop_thread()) {
    const auto connection = route->connection.lock();
    answer(*exchange, connection != nullptr && connection->deliver(request.body));
    return;
  }
  // Answered when it has been handled: so a client's messages stay in order, and no more of them
  // wait for another loop than it has connections. The next come to that loop by themselves.
  Executor& home = exchange->executor();
  route->loop->post([loop = route->loop, weak = route->connection, body = std::string(request.body),
                     &home, exchange = std::move(exchange)]() mutable {
    const auto connection = weak.lock();
    const bool delivered = connection != nullptr && connection->deliver(body);
    home.post([exchange = std::move(exchange), loop, delivered] {
      if (delivered) exchange->continue_on(*loop);
      answer(*exchange, delivered);
    });
  });
}

}  // namespace sluice
