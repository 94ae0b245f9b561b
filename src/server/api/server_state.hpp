#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "server/catalog/definition.hpp"
#include "server/handlers/handler_run.hpp"
#include "server/host/server_host.hpp"
#include "sluice/server.hpp"

namespace sluice::detail {

/// What a sluice::Server has been told, and where it is served. Thread-safe.
class ServerState {
 public:
  explicit ServerState(ServerDefinition definition, HandlerRun::Options runs)
      : definition_(std::move(definition)), runs_(std::move(runs)) {}

  /// How its handlers run.
  [[nodiscard]] const HandlerRun::Options& runs() const { return runs_; }
  /// What it offers now.
  [[nodiscard]] ServerDefinition definition() const;

  Result<std::unique_ptr<ServerHost>> start(ServerHostOptions options);
  void forget(ServerHost& host);

  /// Changes the definition, wherever it is served too, and tells the clients there of `kind`, if
  /// `change` says that it has changed anything; returns whether it has. While it is served, what
  /// `change` throws, and std::invalid_argument for what cannot be served, leaves everything as it
  /// was.
  bool change(std::optional<Change::Kind> kind,
              const std::function<bool(ServerDefinition& definition)>& change);
  void publish(const Change& change);

 private:
  mutable std::mutex mutex_;
  ServerDefinition definition_;
  const HandlerRun::Options runs_;
  std::vector<ServerHost*> hosts_;
};

}  // namespace sluice::detail
