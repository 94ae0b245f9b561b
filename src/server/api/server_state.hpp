#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "server/catalog/definition.hpp"
#include "server/handlers/handler_run.hpp"
#include "server/host/definition_host.hpp"
#include "sluice/server.hpp"

namespace sluice::detail {

/// The definition of a sluice::Server, and the hosts that serve it. Thread-safe.
class ServerState {
 public:
  explicit ServerState(ServerDefinition definition, HandlerRun::Options runs)
      : definition_(std::move(definition)), runs_(std::move(runs)) {}

  /// How its handlers run.
  [[nodiscard]] const HandlerRun::Options& runs() const { return runs_; }
  /// A copy of the current definition.
  [[nodiscard]] ServerDefinition definition() const;

  /// Returns what `Host::start(definition, options...)` makes. Pass it to forget() before you
  /// destroy it.
  template <class Host, class... Options>
  Result<std::unique_ptr<Host>> start(Options... options) {
    const std::lock_guard lock(mutex_);
    Result<std::unique_ptr<Host>> host = Host::start(definition_, std::move(options)...);
    const std::lock_guard hosts_lock(hosts_mutex_);
    if (host) hosts_.push_back(host->get());
    return host;
  }
  void forget(DefinitionHost& host);
  [[nodiscard]] bool is_served() const;

  /// Applies `change` to the definition, and to every host that serves it. If `change` returns
  /// true, clients there are told of `kinds`. Returns what `change` returns. While the definition
  /// is being served, an exception of `change`, or std::invalid_argument for a definition that
  /// cannot be served, leaves everything as it is. `change` must not destroy entries, but move them
  /// out.
  bool change(const std::vector<Change::Kind>& kinds,
              const std::function<bool(ServerDefinition& definition)>& change);
  /// Tells clients where the definition is being served. Never waits for a change().
  void publish(const Change& change);
  /// From now on, what handlers of `mounted` announce of resources and elicitations goes to the
  /// clients of `mounting`, too. That includes the handlers that `mounted` has from others,
  /// whether or not `mounted` still exists.
  static void connect(const std::shared_ptr<ServerState>& mounted,
                      const std::shared_ptr<ServerState>& mounting);

 private:
  using States = std::vector<std::weak_ptr<ServerState>>;

  void publish_here(const Change& change);
  /// Adds `state` to one of the lists below, unless that has it.
  void add(States ServerState::* list, const std::shared_ptr<ServerState>& state);
  [[nodiscard]] States copy_of(States ServerState::* list) const;

  mutable std::mutex mutex_;  // held during a change; taken before hosts_mutex_
  ServerDefinition definition_;
  const HandlerRun::Options runs_;
  mutable std::mutex hosts_mutex_;
  std::vector<DefinitionHost*> hosts_;
  States mounted_;  // whose handlers this server has
  States
      mounting_;  // which have handlers of this server; each is told directly, not through another
};

}  // namespace sluice::detail
