#pragma once

#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <string_view>

#include "auth/access_policy.hpp"
#include "net/http/http_exchange.hpp"

namespace sluice {

/// Why a request is refused: an HTTP status, a JSON-RPC error and one header field, whose name may
/// be empty.
struct HttpRefusal {
  int status = 0;
  int code = 0;
  std::string message;
  std::string_view field = {};  // static
  std::string value = {};
};

void refuse(HttpExchange& exchange, const HttpRefusal& refusal);

/// The type of bodies and replies that consist of many messages, one per line.
inline constexpr std::string_view kLinesType = "application/x-ndjson";

/// Whether the body of a POST to /mcp is of that type.
bool has_lines(const HttpRequest& head);

/// What a request asks for.
enum class HttpRoute : std::uint8_t {
  message,         // POST /mcp
  messages,        // POST /mcp, one message a line
  session_events,  // GET /mcp
  session_end,     // DELETE /mcp
  sse,             // GET /sse
  sse_message,     // POST /messages
  websocket,       // GET /ws
  stream,          // GET /streams/{stream_id}
  health,          // GET and HEAD /healthz
  readiness,       // GET and HEAD /readyz
  metrics,         // GET and HEAD /metrics
  preflight,       // OPTIONS
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
  };

  static constexpr std::string_view kStreams = "/streams/";

  /// The methods that `path` takes, as in an Allow field; empty if there is no such path. The path
  /// `*` stands for all paths (RFC 9110, section 9.3.7).
  static std::string methods_at(std::string_view path);

  /// Refuses a request whose MCP-Protocol-Version is not served or came more than once (2025-11-25,
  /// Protocol Version Header). For messages that do not name their revision otherwise.
  static std::optional<HttpRefusal> refusal_of_revision(const HttpRequest& head);

  /// `policy` outlives this.
  explicit HttpAdmission(const AccessPolicy& policy) : policy_(&policy) {}

  /// Checks Host and Origin. Returns why the request may not come to this server at all, or
  /// nothing.
  [[nodiscard]] std::optional<HttpRefusal> refusal_of_sender(const HttpRequest& head) const;

  /// What a request that may come asks for, or why it is refused: for its path or method, for who
  /// asks, or for what it says of its body and of the reply.
  [[nodiscard]] std::expected<Admitted, HttpRefusal> admit(const HttpRequest& head) const;

 private:
  [[nodiscard]] bool host_allowed(std::string_view host) const;

  const AccessPolicy* policy_;
  mutable std::string known_host_;  // the last Host that was allowed, if it is short
};

}  // namespace sluice
