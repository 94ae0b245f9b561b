#pragma once

#include <functional>
#include <string>

#include "client/authorization/authorization_context.hpp"
#include "client/authorization/metadata.hpp"
#include "client/authorization/token_endpoint.hpp"
#include "core/error.hpp"

namespace sluice {

/// Finds out as which client to log in at `server` (2026-07-28, Client Registration): the one of
/// the options, the metadata document, one that was registered before with this redirect URI, or a
/// new one that is registered now and kept. `redirect_uri` is empty for a device. Calls `done`
/// once, perhaps from within. Errors: kNotAuthorized, there is no way, and what the user can do;
/// those of OauthHttp::send() and of the token file.
void find_client(const AuthorizationContextPtr& context, const ServerMetadata& server,
                 const std::string& redirect_uri, std::function<void(Result<OauthClient>)> done);

/// The client of the options. Error: kNotAuthorized, there is none, or it cannot authenticate
/// itself at the server.
Result<OauthClient> configured_client(const AuthorizationOptions& options,
                                      const ServerMetadata& server);

}  // namespace sluice
