#include "server/server_state.hpp"

#include <algorithm>
#include <stdexcept>

namespace sluice::detail {

Result<std::unique_ptr<ServerHost>> ServerState::start(ServerHostOptions options) {
  const std::lock_guard lock(mutex_);
  Result<std::unique_ptr<ServerHost>> host = ServerHost::start(definition_, std::move(options));
  if (host) hosts_.push_back(host->get());
  return host;
}

void ServerState::forget(ServerHost& host) {
  const std::lock_guard lock(mutex_);
  std::erase(hosts_, &host);
}

ServerDefinition ServerState::definition() const {
  const std::lock_guard lock(mutex_);
  return definition_;
}

void ServerState::change(std::optional<Change::Kind> kind,
                         const std::function<void(ServerDefinition& definition)>& change) {
  const std::lock_guard lock(mutex_);
  if (hosts_.empty()) return change(definition_);
  ServerDefinition next = definition_;
  change(next);
  for (ServerHost* const host : hosts_) {
    if (Result<void> replaced = host->replace(next, kind); !replaced) {
      throw std::invalid_argument(replaced.error().message);
    }
  }
  definition_ = std::move(next);
}

void ServerState::publish(const Change& change) {
  const std::lock_guard lock(mutex_);
  for (ServerHost* const host : hosts_) host->publish(change);
}

Complete ServerState::with_completer(const std::string& of, std::string argument,
                                     Complete handler) {
  Completers& known = completers_[of];
  known.insert_or_assign(std::move(argument), std::move(handler));
  return Complete::Deferred([known](const TypedArgument& typed,
                                    std::shared_ptr<PendingRequest> request,
                                    const Complete::Then& then) -> Result<void> {
    const auto found = known.find(typed.name);
    if (found == known.end()) {
      then(*request, ArgumentCompletion());
      return {};
    }
    const auto* const immediate = std::get_if<Complete::Immediate>(&found->second.answer);
    if (immediate == nullptr) {
      return std::get<Complete::Deferred>(found->second.answer)(typed, std::move(request), then);
    }
    then(*request, (*immediate)(typed));
    return {};
  });
}

}  // namespace sluice::detail
