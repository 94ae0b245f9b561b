#pragma once

#include <variant>

#include "cli/targets/target.hpp"
#include "client/api/open_link.hpp"
#include "core/error.hpp"
#include "sluice/client.hpp"

namespace sluice {

/// How a server is reached: where it listens, or what starts it.
using ServerPlace = std::variant<LinkPlace, ServerCommand>;

/// The place of a target. `headers` are those of the command line, which go before those of a file.
/// What `sluice login` has stored authorizes requests by HTTP, unless a header does; nobody is
/// asked. Errors carry kExitUsage.
Result<ServerPlace> server_place(TargetPlace target, NamedValues headers);

}  // namespace sluice
