#pragma once

// Lets the program that embeds the server decide who a caller over HTTP is.
//
//   class Tickets : public sluice::Authenticator {
//     std::expected<sluice::Principal, sluice::Refusal> authenticate(
//         const sluice::RequestHead& head) override {
//       const auto ticket = head.field("Authorization");
//       if (!ticket) return std::unexpected(sluice::Refusal::unauthorized("Show your ticket"));
//       return sluice::Principal{.id = holder_of(*ticket)};
//     }
//   };
//   sluice::serve(server, sluice::http{.authenticator = std::make_shared<Tickets>()});

#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "sluice/principal.hpp"

namespace sluice {

class TrustedProxies;
struct HttpRequest;

/// The head of an HTTP request. It and the views that it returns are valid only while
/// Authenticator::authenticate() runs.
class RequestHead {
 public:
  RequestHead(const HttpRequest& request, const TrustedProxies& proxies)
      : request_(&request), proxies_(&proxies) {}
  RequestHead(const RequestHead&) = delete;
  RequestHead& operator=(const RequestHead&) = delete;

  std::string_view method() const;  // such as "POST"
  std::string_view target() const;  // path and query, as sent
  /// The value of a header field; upper and lower case of `name` are the same. Empty if the field
  /// is missing, and also if it is repeated, because it is not clear which value counts.
  std::optional<std::string_view> field(std::string_view name) const;
  bool is_repeated(std::string_view name) const;
  /// The client's address, such as "192.0.2.1" or "2001:db8::1". If the peer is a trusted proxy,
  /// this is what the proxy says in its forwarding header field.
  std::string address() const;
  bool is_tls() const;

 private:
  const HttpRequest* request_;
  const TrustedProxies* proxies_;
};

/// Why a request is refused. `status` must be 400 to 599, and `challenge` visible ASCII. Otherwise
/// the mistake is logged, and the request is answered with 500.
struct Refusal {
  int status = 403;            // the HTTP status
  std::string message = {};    // sent to the peer
  std::string challenge = {};  // WWW-Authenticate (RFC 9110, section 11.6.1); empty: none

  /// 401: the request has no credentials, or none that are valid.
  static Refusal unauthorized(std::string message, std::string challenge = "Bearer") {
    return {401, std::move(message), std::move(challenge)};
  }
  /// 403: the credentials do not suffice.
  static Refusal forbidden(std::string message, std::string challenge = {}) {
    return {403, std::move(message), std::move(challenge)};
  }
};

/// Decides who makes a request. It is asked once for each request, and once for each WebSocket,
/// before the body is read. It is not asked for /healthz, /readyz and OPTIONS, which are open to
/// all. An open Route serves callers that it refuses, too.
///
/// Must be thread-safe: several event loops call it at the same time. It must not block them; put
/// what has to wait into a middleware, which runs next.
class Authenticator {
 public:
  virtual ~Authenticator() = default;
  /// Returns the principal, or the refusal to send. The principal's id must have 1 to 1,024 bytes
  /// and must not begin with "uid:" or "session:", which the server uses itself. Any other id is
  /// logged, and the request is answered with 500. So is an exception.
  virtual std::expected<Principal, Refusal> authenticate(const RequestHead& head) = 0;

 protected:
  Authenticator() = default;
  Authenticator(const Authenticator&) = default;
  Authenticator& operator=(const Authenticator&) = default;
};

}  // namespace sluice
