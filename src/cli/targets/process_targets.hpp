#pragma once

#include "cli/targets/config_places.hpp"
#include "cli/targets/found_servers.hpp"
#include "cli/targets/session_files.hpp"
#include "cli/targets/target.hpp"
#include "cli/targets/variables.hpp"
#include "core/error.hpp"

namespace sluice {

// What this process knows: its environment, its working directory and the disk.

PlaceSources process_places();
/// Files that others can change (config_reader.hpp) are not read.
VariableSources process_variables();
/// The servers of all files that process_places() leads to.
FoundServers process_servers();
/// The sessions of this user. Errors carry kExitUsage.
Result<SessionFiles> process_sessions();
/// parse_target() with what this process knows; or @NAME, the session of that name. Only a name
/// needs the files of servers.
Result<Target> find_target(const TargetArguments& arguments);

}  // namespace sluice
