#include "server/transport/http/http_admission.hpp"

#include <algorithm>
#include <utility>

#include "core/text/text.hpp"
#include "protocol/negotiation.hpp"
#include "protocol/revision.hpp"
#include "rpc/error_codes.hpp"
#include "server/transport/http/http_refusal.hpp"

namespace sluice {
namespace {

std::string_view name_of(Method method) {
  switch (method) {
    case Method::get:
      return "GET";
    case Method::head:
      return "HEAD";
    case Method::post:
      return "POST";
    case Method::put:
      return "PUT";
    case Method::patch:
      return "PATCH";
    default:
      return "DELETE";
  }
}

/// The method of a Route; nothing for one that it cannot have.
std::optional<Method> method_of(std::string_view name) {
  for (const Method each : {Method::get, Method::post, Method::put, Method::patch, Method::del}) {
    if (name_of(each) == name) return each;
  }
  return {};
}

/// Whether requests may have this path: it is absolute, and has only characters of a URI's path.
bool is_path(std::string_view path) {
  static constexpr std::string_view kOthers = "/-._~!$&'()*+,;=:@%";
  return path.starts_with('/') && std::ranges::all_of(path, [](char c) {
           return is_letter(c) || is_digit(c) || kOthers.contains(c);
         });
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
  const auto takes_events = [&head] { return accepts(head, "text/event-stream", "text/*"); };
  if (route == HttpRoute::messages) {
    if (takes_events() || accepts_by_name(head, kLinesType)) return {};
    return HttpRefusal{406, kInvalidRequest, "Accept application/x-ndjson or text/event-stream"};
  }
  if (!is_message_type(head.header(KnownHeader::content_type))) {
    return HttpRefusal{415, kInvalidRequest, "Send the message as Content-Type: application/json"};
  }
  if (route == HttpRoute::message && !accepts(head, "application/json", "application/*") &&
      !takes_events()) {
    return HttpRefusal{406, kInvalidRequest, "Accept application/json, text/event-stream, or both"};
  }
  return {};
}

}  // namespace

void refuse(HttpExchange& exchange, const HttpRefusal& refusal) {
  const Error error{refusal.code, refusal.message, refusal.data};
  if (refusal.field.empty()) {
    refuse(exchange, refusal.status, error);
  } else {
    refuse(exchange, refusal.status, error, {{refusal.field, refusal.value}});
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
  Error error = unsupported_revision(version);
  return HttpRefusal{400, error.code, std::move(error.message), {}, {}, std::move(error.data)};
}

std::vector<HttpAdmission::Row> HttpAdmission::rows_of(const HttpPaths& paths, bool has_sessions) {
  std::vector<Row> rows;
  if (has_sessions) rows.push_back({HttpRoute::session_events, Method::get, paths.mcp});
  rows.push_back({HttpRoute::message, Method::post, paths.mcp});
  if (has_sessions) rows.push_back({HttpRoute::session_end, Method::del, paths.mcp});
  if (paths.streams) rows.push_back({HttpRoute::stream, Method::get, kStreams, true});
  if (paths.websocket) rows.push_back({HttpRoute::websocket, Method::get, "/ws"});
  if (paths.sse) {
    rows.push_back({HttpRoute::sse, Method::get, "/sse"});
    rows.push_back({HttpRoute::sse_message, Method::post, "/messages"});
  }
  for (const Method method : {Method::get, Method::head}) {
    rows.push_back({HttpRoute::metrics, method, "/metrics"});
    rows.push_back({HttpRoute::health, method, "/healthz", false, true});
    rows.push_back({HttpRoute::readiness, method, "/readyz", false, true});
  }
  for (const Route& route : paths.routes) {
    const Method method = method_of(route.method).value_or(Method::other);
    rows.push_back({HttpRoute::own, method, route.path, false, route.is_open, &route});
    if (method != Method::get) continue;
    rows.push_back({HttpRoute::own, Method::head, route.path, false, route.is_open, &route});
  }
  return rows;
}

HttpAdmission::HttpAdmission(const AccessPolicy& policy, const HttpPaths& paths, bool has_sessions)
    : policy_(&policy), rows_(rows_of(paths, has_sessions)) {}

Result<void> HttpPaths::check() const {
  using Row = HttpAdmission::Row;
  const auto wrong = [](const std::string& path, std::string_view why) {
    return fail(1, "The path '" + path + "' cannot be served: " + std::string(why));
  };
  static constexpr std::string_view kNoPath =
      "it must begin with '/', and have only characters of a URI's path";
  if (!is_path(mcp)) return wrong(mcp, kNoPath);
  for (const Route& route : routes) {
    if (!is_path(route.path)) return wrong(route.path, kNoPath);
    if (!method_of(route.method)) {
      return wrong(route.path, "its method must be GET, POST, PUT, PATCH or DELETE");
    }
    if (!route.answer) return wrong(route.path, "its Route has no answer");
  }
  const std::vector<Row> rows = HttpAdmission::rows_of(*this, true);
  for (auto row = rows.begin(); row != rows.end(); ++row) {
    const bool is_taken = std::any_of(rows.begin(), row, [&](const Row& other) {
      return other.method == row->method && (other.is_at(row->path) || row->is_at(other.path));
    });
    if (is_taken) {
      return wrong(row->own == nullptr ? mcp : std::string(row->path), "something else is there");
    }
  }
  return {};
}

HttpRefusal HttpAdmission::no_route(std::string_view path) const {
  const std::string methods = methods_at(path);
  if (!methods.empty())
    return {405, kInvalidRequest, "This path takes " + methods, "Allow", methods};
  std::string all;
  for (auto row = rows_.begin(); row != rows_.end(); ++row) {
    // It is not known who asks, so the program's closed pages are not listed.
    if (row->own != nullptr && !row->is_open && policy_->authenticates()) continue;
    if (std::ranges::find(rows_.begin(), row, row->path, &Row::path) != row) continue;
    if (!all.empty()) all.append(", ");
    all.append(row->path);
    if (row->is_prefix) all.append("{stream_id}");
  }
  return {404, kMethodNotFound, "Nothing is here; there are " + all};
}

std::string HttpAdmission::methods_at(std::string_view path) const {
  std::string methods;
  for (const Row& row : rows_) {
    const bool is_here = row.is_at(path);
    const std::string_view name = name_of(row.method);
    if ((is_here || path == "*") && !methods.contains(name)) methods.append(name).append(", ");
  }
  if (!methods.empty()) methods.append("OPTIONS");
  return methods;
}

std::optional<HttpRefusal> HttpAdmission::refusal_of_sender(const HttpRequest& head) const {
  const std::string_view host = head.host();
  if (host.data() != nullptr && !host_allowed(host)) {
    return HttpRefusal{403, kInvalidRequest,
                       "Host '" + std::string(host) +
                           "' is not a name of this server; its operator may add it to "
                           "allowed_hosts (--allow-host of sluice serve)"};
  }
  const std::string_view origin = head.header(KnownHeader::origin);
  if (head.repeated(KnownHeader::origin)) {
    return HttpRefusal{403, kInvalidRequest, "The Origin header came more than once"};
  }
  if (origin.data() != nullptr && !policy_->origin_allowed(origin, host, head.tls)) {
    return HttpRefusal{403, kInvalidRequest,
                       "Origin '" + std::string(origin) +
                           "' may not call this server; its operator may add it to "
                           "allowed_origins (--allow-origin of sluice serve)"};
  }
  return {};
}

std::expected<HttpAdmission::Admitted, HttpRefusal> HttpAdmission::admit(
    const HttpRequest& head) const {
  Admitted admitted{HttpRoute::preflight, {}};
  if (head.method == Method::options) {
    if (methods_at(head.path).empty()) return std::unexpected(no_route(head.path));
  } else {
    const auto row = std::ranges::find_if(rows_, [&](const Row& each) {
      return each.method == head.method && each.is_at(head.path);
    });
    if (row == rows_.end()) return std::unexpected(no_route(head.path));
    admitted.route = row->route;
    admitted.own = row->own;
    // Who asks for an open page of the program may be known to it.
    if (policy_->authenticates() && (!row->is_open || row->own != nullptr)) {
      std::expected<Principal, Refusal> who = policy_->authenticate(head);
      if (who) {
        admitted.principal = *std::move(who);
      } else if (!row->is_open) {
        return std::unexpected(refusal_of(std::move(who.error())));
      }
    }
  }
  const bool is_of_session =
      admitted.route == HttpRoute::session_events || admitted.route == HttpRoute::session_end;
  if ((is_of_session || admitted.route == HttpRoute::message) &&
      head.repeated(KnownHeader::mcp_session_id)) {
    return std::unexpected(
        HttpRefusal{400, kInvalidRequest, "The Mcp-Session-Id header came more than once"});
  }
  if (is_of_session) {
    if (std::optional<HttpRefusal> refused = refusal_of_revision(head)) {
      return std::unexpected(std::move(*refused));
    }
  }
  if (admitted.own != nullptr) return admitted;
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
