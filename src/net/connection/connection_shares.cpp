#include "net/connection/connection_shares.hpp"

#include <algorithm>
#include <map>

namespace sluice {

ConnectionTicket::Count ConnectionShares::of(const PeerAddress& peer, std::size_t connections) {
  if (peer.is_loopback() && !limits_.counts_loopback) return all_;
  if (limits_.stands_for_many && limits_.stands_for_many(peer)) return all_;
  if (counts_.size() >= 2 * connections + kKept) {
    std::erase_if(counts_, [](const auto& each) {
      return each.second->open.load() + each.second->refused.load() == 0;
    });
  }
  ConnectionTicket::Count& count = counts_[peer.network()];
  if (count == nullptr) count.reset(new ConnectionCount{.all = all_});
  return count;
}

bool ConnectionShares::has_room(const ConnectionTicket::Count& of_client,
                                std::size_t connections) const {
  if (connections >= limits_.all) return false;
  if (!is_of_one(of_client)) return true;
  const std::size_t most = limits_.per_client != 0 ? limits_.per_client : limits_.all / 4;
  // Never more than are free, so that several clients together do not take all of them.
  return of_client->open.load() <
         std::max<std::size_t>(std::min(most, limits_.all - connections), 1);
}

}  // namespace sluice
