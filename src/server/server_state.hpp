#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "server/definition.hpp"
#include "server/handler_run.hpp"
#include "server/server_host.hpp"
#include "sluice/server.hpp"

namespace sluice::detail {

/// What a sluice::Server has been told.
struct ServerState {
  using Completers = std::map<std::string, Complete, std::less<>>;  // by argument

  ServerDefinition definition;
  HandlerRun::Options runs;
  std::map<std::string, std::shared_ptr<Completers>> completers;  // by what they complete

  // Where it is served. Thread-safe.
  void remember(ServerHost& host);
  void forget(ServerHost& host);
  void publish(const Change& change);

  /// Adds `handler` for `argument` to those behind `slot`.
  void complete(Complete& slot, const std::string& of, std::string argument, Complete handler);

 private:
  std::mutex mutex_;
  std::vector<ServerHost*> hosts_;
};

}  // namespace sluice::detail
