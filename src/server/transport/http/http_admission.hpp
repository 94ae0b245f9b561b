#pragma once

#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "auth/access_policy.hpp"
#include "core/error.hpp"
#include "net/http/http_exchange.hpp"
#include "sluice/routes.hpp"

namespace sluice {

/// Why a request is refused: an HTTP status, a JSON-RPC error and one header field, whose name may
/// be empty.
struct HttpRefusal {
  int status = 0;
  int code = 0;
  std::string message;
  std::string_view field = {};  // static
  std::string value = {};
  std::string data = {};  // of the error; JSON text
};

void refuse(HttpExchange& exchange, const HttpRefusal& refusal);

/// The type of bodies and replies that consist of many messages, one per line.
inline constexpr std::string_view kLinesType = "application/x-ndjson";

/// Whether the body of a POST to /mcp is of that type.
bool has_lines(const HttpRequest& head);

/// What a request asks for.
enum class HttpRoute : std::uint8_t {
  message,         // POST /mcp, or where HttpPaths has it
  messages,        // the same, one message a line
  session_events,  // GET at the same path
  session_end,     // DELETE at the same path
  sse,             // GET /sse
  sse_message,     // POST /messages
  websocket,       // GET /ws
  stream,          // GET /streams/{stream_id}
  health,          // GET and HEAD /healthz
  readiness,       // GET and HEAD /readyz
  metrics,         // GET and HEAD /metrics
  own,             // a Route of the program
  preflight,       // OPTIONS
};

/// What an HTTP server has at which path.
struct HttpPaths {
  std::string mcp = "/mcp";
  bool websocket = true;           // /ws
  bool sse = true;                 // /sse and /messages
  bool streams = true;             // /streams/
  std::vector<Route> routes = {};  // the program's own

  /// The error says which path cannot be used, or is used twice.
  [[nodiscard]] Result<void> check() const;
};

/// Decides from the head alone what a request is allowed, so that no body is read in vain. Belongs
/// to its loop.
class HttpAdmission {
 public:
  struct Admitted {
    HttpRoute route;
    /// Who asks, if the request had to be authenticated. Otherwise the id is empty, and the
    /// principal is determined when it is needed.
    Principal principal;
    const Route* own = nullptr;  // for HttpRoute::own
  };

  static constexpr std::string_view kStreams = "/streams/";

  /// The methods that `path` takes, as in an Allow field; empty if there is no such path. The path
  /// `*` stands for all paths (RFC 9110, section 9.3.7).
  [[nodiscard]] std::string methods_at(std::string_view path) const;

  /// Refuses a request whose MCP-Protocol-Version is not served or came more than once (2025-11-25,
  /// Protocol Version Header). For messages that do not name their revision otherwise.
  static std::optional<HttpRefusal> refusal_of_revision(const HttpRequest& head);

  /// `policy` and `paths` outlive this. Without sessions there is nothing to GET or DELETE.
  HttpAdmission(const AccessPolicy& policy, const HttpPaths& paths, bool has_sessions);

  /// Checks Host and Origin. Returns why the request may not come to this server at all, or
  /// nothing.
  [[nodiscard]] std::optional<HttpRefusal> refusal_of_sender(const HttpRequest& head) const;

  /// What a request that may come asks for, or why it is refused: for its path or method, for who
  /// asks, or for what it says of its body and of the reply.
  [[nodiscard]] std::expected<Admitted, HttpRefusal> admit(const HttpRequest& head) const;

 private:
  struct Row {
    HttpRoute route;
    Method method;
    std::string_view path;
    bool is_prefix = false;
    bool is_open = false;  // without authentication
    const Route* own = nullptr;

    [[nodiscard]] bool is_at(std::string_view asked) const {
      return is_prefix ? asked.starts_with(path) : asked == path;
    }
  };
  friend struct HttpPaths;

  static std::vector<Row> rows_of(const HttpPaths& paths, bool has_sessions);
  [[nodiscard]] HttpRefusal no_route(std::string_view path) const;
  [[nodiscard]] bool host_allowed(std::string_view host) const;

  const AccessPolicy* policy_;
  std::vector<Row> rows_;
  mutable std::string known_host_;  // the last Host that was allowed, if it is short
};

}  // namespace sluice
