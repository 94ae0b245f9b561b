#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "core/log/log_limit.hpp"
#include "net/http/http_exchange.hpp"
#include "server/dispatch/service.hpp"
#include "server/transport/http/http_admission.hpp"
#include "server/transport/http/session_endpoint.hpp"
#include "server/transport/http/sse_session_endpoint.hpp"
#include "server/transport/http/stream_endpoint.hpp"
#include "server/transport/message/websocket_endpoint.hpp"

namespace sluice {

/// What an HTTP server answers on one loop: POST, GET and DELETE /mcp, GET /sse, POST /messages,
/// GET /ws, GET /streams/{stream_id}, GET /healthz, /readyz and /metrics, and the program's own
/// routes. HttpPaths changes that. Belongs to its loop.
class HttpEndpoint final : public HttpHandler {
 public:
  struct Options {
    WebSocketOptions websocket;
    std::function<std::string()> metrics;    // Prometheus text
    std::function<std::string()> not_ready;  // why not, or empty
    std::shared_ptr<SseSessions> sse_sessions;
    HttpPaths paths = {};
  };
  HttpEndpoint(Service& service, Options options);

  void on_request(const HttpRequest& request, HttpExchangePtr exchange) override;
  std::unique_ptr<HeadVerdict> judge(const HttpRequest& head) override;
  [[nodiscard]] std::string head_lines(const HttpRequest& head) const override;
  [[nodiscard]] bool prepares_body(const HttpRequest& head, std::size_t size) const override;
  std::unique_ptr<PreparedBody> prepare(const HttpRequest& head, std::string body,
                                        Executor::Task ready) override;
  [[nodiscard]] bool streams_body(const HttpRequest& head) const override;

 private:
  std::expected<HttpAdmission::Admitted, HttpRefusal> admit(const HttpRequest& head);
  void answer(const HttpRequest& request, HttpExchangePtr exchange);
  /// The id of `principal` is empty if it has not been determined yet.
  void post_message(const HttpRequest& request, const HttpExchangePtr& exchange,
                    Principal principal);
  std::expected<Message, MessageError> parse(const HttpRequest& request);
  void post_lines(const HttpRequest& request, const HttpExchangePtr& exchange,
                  const Principal& principal);
  std::shared_ptr<MemoryShare> memory_of(const HttpRequest& head, const Principal& principal);
  void preflight(const HttpRequest& request, HttpExchange& exchange) const;
  void answer_own(const Route& route, const HttpRequest& request, HttpExchange& exchange,
                  const Principal& principal);
  [[nodiscard]] bool is_message(const HttpRequest& head) const {
    return head.method == Method::post && head.path == options_.paths.mcp;
  }
  void log_refusal(const HttpRequest& request, const HttpRefusal& refusal);
  void tell_readiness(HttpExchange& exchange);

  Service* service_;
  Options options_;
  HttpAdmission admission_;
  LogLimit logged_refusals_;
  LogLimit logged_failures_;  // of the program's own routes
  StreamEndpoint sse_;
  SessionEndpoint session_;
  WebSocketEndpoint websocket_;
  SseSessionEndpoint sse_sessions_;
  std::string last_principal_;  // the last that memory_of() was asked for
  std::shared_ptr<MemoryShare> last_client_;
};

}  // namespace sluice
