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

}  // namespace

void SseSessionEndpoint::open(const HttpRequest& request, HttpExchangePtr exchange,
                              const Principal& principal) {
  if (!sessions_->enabled()) {
    refuse(*exchange, 405, kInvalidRequest, "There are no sessions here; POST messages to /mcp",
           {{"Allow", "OPTIONS"}});
    return;
  }
  if (!accepts(request, "text/event-stream", "text/*")) {
    refuse(*exchange, 406, kInvalidRequest, "Accept text/event-stream");
    return;
  }
  if (service_->streams.draining()) {
    refuse(*exchange, 503, kInvalidRequest, "The server is shutting down; try another");
    return;
  }
  const auto connection = std::make_shared<SseConnection>(*service_, exchange, principal);
  Result<std::unique_ptr<SseSessions::Entry>> entry =
      sessions_->add(principal.id, {&exchange->executor(), connection});
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
    if (connection == nullptr || !connection->is_open()) {
      refuse_unknown(*exchange);
    } else {
      connection->deliver(request.body,
                          [exchange = std::move(exchange)] { exchange->reply(202, {}, {}); });
    }
    return;
  }
  // Answered when it has been handled: so a client's messages stay in order, and no more of them
  // wait for another loop than it has connections. The next come to that loop by themselves.
  Executor& home = exchange->executor();
  route->loop->post([loop = route->loop, weak = route->connection, body = std::string(request.body),
                     &home, exchange = std::move(exchange)]() mutable {
    const auto connection = weak.lock();
    if (connection == nullptr || !connection->is_open()) {
      home.post([exchange = std::move(exchange)] { refuse_unknown(*exchange); });
      return;
    }
    connection->deliver(body, [&home, loop, exchange = std::move(exchange)]() mutable {
      home.post([exchange = std::move(exchange), loop] {
        exchange->continue_on(*loop);
        exchange->reply(202, {}, {});
      });
    });
  });
}

}  // namespace sluice
