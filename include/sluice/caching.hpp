#pragma once

#include <chrono>

namespace sluice {

/// Says how long a client may reuse a result, and whether a cache may give it to others
/// (2026-07-28, Caching). By default a result is stale at once and private to its caller.
struct Caching {
  std::chrono::milliseconds fresh_for{0};  // negative values count as 0
  /// Whether a cache may give the result to any caller. Set it only for results that contain no
  /// user's data.
  bool shared = false;
};

}  // namespace sluice
