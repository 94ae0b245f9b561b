#pragma once

#include <chrono>

namespace sluice {

/// How long a client may take a result for fresh, and who may be given a copy of it (2026-07-28,
/// Caching). By default it is stale at once and its caller's alone.
struct Caching {
  std::chrono::milliseconds fresh_for{0};  // less than 0 counts as 0
  /// Whether caches may give it to any caller. Only for what has no data of a user.
  bool shared = false;
};

}  // namespace sluice
