#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "client/authorization/jwt.hpp"
#include "client/authorization/oauth_http.hpp"
#include "client/authorization/redirect_receiver.hpp"
#include "client/authorization/token_store.hpp"
#include "core/executor.hpp"
#include "net/http/url.hpp"
#include "sluice/client_authorization.hpp"

namespace sluice {

/// What the flows of one server's authorization share. Belongs to the loop.
struct AuthorizationContext {
  Executor* loop = nullptr;
  std::shared_ptr<OauthHttp> http;
  std::shared_ptr<TokenStore> store;
  Url server;  // http or https
  AuthorizationOptions options;
  std::function<WallTime()> time_of_day = std::chrono::system_clock::now;
  ListenForRedirect listen;

  /// Seconds since 1970.
  [[nodiscard]] std::int64_t now() const {
    return std::chrono::duration_cast<std::chrono::seconds>(time_of_day().time_since_epoch())
        .count();
  }
};
using AuthorizationContextPtr = std::shared_ptr<const AuthorizationContext>;

/// The name of a grant in the token file.
std::string_view to_text(GrantKind grant);
/// Whether a user must take part.
constexpr bool needs_user(GrantKind grant) {
  return grant == GrantKind::authorization_code || grant == GrantKind::device_code;
}

}  // namespace sluice
