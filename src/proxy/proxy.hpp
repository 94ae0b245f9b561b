#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/executor.hpp"
#include "proxy/calls/parked_calls.hpp"
#include "proxy/clients/client_pool.hpp"
#include "proxy/clients/proxy_client.hpp"
#include "proxy/clients/shared_client.hpp"
#include "proxy/upstream/upstream.hpp"
#include "server/dispatch/forwarder.hpp"

namespace sluice {

struct ProxyOptions {
  /// The servers. With several, each has a prefix of its own (names.hpp); the only one needs none.
  std::vector<UpstreamOptions> upstreams = {};
  /// Whether callers of one principal are one client even if the principal is not isolated.
  bool shares_principals = false;
  /// The most programs that run for one client at a time, as a ClientQuota counts clients.
  /// Programs that all clients share are not counted.
  std::size_t programs_per_client = kProgramsPerClient;
  static constexpr std::size_t kProgramsPerClient = 128;
  /// Whether all clients share one session with each server, which stays open when they go. The
  /// servers are told that they may ask for elicitation and for sampling; a question that the
  /// client of the call has not declared is refused.
  bool has_one_session = false;
  /// With one session: what to do on the loop when no client has used it for a while.
  IdleEnd idle = {};
};

/// Other servers as the features of this one. Each client has its own sessions with them: for the
/// time of its session or its connection, or for one request if it has neither (ClientPool); or
/// all share one (SharedClient), and only ids, progress and cancellations are each client's own.
/// The server in front speaks to clients of every era, and a ClientSession to the servers, so that
/// neither side knows what the other speaks. All of it is on one loop, that of the first request:
/// the server must have no other. Owned by shared pointers.
class Proxy final : public Forwarder, public std::enable_shared_from_this<Proxy> {
 public:
  explicit Proxy(ProxyOptions options);
  ~Proxy() override;
  Proxy(const Proxy&) = delete;
  Proxy& operator=(const Proxy&) = delete;

  Result<void> forward(const ForwardedMessage& message,
                       const std::shared_ptr<PendingRequest>& call) override;
  Result<std::shared_ptr<void>> listen(const SubscriptionFilter& filter,
                                       const std::shared_ptr<PendingRequest>& call,
                                       std::weak_ptr<ChangeListener> listener) override;
  void notify(const ForwardedMessage& message) override;
  [[nodiscard]] std::optional<std::string> known_uri(const std::string& uri) const override;

  /// With one session: opens it now, on `loop`, rather than for the first request. `done` is called
  /// once, later: with what the first server says about itself, or with the error that a client
  /// would get. It is not called if close() comes first.
  void open(Executor& loop, std::function<void(Result<json::object>)> done);
  /// Ends all sessions with the servers in their orderly way; call on the loop. `done` is called
  /// once, now or within seconds. Refuses whatever follows.
  void close(std::function<void()> done);

  /// How many different clients the requests of a connection without a session may name. Each has
  /// its own sessions with the servers as long as the connection lasts; further ones are kBusy.
  static constexpr std::size_t kMaxClientsOfConnection = 8;

 private:
  void begin_on(Executor& loop);
  std::shared_ptr<ProxyClient> make_client(ClientIdentity identity, bool is_shared = false);
  /// Of a session or a connection that has none yet.
  std::shared_ptr<ProxyClient> new_client(ClientIdentity identity);
  Result<std::shared_ptr<ProxyClient>> client_of(const std::shared_ptr<Session>& session,
                                                 const json::object& params, PendingRequest& call);
  Result<std::shared_ptr<ProxyClient>> uncharged_client_of(const std::shared_ptr<Session>& session,
                                                           const json::object& params,
                                                           PendingRequest& call);
  void describe(const ForwardedMessage& message, std::shared_ptr<ProxyClient> client,
                const std::shared_ptr<PendingRequest>& call);
  Result<void> list(const ForwardedMessage& message, std::shared_ptr<ProxyClient> client,
                    const std::shared_ptr<PendingRequest>& call);
  Result<void> set_level(const ForwardedMessage& message, ProxyClient& client,
                         PendingRequest& call);
  Result<void> subscribe(const ForwardedMessage& message, std::shared_ptr<ProxyClient> client,
                         std::size_t index, json::object params,
                         const std::shared_ptr<PendingRequest>& call);
  /// The index of the server that `params` name, whose prefix is taken out; nothing if there is
  /// none.
  [[nodiscard]] std::optional<std::size_t> route(std::string_view method,
                                                 json::object& params) const;

  const std::shared_ptr<EndingSessions> ending_ = std::make_shared<EndingSessions>();
  std::vector<std::shared_ptr<Upstream>> upstreams_;
  const bool shares_principals_;
  const bool has_one_session_;
  const std::shared_ptr<ClientQuota> programs_;
  IdleEnd idle_;
  Executor* loop_ = nullptr;           // null before the first request, as is the pool
  std::optional<ParkedCalls> parked_;  // set with them
  std::vector<std::weak_ptr<ProxyClient>> clients_;  // some may be gone
  std::size_t sweep_at_ = 64;  // the number of them at which those are dropped
  std::shared_ptr<ClientPool> pool_;
  std::shared_ptr<SharedClient> shared_;  // null unless there is one session
  IdentityReader identities_;
  bool is_closed_ = false;
};

}  // namespace sluice
