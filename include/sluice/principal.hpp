#pragma once

#include <string>

namespace sluice {

/// The caller of a request.
struct Principal {
  /// Identifies the caller. Streams, sessions, tasks and calls belong to it, and limits per client
  /// are counted by it.
  std::string id;
  /// Whether only one party has this id. An address, for example, may be shared. Parties that share
  /// an id can reach each other's streams, sessions and tasks, but only if they know the random ids
  /// of these; so the server does not list the ids for such a principal.
  bool isolated = true;
};

}  // namespace sluice
