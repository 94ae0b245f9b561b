#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

#include "core/error.hpp"
#include "core/executor.hpp"
#include "proxy/clients/proxy_client.hpp"
#include "sluice/principal.hpp"
#include "stream/client_quota.hpp"

namespace sluice {

/// Clients of requests that belong to no session and no connection. A client serves one request at
/// a time, so nothing that a server says can reach another caller. Afterwards it waits for another
/// request of the same caller, or of any caller if no server keeps anything for it: 2026-07-28 over
/// HTTP has neither sessions nor connections of a client. A principal that several may share is a
/// caller of one request only. Belongs to its loop; owned by shared pointers.
class ClientPool final : public std::enable_shared_from_this<ClientPool> {
 public:
  using Make = std::function<std::shared_ptr<ProxyClient>(const ClientIdentity& identity)>;

  /// `shares_principals`: whoever has the same principal is the same caller.
  ClientPool(Executor& loop, Make make, bool shares_principals)
      : loop_(&loop), make_(std::move(make)), shares_principals_(shares_principals) {}
  ~ClientPool();
  ClientPool(const ClientPool&) = delete;
  ClientPool& operator=(const ClientPool&) = delete;

  /// A client for one request, which has it until the pointer is destroyed. Error: kBusy, if
  /// kMaxClients are in use, or kMaxOfOne by this caller.
  Result<std::shared_ptr<ProxyClient>> take(const Principal& principal,
                                            const ClientIdentity& identity);
  /// From now on `client`, which stays with its request, does not count as in use. Returns false if
  /// it did not before.
  bool vacate(const ProxyClient& client);
  /// Undoes vacate(). Errors: as of take().
  Result<void> occupy(const ProxyClient& client, const Principal& principal);

  static constexpr std::size_t kMaxClients = 256;  // in use
  static constexpr std::size_t kMaxOfOne = 128;    // of them by a caller with a key of its own
  static constexpr std::size_t kMaxIdle = 64;      // that wait
  static constexpr Duration kIdleTime = std::chrono::minutes(1);

 private:
  struct Idle {
    std::shared_ptr<ProxyClient> client;
    std::string principal;  // empty: no caller has it for itself
    TimePoint since;
  };

  struct Place {
    const ProxyClient* client;
    ClientQuota::Unit unit;
  };

  /// Errors: as of take().
  Result<ClientQuota::Unit> place_for(const Principal& principal);
  void give_back(std::shared_ptr<ProxyClient> client, std::string principal);
  void sweep();

  Executor* loop_;
  Make make_;
  bool shares_principals_;
  ClientQuota quota_{kMaxOfOne};
  std::vector<Place> places_;  // of the clients in use, in no order
  std::vector<Idle> idle_;     // the newest last
  Executor::TimerId timer_ = 0;
};

}  // namespace sluice
