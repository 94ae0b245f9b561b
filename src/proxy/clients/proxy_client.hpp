#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/executor.hpp"
#include "proxy/upstream/change_feed.hpp"
#include "proxy/upstream/upstream_session.hpp"
#include "server/dispatch/listen.hpp"
#include "server/notifications/change_notifier.hpp"
#include "server/sessions/session.hpp"

namespace sluice {

/// The sessions with all servers of one client, or of several if it is shared, and what those
/// clients hear outside of their requests. Belongs to its loop; owned by shared pointers.
class ProxyClient final : public std::enable_shared_from_this<ProxyClient> {
 public:
  ProxyClient(Executor& loop, const std::vector<std::shared_ptr<Upstream>>& upstreams,
              ClientIdentity identity, bool is_shared = false);
  ~ProxyClient();
  ProxyClient(const ProxyClient&) = delete;
  ProxyClient& operator=(const ProxyClient&) = delete;

  [[nodiscard]] Executor& loop() const { return *loop_; }
  [[nodiscard]] const ClientIdentity& identity() const { return identity_; }
  /// In the order of the servers.
  [[nodiscard]] std::size_t size() const { return parts_.size(); }
  [[nodiscard]] UpstreamSession& part(std::size_t index) const;
  /// The same for who makes a request, and owns its session until that has ended: another may take
  /// its place.
  [[nodiscard]] const std::shared_ptr<UpstreamSession>& shared_part(std::size_t index) const;
  /// Calls UpstreamSession::charge_to() of each part.
  void charge_to(const UpstreamSession::Payer& payer);
  /// Whether a server may keep something for this client.
  [[nodiscard]] bool has_state() const;
  /// Whether calls of a server that was reached can become tasks.
  [[nodiscard]] bool makes_tasks() const;

  /// A client has `session`, and hears of changes there as long as the session lives.
  void serve(const std::shared_ptr<Session>& session, ChangeNotifier& changes);
  /// To be called when a session has subscribed to something, no longer does, or has gone: lets
  /// each server tell of what somebody wants to hear.
  void want();
  /// The least severe log messages that a client wants of the server. A shared session has those
  /// that any client has wanted.
  void set_level(std::size_t index, LoggingLevel level);
  /// Tells `listener` of the changes that `filter` names until the object that is returned is
  /// destroyed.
  std::shared_ptr<void> listen(const SubscriptionFilter& filter,
                               std::weak_ptr<ChangeListener> listener);

  /// Refuses what the servers ask outside of calls.
  void refuse_questions();
  /// The same for what a client was asked whose session has gone.
  void forget_asked();
  /// Ends all sessions. Nothing else may be called afterwards.
  void close();

 private:
  struct Part;
  struct Listening {
    SubscriptionFilter filter;
    std::weak_ptr<ChangeListener> listener;
  };

  void tell(const Change& change);
  void tell_sessions(const Change& change);
  /// Tells those who listen of everything that may have changed since they began, because their
  /// subscriptions were acknowledged before the server knew of them. `missed`: also the clients of
  /// the sessions, which may have changed something by themselves.
  void catch_up(const Part& part, const ChangeFeed::Unheard& missed);
  void say(const std::shared_ptr<Session>& session, const std::string& state_of,
           std::string message);
  /// Those that live, the oldest first.
  [[nodiscard]] std::vector<std::shared_ptr<Session>> sessions() const;

  Executor* loop_;
  ClientIdentity identity_;
  const bool is_shared_;
  std::vector<std::unique_ptr<Part>> parts_;
  std::vector<std::weak_ptr<Session>> sessions_;  // of clients; some may be gone
  ChangeNotifier* changes_ = nullptr;             // set with the first of them
  std::map<std::uint64_t, Listening> listening_;
  std::uint64_t last_listening_ = 0;
  bool is_closed_ = false;
};

}  // namespace sluice
