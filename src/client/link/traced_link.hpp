#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "client/session/contract/server_link.hpp"
#include "net/client/http_client.hpp"
#include "sluice/client.hpp"

namespace sluice {

/// `link` with its messages shown to `on_traffic`, both ways; `link` itself if that is empty.
/// `transport` is a literal. Each of `secrets` is masked.
std::unique_ptr<ServerLink> traced(std::unique_ptr<ServerLink> link, std::string_view transport,
                                   const OnTraffic& on_traffic,
                                   std::vector<std::string> secrets = {});

/// Shows heads to `on_traffic`, without what authorizes requests and each of `secrets`; empty if
/// `on_traffic` is empty.
HttpTap http_tap(const OnTraffic& on_traffic, std::vector<std::string> secrets = {});

}  // namespace sluice
