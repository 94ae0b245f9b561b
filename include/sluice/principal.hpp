#pragma once

#include <string>

namespace sluice {

/// Who asks.
struct Principal {
  /// Streams, sessions, tasks and calls belong to it, and the limits of a client are counted by it.
  std::string id;
  /// Whether the id is that of one party. If several may have it, as an address, their ids are all
  /// that keeps what is theirs apart: none is told of the others'.
  bool isolated = true;
};

}  // namespace sluice
