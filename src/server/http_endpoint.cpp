#include "server/http_endpoint.hpp"

#include <memory>
#include <utility>

#include "rpc/error_codes.hpp"
#include "server/batch.hpp"
#include "server/http_channel.hpp"
#include "server/http_refusal.hpp"
#include "server/message_body.hpp"

namespace sluice {
namespace {

constexpr std::string_view kJson = "application/json";
constexpr std::string_view kLines = "application/x-ndjson";
constexpr std::string_view kText = "text/plain; charset=utf-8";

/// The fields of a request, for whoever knows nothing of HTTP.
class RequestFields final : public HeaderSource {
 public:
  explicit RequestFields(const HttpRequest& request) : request_(&request) {}
  [[nodiscard]] Field find(std::string_view name) const override {
    Field found;
    for (const HeaderField& field : request_->headers) {
      if (!equals_ignoring_case(field.name, name)) continue;
      if (found.count++ == 0) found.value = field.value;
    }
    return found;
  }

 private:
  const HttpRequest* request_;
};

MirroredHeaders mirrored_headers(const HttpRequest& request, const HeaderSource& all) {
  static constexpr std::pair<KnownHeader, std::string_view> kOnce[] = {
      {KnownHeader::mcp_protocol_version, "MCP-Protocol-Version"},
      {KnownHeader::mcp_method, "Mcp-Method"},
      {KnownHeader::mcp_name, "Mcp-Name"}};
  MirroredHeaders headers{.protocol_version = request.header(KnownHeader::mcp_protocol_version),
                          .method = request.header(KnownHeader::mcp_method),
                          .name = request.header(KnownHeader::mcp_name),
                          .all = &all};
  for (const auto& [known, name] : kOnce) {
    if (request.repeated(known)) headers.repeated = name;
  }
  return headers;
}

/// What plain `fetch` and `curl -d` send counts as JSON too; a body of another declared type is a
/// mistake worth naming.
bool is_message_type(std::string_view content_type) {
  const std::string_view type = content_type.substr(0, content_type.find(';'));
  return content_type.empty() || list_has_token(type, "application/json") ||
         list_has_token(type, "text/plain") ||
         list_has_token(type, "application/x-www-form-urlencoded");
}

/// Whether the body is many messages, one a line.
bool is_lines(const HttpRequest& request) {
  const std::string_view content_type = request.header(KnownHeader::content_type);
  return equals_ignoring_case(content_type.substr(0, content_type.find(';')), kLines);
}

/// The caller of one POST. Its principal is worked out when somebody asks.
class HttpCaller final : public Caller {
 public:
  HttpCaller(const HttpRequest& request, const HttpExchangePtr& exchange, const Service& service)
      : request_(&request), exchange_(&exchange), service_(&service) {}

  [[nodiscard]] const std::string& principal() const override {
    if (principal_.empty()) principal_ = service_->access->principal_of(*request_);
    return principal_;
  }

  Result<std::shared_ptr<ReplyChannel>> open_channel(const RequestId& id) override {
    const std::string_view accept = request_->header(KnownHeader::accept);
    auto channel =
        std::make_shared<HttpChannel>(*exchange_, accepts(accept, "text/event-stream", "text/*"));
    if (session_ != nullptr && !id.empty()) {
      if (Result<void> added = channel->make_cancellable(session_, id); !added) {
        return std::unexpected(std::move(added.error()));
      }
    }
    return channel;
  }

  Result<std::shared_ptr<Session>> session() override {
    const std::string_view id = request_->header(KnownHeader::mcp_session_id);
    if (id.data() == nullptr || !service_->sessions->enabled()) return nullptr;
    session_ = service_->sessions->find(id, principal());
    if (session_ == nullptr) return fail(kInvalidRequest, std::string(kNoSuchSession));
    return session_;
  }

  Result<void> begin_session(const Revision& revision,
                             const ClientCapabilities& capabilities) override {
    if (!service_->sessions->enabled()) return {};
    Result<std::shared_ptr<Session>> begun =
        service_->sessions->create(principal(), revision, capabilities);
    if (!begun) return std::unexpected(std::move(begun.error()));
    begun_ = std::move(*begun);
    return {};
  }

  /// The session that this message has begun, or null.
  [[nodiscard]] const Session* begun() const { return begun_.get(); }

