#pragma once

#include "json/json.hpp"

namespace sluice {

/// The `serverInfo` in a result of `initialize` or `server/discover`, wherever the server's era has
/// it; null if there is none.
const json::object* server_info_in(const json::object& about);

}  // namespace sluice
