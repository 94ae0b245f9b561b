#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "core/error.hpp"
#include "net/loop/event_loop.hpp"

namespace sluice {

/// What a login thinks of a request to its redirect URI, so that the user can be told.
enum class RedirectVerdict : std::uint8_t {
  accepted,
  refused,    // the login has failed
  not_of_it,  // the request does not belong to the login, which goes on
};

/// Receives the user's browser when it comes back from the authorization server (RFC 8252, section
/// 7.3). Destroying it ends that.
class RedirectReceiver {
 public:
  virtual ~RedirectReceiver() = default;
  [[nodiscard]] virtual const std::string& redirect_uri() const = 0;
};

/// Is called with the query of each request, which is not decoded.
using OnRedirect = std::function<RedirectVerdict(std::string_view query)>;

/// Starts to listen on `port`; 0: any free one. The error says why that is not possible.
using ListenForRedirect = std::function<Result<std::unique_ptr<RedirectReceiver>>(
    std::uint16_t port, OnRedirect on_redirect)>;

/// Listens on 127.0.0.1 for GET /callback. `host` stands in the redirect URI: "127.0.0.1", or
/// "localhost" where an authorization server demands that. Bounded: a few connections at a time,
/// each with one request of limited size and time.
Result<std::unique_ptr<RedirectReceiver>> listen_for_redirect(EventLoop& loop,
                                                              const std::string& host,
                                                              std::uint16_t port,
                                                              OnRedirect on_redirect);

}  // namespace sluice