 private:
  const HttpRequest* request_;
  const HttpExchangePtr* exchange_;
  const Service* service_;
  mutable std::string principal_;
  std::shared_ptr<Session> session_;
  std::shared_ptr<Session> begun_;
};

void refuse_key(HttpExchange& exchange) {
  refuse(exchange, 401, kInvalidRequest, "A valid API key is required: Authorization: Bearer KEY",
         {{"WWW-Authenticate", "Bearer"}});
}

}  // namespace

HttpEndpoint::HttpEndpoint(Service& service, Options options)
    : service_(&service),
      options_(std::move(options)),
      sse_(service),
      session_(service),
      websocket_(service),
      sse_sessions_(service, options_.sse_sessions) {}

void HttpEndpoint::on_request(const HttpRequest& request, HttpExchangePtr exchange) {
  answer(request, std::move(exchange));
  service_->trim();
}

void HttpEndpoint::answer(const HttpRequest& request, HttpExchangePtr exchange) {
  const std::string_view host = request.header(KnownHeader::host);
  if (host.data() != nullptr && !host_allowed(host)) {
    refuse(*exchange, 403, kInvalidRequest,
           "Host '" + std::string(host) +
               "' is not a name of this server; allow it with --allow-host");
    return;
  }
  const std::string_view origin = request.header(KnownHeader::origin);
  if (origin.data() != nullptr && !service_->access->origin_allowed(origin, host, request.tls)) {
    refuse(*exchange, 403, kInvalidRequest,
           "Origin '" + std::string(origin) +
               "' may not call this server; allow it with --allow-origin");
    return;
  }
  if (origin.data() != nullptr) {
    // Whatever the reply says, the page may read it.
    exchange->set_head_lines("Access-Control-Allow-Origin: " + std::string(origin) +
                             "\r\nVary: Origin\r\n"
                             "Access-Control-Expose-Headers: Mcp-Session-Id\r\n");
  }
  if (request.method == Method::post && request.path == "/mcp") {
    post_message(request, std::move(exchange));
  } else if (request.method == Method::post && request.path == "/messages") {
    post_to_stream(request, std::move(exchange));
  } else if (request.method == Method::options) {
    preflight(request, std::move(exchange));
  } else if (request.method == Method::get || request.method == Method::head) {
    get(request, std::move(exchange));
  } else if (request.path == "/mcp" && request.method == Method::del) {
    end_session(request, exchange);
  } else if (request.path == "/mcp") {
    refuse(*exchange, 405, kInvalidRequest, "Send JSON-RPC messages with POST",
           {{"Allow", "GET, POST, DELETE, OPTIONS"}});
  } else {
    refuse(*exchange, 405, kInvalidRequest, "Use GET here, or POST /mcp for messages",
           {{"Allow", "GET, HEAD, OPTIONS"}});
  }
}

/// Most requests name the same host as the one before.
bool HttpEndpoint::host_allowed(std::string_view host) {
  static constexpr std::size_t kKept = 64;
  if (!host.empty() && host == known_host_) return true;
  if (!service_->access->host_allowed(host)) return false;
  if (host.size() <= kKept) known_host_ = host;
  return true;
}

bool HttpEndpoint::streams_body(const HttpRequest& head) const {
  return head.method == Method::post && head.path == "/mcp" && is_lines(head);
}

void HttpEndpoint::post_message(const HttpRequest& request, HttpExchangePtr exchange) {
  if (is_lines(request)) {
    post_lines(request, std::move(exchange));
    return;
  }
  if (!is_message_type(request.header(KnownHeader::content_type))) {
    refuse(*exchange, 415, kInvalidRequest, "Send the message as Content-Type: application/json");
    return;
  }
  const std::string_view accept = request.header(KnownHeader::accept);
  if (!accepts(accept, "application/json", "application/*") &&
      !accepts(accept, "text/event-stream", "text/*")) {
    refuse(*exchange, 406, kInvalidRequest, "Accept application/json, text/event-stream, or both");
    return;
  }
  HttpCaller caller(request, exchange, *service_);
  if (service_->access->requires_key() && caller.principal().empty()) {
    refuse_key(*exchange);
    return;
  }
  std::string& response = service_->response;
  response.clear();
  Outcome outcome;
  const RequestFields fields(request);
  const MirroredHeaders headers = mirrored_headers(request, fields);
  if (is_batch(request.body)) {
    outcome = handle_batch(
        request.body, &headers, *service_, caller, SharedReply::Form::array_or_messages,
        [&](const Message& message, Caller& each, std::string& out) {
          return service_->dispatcher.dispatch(message, &headers, each, out);
        },
        response);
  } else if (const std::expected<Message, MessageError> message =
                 service_->parser.parse(request.body)) {
    outcome = service_->dispatcher.dispatch(*message, &headers, caller, response);
    if (const Session* session = caller.begun()) {
      exchange->reply(200, kJson, response, {{"Mcp-Session-Id", session->id()}});
      return;
    }
  } else {
    outcome = Dispatcher::reject(message.error(), response);
  }
  switch (outcome.kind) {
    case Outcome::Kind::answered:
      exchange->reply(outcome.http_status, kJson, response);
      return;
    case Outcome::Kind::accepted:
      exchange->reply(202, {}, {});
      return;
    case Outcome::Kind::pending:
      return;
  }
}

void HttpEndpoint::post_lines(const HttpRequest& request, HttpExchangePtr exchange) {
  const std::string_view accept = request.header(KnownHeader::accept);
  const bool takes_events = accepts(accept, "text/event-stream", "text/*");
  const bool takes_lines = accept.data() != nullptr && list_has_token(accept, kLines);
  if (!takes_lines && !takes_events) {
    refuse(*exchange, 406, kInvalidRequest, "Accept application/x-ndjson or text/event-stream");
    return;
  }
  const std::string principal = service_->access->principal_of(request);
  if (principal.empty()) {
    refuse_key(*exchange);
    return;
  }
  const auto body = std::make_shared<MessageBody>(
      *service_, request, exchange, principal,
      takes_lines ? HttpChannel::Format::lines : HttpChannel::Format::events,
      options_.websocket.max_message);
  body->open();
  if (request.body_follows) {
    exchange->read_body(body);
  } else {
    body->on_body(request.body);
    body->on_body_end();
  }
}

void HttpEndpoint::post_to_stream(const HttpRequest& request, HttpExchangePtr exchange) {
  if (!is_message_type(request.header(KnownHeader::content_type))) {
    refuse(*exchange, 415, kInvalidRequest, "Send the message as Content-Type: application/json");
    return;
  }
  const std::string principal = service_->access->principal_of(request);
  if (principal.empty()) {
    refuse_key(*exchange);
    return;
  }
  sse_sessions_.post(request, std::move(exchange), principal);
}

void HttpEndpoint::get(const HttpRequest& request, HttpExchangePtr exchange) {
  static constexpr std::string_view kStreams = "/streams/";
  if (request.path == "/healthz") {
    exchange->reply(200, kText, "ok\n");
    return;
  }
  if (request.path == "/readyz") {
    const std::string why = options_.not_ready ? options_.not_ready() : std::string();
    exchange->reply(why.empty() ? 200 : 503, kText, why.empty() ? "ready\n" : why + "\n");
    return;
  }
  const bool known = request.path == "/mcp" || request.path == "/sse" ||
                     request.path == "/metrics" || request.path == "/ws" ||
                     request.path.starts_with(kStreams);
  if (!known) {
    refuse(*exchange, 404, kMethodNotFound,
           "Nothing is here; POST or GET /mcp, GET /sse, /ws, /streams/{stream_id}, /healthz, "
           "/readyz, /metrics");
    return;
  }
  // There is nothing to be said about these without doing what GET does.
  if (request.method == Method::head && request.path != "/metrics") {
    refuse(*exchange, 405, kInvalidRequest, "Use GET here", {{"Allow", "GET, OPTIONS"}});
    return;
  }
  const std::string principal = service_->access->principal_of(request);
  if (principal.empty()) {
    refuse_key(*exchange);
    return;
  }
  if (request.path == "/metrics") {
    exchange->reply(200, "text/plain; version=0.0.4; charset=utf-8",
                    options_.metrics ? options_.metrics() : std::string());
  } else if (request.path == "/mcp") {
    session_.get(request, std::move(exchange), principal);
  } else if (request.path == "/sse") {
    sse_sessions_.open(request, std::move(exchange), principal);
  } else if (request.path == "/ws") {
    websocket_.open(request, *exchange, options_.websocket, principal);
  } else {
    sse_.open(request, std::move(exchange), request.path.substr(kStreams.size()), principal);
  }
}

void HttpEndpoint::end_session(const HttpRequest& request, const HttpExchangePtr& exchange) {
  const std::string principal = service_->access->principal_of(request);
  if (principal.empty()) {
    refuse_key(*exchange);
    return;
  }
  session_.remove(request, exchange, principal);
}

void HttpEndpoint::preflight(const HttpRequest& request, HttpExchangePtr exchange) {
  std::string_view headers = request.header(KnownHeader::access_control_request_headers);
  if (headers.data() == nullptr) headers = "Content-Type";
  if (!request.has(KnownHeader::origin)) {
    exchange->reply(204, {}, {}, {{"Allow", "GET, HEAD, POST, DELETE, OPTIONS"}});
    return;
  }
  exchange->reply(204, {}, {},
                  {{"Access-Control-Allow-Methods", "GET, POST, DELETE, OPTIONS"},
                   {"Access-Control-Allow-Headers", headers},
                   {"Access-Control-Max-Age", "600"}});
}

}  // namespace sluice
