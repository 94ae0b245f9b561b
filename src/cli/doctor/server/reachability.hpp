#pragma once

#include "cli/doctor/report/check.hpp"
#include "cli/doctor/server/connection_facts.hpp"
#include "core/error.hpp"
#include "net/http/url.hpp"

namespace sluice {

/// Examines how the server at `server` is reached, by the proxy if there is one. Returns whether
/// requests can be sent to it.
bool examine_reachability(const Url& server, const std::optional<ProxyServer>& proxy,
                          const Result<ConnectionFacts>& facts, Checks& out);

}  // namespace sluice
