#include "stream/client_quota.hpp"

#include "core/client.hpp"

namespace sluice {

ClientQuota::Unit ClientQuota::take(const std::string& principal) {
  if (per_client_ == 0) return {};
  std::string client = client_of(principal);
  const std::lock_guard lock(mutex_);
  const auto place = in_use_.try_emplace(std::move(client)).first;
  if (place->second >= per_client_) return {};
  ++place->second;
  all_.fetch_add(1, std::memory_order_relaxed);
  return {*this, place};
}

void ClientQuota::release(Counts::iterator place) {
  const std::lock_guard lock(mutex_);
  all_.fetch_sub(1, std::memory_order_relaxed);
  if (--place->second == 0) in_use_.erase(place);
}

}  // namespace sluice
