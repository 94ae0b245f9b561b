#pragma once

#include <cstdint>
#include <string_view>

#include "core/error.hpp"
#include "core/unique_function.hpp"
#include "net/client/http_client.hpp"
#include "net/http/url.hpp"

namespace sluice {

/// What makes one request an authorized one.
struct RequestAuthorization {
  HttpHeaderList headers;        // to be sent with it; empty: none is needed, as far as is known
  std::uint64_t credential = 0;  // which access token they are from; 0: none
};

/// Authorizes the requests of a link to its server, and deals with the server's refusals
/// (2026-07-28, Authorization). Belongs to the link's loop. One may serve several links to the same
/// server.
class RequestAuthorizer {
 public:
  using Authorized = UniqueFunction<void(Result<RequestAuthorization>)>;
  using Handled = UniqueFunction<void(Result<void>)>;

  virtual ~RequestAuthorizer() = default;

  /// Calls `done` once, from within this function if it need not wait. Requests to another origin
  /// than the server's get no fields. Error: there is no token, and why.
  virtual void authorize(std::string_view method, const Url& url, Authorized done) = 0;

  /// The server has refused a request that was sent with `credential`. Returns false if the reply
  /// is not about authorization, or nothing can be done about it; `done` is then not called.
  /// Otherwise calls it once, perhaps from within this function: the request may be sent again,
  /// authorized anew; or the error says why not, and what to do. The reply is valid during the
  /// call.
  virtual bool on_refused(const HttpReplyHead& reply, std::uint64_t credential, Handled done) = 0;

  /// The server has sent this head, whatever it says. Called before on_refused().
  virtual void on_reply(const HttpReplyHead& reply) = 0;

  /// A connection to the server is about to be made; this is one of the addresses for it.
  virtual void on_address(const Endpoint& endpoint) = 0;
};

}  // namespace sluice
