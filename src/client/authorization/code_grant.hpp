#pragma once

#include <string>
#include <string_view>

#include "client/authorization/metadata.hpp"
#include "core/error.hpp"

namespace sluice {

/// What a login remembers of its authorization request until the user comes back.
struct AuthorizationRequest {
  std::string state;
  std::string verifier;  // of PKCE (RFC 7636); belongs to this request alone
  std::string issuer;    // of the server's metadata, as it stands there
  bool expects_iss = false;
  std::string accepted_issuer = {};  // AuthorizationOptions::accept_issuer
};

/// Whether the query of a redirect belongs to that request: its state is the same. The time taken
/// does not reveal where they differ.
bool is_answer_to(const AuthorizationRequest& request, std::string_view query);

/// The authorization code in a query that belongs to the request. Errors, all kNotAuthorized: the
/// answer is of another authorization server (RFC 9207, section 2.4), in which case nothing else of
/// it is used or shown; the server refuses, and why; there is no code.
Result<std::string> read_redirect(const AuthorizationRequest& request, std::string_view query);

}  // namespace sluice
