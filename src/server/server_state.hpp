#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "server/definition.hpp"
#include "server/handler_run.hpp"
#include "server/server_host.hpp"
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

  /// Changes the definition, wherever it is served too, and tells the clients there of `kind`.
  /// While it is served, what `change` throws, and std::invalid_argument for what cannot be served,
  /// leaves everything as it was.
  void change(std::optional<Change::Kind> kind,
              const std::function<void(ServerDefinition& definition)>& change);
  void publish(const Change& change);

  /// What completes `argument` with `handler`, and the others of `of` as before. For change().
  Complete with_completer(const std::string& of, std::string argument, Complete handler);
  void forget_completers(const std::string& of) { completers_.erase(of); }

 private:
  using Completers = std::map<std::string, Complete, std::less<>>;  // by argument

  mutable std::mutex mutex_;
  ServerDefinition definition_;
  const HandlerRun::Options runs_;
  std::map<std::string, Completers> completers_;  // by what they complete
  std::vector<ServerHost*> hosts_;
};

}  // namespace sluice::detail
