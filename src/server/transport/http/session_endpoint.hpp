#pragma once

#include <memory>
#include <optional>
#include <string>

#include "net/http/http_exchange.hpp"
#include "server/dispatch/service.hpp"

namespace sluice {

/// GET and DELETE /mcp on one loop: the session eras' stream of messages that belong to no request,
/// the resumption of any stream by Last-Event-ID, and the end of a session (2025-11-25,
/// Streamable HTTP). Belongs to its loop.
class SessionEndpoint {
 public:
  explicit SessionEndpoint(Service& service) : service_(&service) {}

  /// Errors: 400 without a session id or for an invalid event id, 404 for an unknown session, 406
  /// without text/event-stream, 410 for a stream that is gone. Where there are no sessions,
  /// HttpAdmission has refused the request.
  void get(const HttpRequest& request, HttpExchangePtr exchange, const std::string& principal);
  /// Ends the session: 204, or the errors of get().
  void remove(const HttpRequest& request, const HttpExchangePtr& exchange,
              const std::string& principal);

 private:
  /// The session that the request names; null if the request has been refused.
  std::shared_ptr<Session> find(const HttpRequest& request, HttpExchange& exchange,
                                const std::string& principal);
  void listen(const std::shared_ptr<Session>& session, HttpExchangePtr exchange);
  void read(const std::shared_ptr<Session>& session, HttpExchangePtr exchange,
            const StreamId& stream, Seq from, std::move_only_function<void(const Error&)> gone);

  Service* service_;
};

}  // namespace sluice
