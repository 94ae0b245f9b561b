#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "net/http_exchange.hpp"
#include "server/service.hpp"
#include "server/session_endpoint.hpp"
#include "server/sse_endpoint.hpp"
#include "server/sse_session_endpoint.hpp"
#include "server/websocket_endpoint.hpp"

namespace sluice {

/// What an HTTP server answers on one loop: POST, GET and DELETE /mcp, GET /sse, POST /messages,
/// GET /ws, GET /streams/{stream_id}, GET /healthz, /readyz and /metrics. Belongs to its loop.
class HttpEndpoint final : public HttpHandler {
 public:
  struct Options {
    WebSocketOptions websocket;
    std::function<std::string()> metrics;    // Prometheus text
    std::function<std::string()> not_ready;  // why not, or empty
    std::shared_ptr<SseSessions> sse_sessions;
  };
  HttpEndpoint(Service& service, Options options);

  void on_request(const HttpRequest& request, HttpExchangePtr exchange) override;
  [[nodiscard]] bool streams_body(const HttpRequest& head) const override;

 private:
  void answer(const HttpRequest& request, HttpExchangePtr exchange);
  void post_message(const HttpRequest& request, HttpExchangePtr exchange);
  void post_lines(const HttpRequest& request, HttpExchangePtr exchange);
  void post_to_stream(const HttpRequest& request, HttpExchangePtr exchange);
  void end_session(const HttpRequest& request, const HttpExchangePtr& exchange);
  void get(const HttpRequest& request, HttpExchangePtr exchange);
  void preflight(const HttpRequest& request, HttpExchangePtr exchange);

  [[nodiscard]] bool host_allowed(std::string_view host);

  Service* service_;
  Options options_;
  std::string known_host_;  // the last Host that was allowed, if it is short
  SseEndpoint sse_;
  SessionEndpoint session_;
  WebSocketEndpoint websocket_;
  SseSessionEndpoint sse_sessions_;
};

}  // namespace sluice
