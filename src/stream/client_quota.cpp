#include "stream/client_quota.hpp"

#include "core/sharing/client.hpp"

namespace sluice {

ClientQuota::Unit ClientQuota::take(const std::string& principal) {
  if (per_client_ == 0) return {};
  std::string client = client_of(principal);
  const std::lock_guard lock(mutex_);
  const auto place = in_use_.try_emplace(std::move(client), this).first;
  if (place->second.in_use >= per_client_) return {};
  ++place->second.in_use;
  all_.fetch_add(1, std::memory_order_relaxed);
  return Unit(*place);
}

void ClientQuota::release(Counts::value_type& client) {
  const std::lock_guard lock(mutex_);
  all_.fetch_sub(1, std::memory_order_relaxed);
  // Found by an iterator: the key to erase must not be a reference to that of the entry.
  if (--client.second.in_use == 0) in_use_.erase(in_use_.find(client.first));
}

}  // namespace sluice
