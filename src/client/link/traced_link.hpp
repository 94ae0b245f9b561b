#pragma once

#include <memory>
#include <string_view>

#include "client/session/contract/server_link.hpp"
#include "core/text/secrets.hpp"
#include "net/client/http_client.hpp"
#include "sluice/client.hpp"

namespace sluice {

/// `link` with its messages shown to `on_traffic`, both ways; `link` itself if that is empty.
/// `transport` is a literal. `secrets` are masked; null: there are none.
std::unique_ptr<ServerLink> traced(std::unique_ptr<ServerLink> link, std::string_view transport,
                                   const OnTraffic& on_traffic,
                                   std::shared_ptr<const KnownSecrets> secrets = {});

/// Shows heads to `on_traffic`, without what authorizes requests and `secrets`; empty if
/// `on_traffic` is empty.
HttpTap http_tap(const OnTraffic& on_traffic, std::shared_ptr<const KnownSecrets> secrets = {});

}  // namespace sluice
