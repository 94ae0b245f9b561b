#include "client/api/era_cache.hpp"

#include <algorithm>

namespace sluice {

EraCache& EraCache::shared() {
  static EraCache cache;
  return cache;
}

bool EraCache::is_legacy(const std::string& place, TimePoint now) {
  const std::lock_guard lock(mutex_);
  const auto found = legacy_.find(place);
  if (found == legacy_.end()) return false;
  if (now - found->second < kFresh) return true;
  legacy_.erase(found);
  return false;
}

void EraCache::note(const std::string& place, bool is_legacy, TimePoint now) {
  const std::lock_guard lock(mutex_);
  if (!is_legacy) {
    legacy_.erase(place);
    return;
  }
  legacy_[place] = now;
  if (legacy_.size() <= kMaxServers) return;
  legacy_.erase(
      std::ranges::min_element(legacy_, {}, [](const auto& each) { return each.second; }));
}

}  // namespace sluice
