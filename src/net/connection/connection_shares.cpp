#include "net/connection/connection_shares.hpp"

#include <algorithm>
#include <memory>

namespace sluice {

ConnectionTicket::Count ConnectionShares::of(const PeerAddress& peer, std::size_t connections) {
  if (counts_.size() >= 2 * connections + kKept) {
    std::erase_if(counts_, [](const auto& each) {
      return each.second->open.load() + each.second->refused.load() == 0;
    });
  }
  std::array<std::uint8_t, 16> network = peer.ip;
  if (!peer.is_v4()) std::fill(network.begin() + 8, network.end(), std::uint8_t{0});
  ConnectionTicket::Count& count = counts_[network];
  if (count == nullptr) count.reset(new ConnectionCount{.all = all_});
  return count;
}

}  // namespace sluice
