#pragma once

#include <variant>

#include "cli/targets/target.hpp"
#include "client/api/open_link.hpp"
#include "core/error.hpp"
#include "sluice/client.hpp"

namespace sluice {

/// How a server is reached: where it listens, or what starts it.
using ServerPlace = std::variant<LinkPlace, ServerCommand>;

/// The header fields for a server over HTTP: those of its file, with those of the command line in
/// their place or besides. Error: kExitUsage, one of them may not be sent.
Result<NamedValues> request_headers(NamedValues configured, NamedValues more);

/// The place of a target. `headers` are those of the command line, which go before those of a file.
/// What `sluice login` has stored authorizes requests by HTTP, unless a header does; nobody is
/// asked. Errors carry kExitUsage, or kExitFailure if what is stored is refused.
Result<ServerPlace> server_place(TargetPlace target, NamedValues headers);

}  // namespace sluice
