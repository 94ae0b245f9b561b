#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>

#include "net/connection/connection_ticket.hpp"
#include "net/loop/peer_address.hpp"

namespace sluice {

/// Counts the connections of each client. A client is an address; of IPv6 a network of 64 bits, for
/// that is what one is commonly given. Not thread-safe, but the counts are.
class ConnectionShares {
 public:
  /// What is counted here is counted by `all` too.
  explicit ConnectionShares(ConnectionTicket::Count all) : all_(std::move(all)) {}

  /// How many the client has. `connections`: how many all of them have.
  ConnectionTicket::Count of(const PeerAddress& peer, std::size_t connections);

  /// Clients that are remembered.
  [[nodiscard]] std::size_t size() const { return counts_.size(); }

  /// Clients without a connection that are remembered, beside twice as many as have one.
  static constexpr std::size_t kKept = 1024;

 private:
  const ConnectionTicket::Count all_;
  std::map<std::array<std::uint8_t, 16>, ConnectionTicket::Count> counts_;
};

}  // namespace sluice
