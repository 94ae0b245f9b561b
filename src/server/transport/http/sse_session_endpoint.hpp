#pragma once

#include <memory>
#include <string>
#include <utility>

#include "net/http/http_exchange.hpp"
#include "server/dispatch/service.hpp"
#include "server/transport/http/sse_sessions.hpp"

namespace sluice {

/// HTTP with SSE on one loop (2024-11-05, Transports): GET /sse opens the stream of a session, POST
/// /messages sends to it. Belongs to its loop.
class SseSessionEndpoint {
 public:
  SseSessionEndpoint(Service& service, std::shared_ptr<SseSessions> sessions)
      : service_(&service), sessions_(std::move(sessions)) {}

  /// Errors: 405 where there are no sessions, 406 without text/event-stream, 503 at a limit and
  /// during a shutdown.
  void open(const HttpRequest& request, HttpExchangePtr exchange, const Principal& principal);
  /// Passes the body as a message to the session that the query names, and replies with 202. The
  /// answer is an event of the session's stream. Errors: 400 without a session id, 404 for an
  /// unknown session.
  void post(const HttpRequest& request, HttpExchangePtr exchange, const std::string& principal);

 private:
  Service* service_;
  std::shared_ptr<SseSessions> sessions_;
};

}  // namespace sluice
