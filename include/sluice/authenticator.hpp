#pragma once

// Who asks over HTTP, where the program that embeds the server decides it.
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

/// What comes before the body of a request. Its views hold as long as it.
class RequestHead {
 public:
  RequestHead(const HttpRequest& request, const TrustedProxies& proxies)
      : request_(&request), proxies_(&proxies) {}
  RequestHead(const RequestHead&) = delete;
  RequestHead& operator=(const RequestHead&) = delete;

  std::string_view method() const;  // such as "POST"
  std::string_view target() const;  // path and query, as sent
  /// The value of the header field, whose name counts in any case. None if there are several, too:
  /// which of two counts is nothing to guess.
  std::optional<std::string_view> field(std::string_view name) const;
  bool is_repeated(std::string_view name) const;
  /// The address it comes from, "192.0.2.1" or "2001:db8::1", or what a trusted proxy says for whom
  /// it asks.
  std::string address() const;
  bool is_tls() const;

 private:
  const HttpRequest* request_;
  const TrustedProxies* proxies_;
};

/// Why a request is not served. Anything but a status of 400 to 599 and a challenge of visible
/// ASCII is a mistake, which is logged and answered with 500.
struct Refusal {
  int status = 403;
  std::string message = {};    // which the peer reads
  std::string challenge = {};  // WWW-Authenticate (RFC 9110, section 11.6.1); empty: none

  /// The request has no credentials, or none that are valid.
  static Refusal unauthorized(std::string message, std::string challenge = "Bearer") {
    return {401, std::move(message), std::move(challenge)};
  }
  /// They do not suffice.
  static Refusal forbidden(std::string message, std::string challenge = {}) {
    return {403, std::move(message), std::move(challenge)};
  }
};

/// Says who makes a request: asked once for each, and for each WebSocket, before its body is read.
/// /healthz, /readyz and OPTIONS are open to all. Called on the event loops, on several at once,
/// which it must not block: what has to wait belongs in a middleware, which is asked next.
class Authenticator {
 public:
  virtual ~Authenticator() = default;
  /// An id has 1 to 1,024 bytes and begins with neither "uid:" nor "session:", which are the
  /// server's own. Another one, or an exception, is logged and answered with 500.
  virtual std::expected<Principal, Refusal> authenticate(const RequestHead& head) = 0;

 protected:
  Authenticator() = default;
  Authenticator(const Authenticator&) = default;
  Authenticator& operator=(const Authenticator&) = default;
};

}  // namespace sluice
