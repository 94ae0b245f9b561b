#include "proxy/clients/client_pool.hpp"

#include <algorithm>
#include <utility>

#include "core/recycling.hpp"

namespace sluice {

ClientPool::~ClientPool() {
  if (timer_ != 0) loop_->cancel(timer_);
}

Result<ClientQuota::Unit> ClientPool::place_for(const Principal& principal) {
  if (places_.size() >= kMaxClients) {
    return fail(kBusy, "The proxy has " + std::to_string(kMaxClients) +
                           " requests without a session under way; try again later");
  }
  ClientQuota::Unit unit;
  if (principal.isolated) {
    unit = quota_.take(principal.id);
    if (!unit) {
      return fail(kBusy, "You have " + std::to_string(kMaxOfOne) +
                             " requests without a session under way; try again later");
    }
  }
  return unit;
}

Result<std::shared_ptr<ProxyClient>> ClientPool::take(const Principal& principal,
                                                      const ClientIdentity& identity) {
  Result<ClientQuota::Unit> place = place_for(principal);
  if (!place) return std::unexpected(std::move(place.error()));
  const std::string owner = principal.isolated || shares_principals_ ? principal.id : std::string();
  std::shared_ptr<ProxyClient> client;
  const auto fits = [&](const Idle& each) {
    const bool is_free = !each.client->has_state() || (!owner.empty() && each.principal == owner);
    return is_free && each.client->identity() == identity;
  };
  // The newest, so that the others can go.
  const auto found = std::find_if(idle_.rbegin(), idle_.rend(), fits);
  if (found != idle_.rend()) {
    client = std::move(found->client);
    idle_.erase(std::next(found).base());
  } else {
    client = make_(identity);
  }
  ProxyClient* const lent = client.get();
  places_.push_back({lent, *std::move(place)});
  return std::shared_ptr<ProxyClient>(
      lent,
      [weak = weak_from_this(), client = std::move(client), owner](ProxyClient*) mutable {
        if (const auto self = weak.lock()) self->give_back(std::move(client), owner);
      },
      RecyclingAllocator<ProxyClient>());
}

bool ClientPool::vacate(const ProxyClient& client) {
  const auto found = std::ranges::find(places_, &client, &Place::client);
  if (found == places_.end()) return false;
  std::swap(*found, places_.back());
  places_.pop_back();
  return true;
}

Result<void> ClientPool::occupy(const ProxyClient& client, const Principal& principal) {
  Result<ClientQuota::Unit> place = place_for(principal);
  if (!place) return std::unexpected(std::move(place.error()));
  places_.push_back({&client, *std::move(place)});
  return {};
}

void ClientPool::give_back(std::shared_ptr<ProxyClient> client, std::string principal) {
  vacate(*client);
  client->refuse_questions();
  if (client->has_state() && principal.empty()) return;
  idle_.push_back({std::move(client), std::move(principal), loop_->clock().now()});
  if (idle_.size() > kMaxIdle) idle_.erase(idle_.begin());
  if (timer_ == 0) sweep();
}

/// Ends those that have waited too long.
void ClientPool::sweep() {
  const TimePoint now = loop_->clock().now();
  std::erase_if(idle_, [now](const Idle& each) { return each.since + kIdleTime <= now; });
  timer_ = 0;
  if (idle_.empty()) return;
  timer_ = loop_->schedule_at(idle_.front().since + kIdleTime, [weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->sweep();
  });
}

}  // namespace sluice
