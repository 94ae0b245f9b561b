#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "auth/access_policy.hpp"
#include "core/error.hpp"
#include "core/manual_executor.hpp"
#include "server/calls/task_store.hpp"
#include "server/dispatch/service.hpp"
#include "server/host/definition_host.hpp"
#include "server/host/handler_pools.hpp"
#include "stream/stream_manager.hpp"

namespace sluice::testing {

/// A server with one loop, which runs when the owner says so, and without a network. Its limits are
/// those of ServerHost's defaults. Belongs to the thread that made it, except for the functions of
/// DefinitionHost.
class InMemoryServer final : public DefinitionHost {
 public:
  /// Error: the definition cannot be served.
  static Result<std::unique_ptr<InMemoryServer>> start(ServerDefinition definition);
  /// Ends everything. Connections must have been closed.
  ~InMemoryServer() override;
  InMemoryServer(const InMemoryServer&) = delete;
  InMemoryServer& operator=(const InMemoryServer&) = delete;

  [[nodiscard]] ManualExecutor& loop() { return loop_; }
  [[nodiscard]] Service& service() { return *service_; }
  /// Whether worker threads have something to do.
  [[nodiscard]] bool has_workers_busy() const;
  /// Lets `time` pass.
  void advance(Duration time);

  Result<void> replace(ServerDefinition definition, std::vector<Change::Kind> told) override;
  void publish(const Change& change) override;

 private:
  explicit InMemoryServer(std::shared_ptr<const Catalog> catalog);

  ManualExecutor loop_;
  std::shared_ptr<const Catalog> first_;
  HandlerPools handler_pools_;
  ResultWriter results_;
  AccessPolicy access_;
  StreamPolicy policy_;
  ClientQuota calls_;
  SessionRegistry sessions_;
  StreamManager streams_;
  ChangeNotifier changes_;
  TaskStore tasks_;
  std::optional<Service> service_;
};

}  // namespace sluice::testing
