#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "client/authorization/metadata.hpp"
#include "client/authorization/oauth_http.hpp"
#include "core/error.hpp"
#include "net/http/url.hpp"

namespace sluice {

// Both functions call `done` once, but not once `http` is gone.

/// Finds what the server at `server` says about itself. `named` is the place that a challenge has
/// named, or empty: then the well-known places are tried. A server without any such document is
/// taken for one of 2025-03-26. Errors: kNotAuthorized, the document is of another resource; 400,
/// 502 and 504, it cannot be had.
void find_resource_metadata(const std::shared_ptr<OauthHttp>& http, const Url& server,
                            std::string_view named,
                            std::function<void(Result<ResourceMetadata>)> done);

/// Finds what the authorization server `issuer` says about itself. `accepted` is an issuer that the
/// document may have instead (AuthorizationOptions::accept_issuer). Errors: kNotAuthorized, the
/// document is of another issuer; 400, 502 and 504, it cannot be had.
void find_server_metadata(const std::shared_ptr<OauthHttp>& http, const std::string& issuer,
                          const std::string& accepted,
                          std::function<void(Result<ServerMetadata>)> done);

}  // namespace sluice
