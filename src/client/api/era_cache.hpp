#pragma once

#include <cstddef>
#include <map>
#include <mutex>
#include <string>

#include "core/clock.hpp"

namespace sluice {

/// Which servers of this process's clients are of the legacy era, so that they need not be probed
/// again (2026-07-28, Versioning, Backward Compatibility). A modern server is asked what it is
/// anyway. Thread-safe.
class EraCache {
 public:
  static EraCache& shared();

  /// Whether the server at `place` was a legacy one not longer than kFresh ago.
  bool is_legacy(const std::string& place, TimePoint now);
  /// What the server has turned out to be. Of more than kMaxServers, the oldest is forgotten.
  void note(const std::string& place, bool is_legacy, TimePoint now);

  static constexpr Duration kFresh = std::chrono::hours(1);
  static constexpr std::size_t kMaxServers = 1000;

 private:
  std::mutex mutex_;
  std::map<std::string, TimePoint> legacy_;  // when that was seen
};

}  // namespace sluice
