#pragma once

#include <functional>
#include <string>

#include "net/http_exchange.hpp"
#include "server/service.hpp"
#include "server/sse_endpoint.hpp"
#include "server/websocket_endpoint.hpp"

namespace sluice {

/// What an HTTP server answers on one loop: POST /mcp, GET /ws, GET /streams/{stream_id}, GET
/// /healthz, /readyz and /metrics. Belongs to its loop.
class HttpEndpoint final : public HttpHandler {
 public:
  struct Options {
    WebSocketOptions websocket;
    std::function<std::string()> metrics;    // Prometheus text
    std::function<std::string()> not_ready;  // why not, or empty
  };
  HttpEndpoint(Service& service, Options options);

  void on_request(const HttpRequest& request, HttpExchangePtr exchange) override;

 private:
  void post_message(const HttpRequest& request, HttpExchangePtr exchange);
  void begin_session(HttpExchange& exchange, int http_status, std::string_view origin);
  void cancel_request(const Message& message, std::string_view session,
                      const std::string& principal);
  void get(const HttpRequest& request, HttpExchangePtr exchange);
  void preflight(const HttpRequest& request, HttpExchangePtr exchange);

  Service* service_;
  Options options_;
  SseEndpoint sse_;
  WebSocketEndpoint websocket_;
};

}  // namespace sluice
