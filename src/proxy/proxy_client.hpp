#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/executor.hpp"
#include "proxy/change_feed.hpp"
#include "proxy/upstream_session.hpp"
#include "server/dispatch/listen.hpp"
#include "server/notifications/change_notifier.hpp"
#include "server/sessions/session.hpp"

namespace sluice {

/// One client of a proxy: its sessions with the servers, which no other client uses, and what it
/// hears from them outside of its requests. Belongs to its loop; owned by shared pointers.
class ProxyClient final : public std::enable_shared_from_this<ProxyClient> {
 public:
  ProxyClient(Executor& loop, const std::vector<std::shared_ptr<Upstream>>& upstreams,
              ClientIdentity identity);
  ~ProxyClient();
  ProxyClient(const ProxyClient&) = delete;
  ProxyClient& operator=(const ProxyClient&) = delete;

  [[nodiscard]] Executor& loop() const { return *loop_; }
  [[nodiscard]] const ClientIdentity& identity() const { return identity_; }
  /// In the order of the servers.
  [[nodiscard]] std::size_t size() const { return parts_.size(); }
  [[nodiscard]] UpstreamSession& part(std::size_t index) const;
  /// Whether a server may keep something for this client.
  [[nodiscard]] bool has_state() const;
  /// Whether calls of a server that was reached can become tasks.
  [[nodiscard]] bool makes_tasks() const;

  /// The client has `session`, and hears of changes there.
  void serve(const std::shared_ptr<Session>& session, ChangeNotifier& changes);
  /// A resource that the client of the session wants to hear of, by its server's own URI, or no
  /// longer wants to.
  void subscribe(std::size_t index, const std::string& uri);
  void unsubscribe(std::size_t index, const std::string& uri);
  /// Tells `listener` of the changes that `filter` names until the object that is returned is
  /// destroyed.
  std::shared_ptr<void> listen(const SubscriptionFilter& filter,
                               std::weak_ptr<ChangeListener> listener);
  /// Tells the client that the lists of its servers may have changed.
  void lists_changed();

  /// Refuses what the servers ask outside of calls.
  void refuse_questions();
  /// Ends all sessions. `done` is called once, later. Nothing else may be called afterwards.
  void close(const std::function<void()>& done);

 private:
  struct Part;
  struct Listening {
    SubscriptionFilter filter;
    std::weak_ptr<ChangeListener> listener;
  };

  void tell(const Change& change);
  void tell_session(const Change& change);
  /// Tells those who listen of everything that may have changed since they began, because their
  /// subscriptions were acknowledged before the server knew of them. `is_late`: also the client of
  /// the session, which may have changed something by itself.
  void catch_up(const Part& part, bool is_late);
  void say(const std::string& state_of, std::string message);
  void want();

  Executor* loop_;
  ClientIdentity identity_;
  std::vector<std::unique_ptr<Part>> parts_;
  std::weak_ptr<Session> session_;
  ChangeNotifier* changes_ = nullptr;  // set with the session
  std::map<std::uint64_t, Listening> listening_;
  std::uint64_t last_listening_ = 0;
  bool is_closed_ = false;
};

}  // namespace sluice
