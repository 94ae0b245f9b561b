#include "server/transport/http/sse_session_endpoint.hpp"

#include <new>
#include <optional>
#include <utility>

#include "rpc/error_codes.hpp"
#include "server/transport/http/http_refusal.hpp"
#include "server/transport/http/sse_connection.hpp"

namespace sluice {
namespace {

void refuse_unknown(HttpExchange& exchange) {
  refuse(exchange, 404, kInvalidRequest,
         "Session not found; it ends with its event stream: begin another with GET /sse");
}

void refuse_without_sessions(HttpExchange& exchange) {
  refuse(exchange, 405, kInvalidRequest,
         "There are no sessions here; POST messages to the path of MCP, such as /mcp",
         {{"Allow", "OPTIONS"}});
}

/// A posted message that is to be answered: with 202 when it has been handled, with 404 if this is
/// destroyed before, because its session has ended then.
class Posted {
 public:
  /// `loop` is the session's loop. `home` is the exchange's if that is another one, else null.
  Posted(HttpExchangePtr exchange, Executor& loop, Executor* home)
      : exchange_(std::move(exchange)), loop_(&loop), home_(home) {}
  Posted(Posted&& other) noexcept = default;
  Posted& operator=(Posted&&) = delete;
  ~Posted() {
    if (exchange_ == nullptr) return;
    try {
      answer([](HttpExchange& exchange, Executor&) { refuse_unknown(exchange); });
    } catch (const std::bad_alloc&) {
      // The exchange is released without an answer.
    }
  }

  void accept() {
    answer([](HttpExchange& exchange, Executor& loop) {
      // The connection's next requests then arrive on the session's loop.
      if (!loop.on_loop_thread()) exchange.continue_on(loop);
      exchange.reply(202, {}, {});
    });
  }

 private:
  void answer(void (*reply)(HttpExchange&, Executor&)) {
    HttpExchangePtr exchange = std::exchange(exchange_, nullptr);
    if (home_ == nullptr) {
      reply(*exchange, *loop_);
      return;
    }
    home_->post([exchange = std::move(exchange), reply, loop = loop_] { reply(*exchange, *loop); });
  }

  HttpExchangePtr exchange_;  // null once it is answered
  Executor* loop_;
  Executor* home_;
};

}  // namespace

void SseSessionEndpoint::open(const HttpRequest& request, HttpExchangePtr exchange,
                              const Principal& principal) {
  if (!sessions_->enabled()) {
    refuse_without_sessions(*exchange);
    return;
  }
  if (!accepts(request, "text/event-stream", "text/*")) {
    refuse(*exchange, 406, kInvalidRequest, "Accept text/event-stream");
    return;
  }
  if (service_->streams.draining()) {
    const Error refused = StreamService::shutting_down();
    refuse(*exchange, 503, refused.code, refused.message);
    return;
  }
  const auto connection = std::make_shared<SseConnection>(*service_, request, exchange, principal);
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
  if (!sessions_->enabled()) {
    refuse_without_sessions(*exchange);
    return;
  }
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
      connection->deliver(request.body, [posted = Posted(std::move(exchange), *route->loop,
                                                         nullptr)]() mutable { posted.accept(); });
    }
    return;
  }
  // Answered only when it has been handled. So a client's messages stay in order, and no more of
  // them wait for another loop than the client has connections.
  Executor& home = exchange->executor();
  route->loop->post([weak = route->connection, body = std::string(request.body),
                     posted = Posted(std::move(exchange), *route->loop, &home)]() mutable {
    const auto connection = weak.lock();
    if (connection == nullptr || !connection->is_open()) return;
    connection->deliver(body, [posted = std::move(posted)]() mutable { posted.accept(); });
  });
}

}  // namespace sluice
