#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/error.hpp"
#include "net/client/http_client.hpp"

namespace sluice {

/// Who has named the place that a request goes to.
enum class NamedBy : std::uint8_t {
  server,  // the MCP server, or what it led to: the place may be a trap
  user,
};

/// A request of the client to an authorization server, or for metadata.
struct OauthRequest {
  std::string method = "GET";
  std::string url;
  HttpHeaderList headers = {};
  std::string body = {};
  NamedBy named_by = NamedBy::server;
};

struct OauthReply {
  int status = 0;
  std::string body;
  std::string dpop_nonce;  // of the field DPoP-Nonce
};

/// How requests of authorization are made. The flows are state machines over it, so that tests step
/// them with recorded replies. Belongs to the loop.
class OauthHttp {
 public:
  using Done = std::function<void(Result<OauthReply>)>;

  virtual ~OauthHttp() = default;
  /// Calls `done` once, never from within this function, and not at all once this object is gone. A
  /// reply has at most kMaxReply bytes, and comes within a limited time. GET follows a few
  /// redirects; nothing else follows any. Errors: 400, the URL may not be asked, and why; 502 and
  /// 504, there is no reply.
  virtual void send(OauthRequest request, Done done) = 0;
  /// The MCP server has been looked up to be connected to, and this is one of its addresses.
  virtual void server_is_at(const Endpoint& /*endpoint*/) {}

  static constexpr std::size_t kMaxReply = std::size_t{1} << 20U;
};

/// Names and values of a form or a query, in order.
using FormFields = std::vector<std::pair<std::string, std::string>>;
/// As application/x-www-form-urlencoded.
std::string to_form(const FormFields& fields);
/// The reverse. Skips what cannot be decoded; at most 64 fields are read.
FormFields parse_form(std::string_view text);
/// The value of the first such field, or an empty view with data() == nullptr.
std::string_view field_of(const FormFields& fields, std::string_view name);

}  // namespace sluice
