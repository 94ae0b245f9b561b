#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
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

  /// Returns what `Host::start(definition, options...)` makes, which must be forgotten before it is
  /// destroyed.
  template <class Host, class... Options>
  Result<std::unique_ptr<Host>> start(Options... options) {
    const std::lock_guard lock(mutex_);
    Result<std::unique_ptr<Host>> host = Host::start(definition_, std::move(options)...);
    if (host) hosts_.push_back(host->get());
    return host;
  }
  void forget(DefinitionHost& host);
  [[nodiscard]] bool is_served() const;

  /// Applies `change` to the definition, also where it is being served. If `change` returns true,
  /// clients there are told of `kind`. Returns what `change` returns. While the definition is being
  /// served, an exception of `change`, or std::invalid_argument for a definition that cannot be
  /// served, leaves everything as it is. `change` must not destroy entries, but move them out.
  bool change(std::optional<Change::Kind> kind,
              const std::function<bool(ServerDefinition& definition)>& change);
  void publish(const Change& change);

 private:
  mutable std::mutex mutex_;
  ServerDefinition definition_;
  const HandlerRun::Options runs_;
  std::vector<DefinitionHost*> hosts_;
};

}  // namespace sluice::detail
