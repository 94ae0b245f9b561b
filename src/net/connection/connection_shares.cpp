#include "net/connection/connection_shares.hpp"

#include <map>

namespace sluice {

ConnectionTicket::Count ConnectionShares::of(const PeerAddress& peer, std::size_t connections) {
  if (counts_.size() >= 2 * connections + kKept) {
    std::erase_if(counts_, [](const auto& each) {
      return each.second->open.load() + each.second->refused.load() == 0;
    });
  }
  ConnectionTicket::Count& count = counts_[peer.network()];
  if (count == nullptr) count.reset(new ConnectionCount{.all = all_});
  return count;
}

}  // namespace sluice
