#include "server/transport/http/http_admission.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "protocol/revision.hpp"
#include "rpc/error_codes.hpp"
#include "server/transport/http/http_refusal.hpp"

namespace sluice {
namespace {

struct RouteRow {
  HttpRoute route;
  Method method;
  std::string_view path;
  bool is_prefix = false;
  bool is_open = false;  // without authentication
};

constexpr std::array kRoutes = {
    RouteRow{HttpRoute::session_events, Method::get, "/mcp"},
    RouteRow{HttpRoute::message, Method::post, "/mcp"},
    RouteRow{HttpRoute::session_end, Method::del, "/mcp"},
    RouteRow{HttpRoute::stream, Method::get, HttpAdmission::kStreams, true},
    RouteRow{HttpRoute::websocket, Method::get, "/ws"},
    RouteRow{HttpRoute::sse, Method::get, "/sse"},
    RouteRow{HttpRoute::sse_message, Method::post, "/messages"},
    RouteRow{HttpRoute::metrics, Method::get, "/metrics"},
    RouteRow{HttpRoute::metrics, Method::head, "/metrics"},
    RouteRow{HttpRoute::health, Method::get, "/healthz", false, true},
    RouteRow{HttpRoute::health, Method::head, "/healthz", false, true},
    RouteRow{HttpRoute::readiness, Method::get, "/readyz", false, true},
    RouteRow{HttpRoute::readiness, Method::head, "/readyz", false, true},
};

bool is_at(const RouteRow& row, std::string_view path) {
  return row.is_prefix ? path.starts_with(row.path) : path == row.path;
}

std::string_view name_of(Method method) {
  switch (method) {
    case Method::get:
      return "GET";
    case Method::head:
      return "HEAD";
    case Method::post:
      return "POST";
    default:
      return "DELETE";
  }
}

/// The refusal of a request that no row matches.
HttpRefusal no_route(std::string_view path) {
  std::string methods = HttpAdmission::methods_at(path);
  if (methods.empty()) {
    return {404, kMethodNotFound,
            "Nothing is here; POST or GET /mcp, GET /sse, /ws, /streams/{stream_id}, /healthz, "
            "/readyz, /metrics"};
  }
  return {405, kInvalidRequest, "This path takes " + methods, "Allow", methods};
}

HttpRefusal refusal_of(Refusal refused) {
  const int code = refused.status >= 500 ? kInternalError : kInvalidRequest;
  HttpRefusal out{refused.status, code, std::move(refused.message)};
  if (!refused.challenge.empty()) {
    out.field = "WWW-Authenticate";
    out.value = std::move(refused.challenge);
  }
  return out;
}

bool has_body(const HttpRequest& head) {
  return head.has(KnownHeader::transfer_encoding) ||
         head.header(KnownHeader::content_length).find_first_not_of('0') != std::string_view::npos;
}

/// The types that plain `fetch` and `curl -d` send count as JSON too. Any other declared type is a
/// mistake that the client should be told of.
bool is_message_type(std::string_view content_type) {
  return content_type.empty() || list_has_token(content_type, "application/json") ||
         list_has_token(content_type, "text/plain") ||
         list_has_token(content_type, "application/x-www-form-urlencoded");
}

/// Refuses a POST for its Content-Type or for the replies it accepts.
std::optional<HttpRefusal> refusal_of_types(HttpRoute route, const HttpRequest& head) {
  const bool takes_events = accepts(head, "text/event-stream", "text/*");
  if (route == HttpRoute::messages) {
    if (takes_events || head.lists(KnownHeader::accept, kLinesType)) return {};
    return HttpRefusal{406, kInvalidRequest, "Accept application/x-ndjson or text/event-stream"};
  }
  if (!is_message_type(head.header(KnownHeader::content_type))) {
    return HttpRefusal{415, kInvalidRequest, "Send the message as Content-Type: application/json"};
  }
  if (route == HttpRoute::message && !takes_events &&
      !accepts(head, "application/json", "application/*")) {
    return HttpRefusal{406, kInvalidRequest, "Accept application/json, text/event-stream, or both"};
  }
  return {};
}

}  // namespace

void refuse(HttpExchange& exchange, const HttpRefusal& refusal) {
  if (refusal.field.empty()) {
    refuse(exchange, refusal.status, refusal.code, refusal.message);
  } else {
    refuse(exchange, refusal.status, refusal.code, refusal.message,
           {{refusal.field, refusal.value}});
  }
}

bool has_lines(const HttpRequest& head) {
  const std::string_view content_type = head.header(KnownHeader::content_type);
  return equals_ignoring_case(content_type.substr(0, content_type.find(';')), kLinesType);
}

std::optional<HttpRefusal> HttpAdmission::refusal_of_revision(const HttpRequest& head) {
  if (head.repeated(KnownHeader::mcp_protocol_version)) {
    return HttpRefusal{400, kInvalidRequest, "The MCP-Protocol-Version header came more than once"};
  }
  const std::string_view version = head.header(KnownHeader::mcp_protocol_version);
  if (version.data() == nullptr || find_revision(version) != nullptr) return {};
  return HttpRefusal{400, kUnsupportedProtocolVersion, "Unsupported protocol version"};
}

std::string HttpAdmission::methods_at(std::string_view path) {
  std::string methods;
  for (const RouteRow& row : kRoutes) {
    const bool is_here = is_at(row, path);
    const std::string_view name = name_of(row.method);
    if (is_here || (path == "*" && !methods.contains(name))) methods.append(name).append(", ");
  }
  if (!methods.empty()) methods.append("OPTIONS");
  return methods;
}

std::optional<HttpRefusal> HttpAdmission::refusal_of_sender(const HttpRequest& head) const {
  const std::string_view host = head.host();
  if (host.data() != nullptr && !host_allowed(host)) {
    return HttpRefusal{403, kInvalidRequest,
                       "Host '" + std::string(host) +
                           "' is not a name of this server; allow it with --allow-host"};
  }
  const std::string_view origin = head.header(KnownHeader::origin);
  if (head.repeated(KnownHeader::origin)) {
    return HttpRefusal{403, kInvalidRequest, "The Origin header came more than once"};
  }
  if (origin.data() != nullptr && !policy_->origin_allowed(origin, host, head.tls)) {
    return HttpRefusal{403, kInvalidRequest,
                       "Origin '" + std::string(origin) +
                           "' may not call this server; allow it with --allow-origin"};
  }
  return {};
}

std::expected<HttpAdmission::Admitted, HttpRefusal> HttpAdmission::admit(
    const HttpRequest& head) const {
  Admitted admitted{HttpRoute::preflight, {}};
  if (head.method == Method::options) {
    if (methods_at(head.path).empty()) return std::unexpected(no_route(head.path));
  } else {
    const auto* const row = std::ranges::find_if(kRoutes, [&](const RouteRow& each) {
      return each.method == head.method && is_at(each, head.path);
    });
    if (row == kRoutes.end()) return std::unexpected(no_route(head.path));
    admitted.route = row->route;
    if (policy_->authenticates() && !row->is_open) {
      std::expected<Principal, Refusal> who = policy_->authenticate(head);
      if (!who) return std::unexpected(refusal_of(std::move(who.error())));
      admitted.principal = *std::move(who);
    }
  }
  if (admitted.route == HttpRoute::session_events || admitted.route == HttpRoute::session_end) {
    if (std::optional<HttpRefusal> refused = refusal_of_revision(head)) {
      return std::unexpected(std::move(*refused));
    }
  }
  if (head.method != Method::post) {
    if (!has_body(head)) return admitted;
    return std::unexpected(
        HttpRefusal{400, kInvalidRequest, "Send this request without a body; POST has one"});
  }
  if (admitted.route == HttpRoute::message && has_lines(head)) {
    admitted.route = HttpRoute::messages;
  }
  if (std::optional<HttpRefusal> refused = refusal_of_types(admitted.route, head)) {
    return std::unexpected(std::move(*refused));
  }
  return admitted;
}

/// The last host is remembered, because most requests name the same host as the one before.
bool HttpAdmission::host_allowed(std::string_view host) const {
  static constexpr std::size_t kKept = 64;
  if (!host.empty() && host == known_host_) return true;
  if (!policy_->host_allowed(host)) return false;
  if (host.size() <= kKept) known_host_ = host;
  return true;
}

}  // namespace sluice
