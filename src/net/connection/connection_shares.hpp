#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <utility>

#include "net/connection/connection_ticket.hpp"
#include "net/loop/peer_address.hpp"

namespace sluice {

struct ConnectionLimits {
  std::size_t all = 100'000;
  /// Of one client, which never has more than are free. 0: a quarter of `all`.
  std::size_t per_client = 0;
  /// Whether an address stands for many clients, as a proxy's does. Then it has no limit of its
  /// own.
  std::function<bool(const PeerAddress&)> stands_for_many = {};
  /// Whether a loopback address has a limit of its own. It may be a proxy's.
  bool counts_loopback = false;
};

/// Counts the connections of each client (PeerAddress::network()). Not thread-safe, but the counts
/// are.
class ConnectionShares {
 public:
  /// Connections that are counted here are also counted in `all`.
  ConnectionShares(ConnectionTicket::Count all, ConnectionLimits limits)
      : all_(std::move(all)), limits_(std::move(limits)) {}

  /// The count of the client's connections, or of all if it has no limit of its own. `connections`
  /// is the number of all open connections.
  ConnectionTicket::Count of(const PeerAddress& peer, std::size_t connections);
  /// Whether whoever has the count `of_client` may have one connection more.
  [[nodiscard]] bool has_room(const ConnectionTicket::Count& of_client,
                              std::size_t connections) const;
  /// Whether `count` is that of one client, and not of all.
  [[nodiscard]] bool is_of_one(const ConnectionTicket::Count& count) const { return count != all_; }

  /// The number of clients in the table.
  [[nodiscard]] std::size_t size() const { return counts_.size(); }

  /// When the table holds this many clients more than twice the number of open connections, those
  /// without a connection are removed.
  static constexpr std::size_t kKept = 1024;

 private:
  const ConnectionTicket::Count all_;
  const ConnectionLimits limits_;
  std::map<std::array<std::uint8_t, 16>, ConnectionTicket::Count> counts_;
};

}  // namespace sluice
