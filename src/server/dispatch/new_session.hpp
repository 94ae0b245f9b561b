#pragma once

#include <memory>
#include <optional>
#include <utility>

#include "server/channel/request_watch.hpp"
#include "server/sessions/session_registry.hpp"

namespace sluice {

/// A session whose `initialize` is not answered yet. If that is refused or never answered, the
/// session is removed, because no client will use it.
class NewSession final : public RequestWatch {
 public:
  /// `session` may be null. `sessions` outlives this.
  NewSession(SessionRegistry& sessions, std::shared_ptr<Session> session)
      : sessions_(&sessions), session_(std::move(session)) {}
  ~NewSession() override {
    if (session_ != nullptr) sessions_->remove(*session_);
  }
  NewSession(const NewSession&) = delete;
  NewSession& operator=(const NewSession&) = delete;

  void watch(PendingRequest& /*call*/) override {}
  void end(std::optional<int> error) override {
    const std::shared_ptr<Session> session = std::exchange(session_, nullptr);
    if (error && session != nullptr) sessions_->remove(*session);
  }

 private:
  SessionRegistry* sessions_;
  std::shared_ptr<Session> session_;  // null once it needs no removal
};

}  // namespace sluice
