#pragma once

#include <string>

#include "sluice/client_authorization.hpp"
#include "sluice/json.hpp"

/// How the client is authorized in a scenario of the conformance suite, whose `context` has what is
/// registered already. A browser that agrees to everything is played by curl.
sluice::AuthorizationOptions authorization_of(const std::string& scenario,
                                              const sluice::json::object& context);
