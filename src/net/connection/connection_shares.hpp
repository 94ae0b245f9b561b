#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>

#include "net/connection/connection_ticket.hpp"
#include "net/loop/peer_address.hpp"

namespace sluice {

/// Counts the connections of each client (PeerAddress::network()). Not thread-safe, but the counts
/// are.
class ConnectionShares {
 public:
  /// Connections that are counted here are also counted in `all`.
  explicit ConnectionShares(ConnectionTicket::Count all) : all_(std::move(all)) {}

  /// The count of the client's connections. `connections` is the number of all open connections.
  ConnectionTicket::Count of(const PeerAddress& peer, std::size_t connections);

  /// The number of clients in the table.
  [[nodiscard]] std::size_t size() const { return counts_.size(); }

  /// When the table holds this many clients more than twice the number of open connections, those
  /// without a connection are removed.
  static constexpr std::size_t kKept = 1024;

 private:
  const ConnectionTicket::Count all_;
  std::map<std::array<std::uint8_t, 16>, ConnectionTicket::Count> counts_;
};

}  // namespace sluice
