#pragma once

#include <memory>

#include "client/link/request_authorizer.hpp"
#include "core/text/secrets.hpp"

namespace sluice {

/// An authorizer whose access tokens are known as secrets.
std::shared_ptr<RequestAuthorizer> telling_authorizer(std::shared_ptr<RequestAuthorizer> authorizer,
                                                      std::shared_ptr<KnownSecrets> secrets);

}  // namespace sluice
