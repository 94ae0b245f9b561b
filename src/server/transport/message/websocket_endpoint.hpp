#pragma once

#include <string>
#include <vector>

#include "net/http/http_exchange.hpp"
#include "server/dispatch/service.hpp"

namespace sluice {

/// GET /ws: JSON-RPC over WebSocket, one message per text message, with streams pushed as they grow
/// (docs/streaming.md). Takes the subprotocol `mcp` from clients that offer it. Belongs to its
/// loop.
class WebSocketEndpoint {
 public:
  explicit WebSocketEndpoint(Service& service) : service_(&service) {}

  /// `fields` are those of the request that handlers may read.
  void open(const HttpRequest& request, HttpExchange& exchange, const WebSocketOptions& options,
            const Principal& principal, std::vector<RequestField> fields);

 private:
  Service* service_;
};

}  // namespace sluice
