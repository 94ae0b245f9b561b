#pragma once

#include <memory>
#include <string>

#include "cli/targets/config_places.hpp"
#include "core/error.hpp"
#include "sluice/run_store.hpp"

namespace sluice {

/// The conversation of --session.
struct KeptSession {
  std::shared_ptr<RunStore> store = {};  // null: there is no --session
  std::string name = {};
  bool is_begun = false;  // so that it goes on
};

/// $XDG_STATE_HOME/sluice/agent.db, else the same in ~/.local/state; empty if there is no home.
std::string sessions_database(const PlaceSources& sources);

/// Opens the database, which is made if need be, with its folder, and looks for the session.
/// `is_new`: it does not go on; what is kept is still to be erased. Errors carry an exit code.
Result<KeptSession> open_session(const std::string& database, std::string name, bool is_new);

}  // namespace sluice
