#pragma once

#include <memory>
#include <string>
#include <utility>

#include "proxy/upstream/feed_owner.hpp"
#include "proxy/upstream/listening.hpp"
#include "proxy/upstream/subscriptions.hpp"

namespace sluice {

/// Makes a server of either era tell of the changes that its client wants to hear of, in one
/// session after the other. Changes of lists come unasked in the legacy era. Belongs to its loop.
class ChangeFeed final {
 public:
  using Unheard = Listening::Unheard;

  /// `owner` outlives this.
  ChangeFeed(Executor& loop, std::shared_ptr<const Upstream> upstream, FeedOwner& owner)
      : loop_(&loop), upstream_(std::move(upstream)), owner_(&owner) {}
  ChangeFeed(const ChangeFeed&) = delete;
  ChangeFeed& operator=(const ChangeFeed&) = delete;

  /// `session` is open, and new to the server. Null: there is none.
  void attach(std::shared_ptr<ClientSession> session);
  void want(bool lists, Uris uris);
  /// Everything that is wanted.
  [[nodiscard]] Unheard wanted() const { return {.lists = lists_, .uris = *uris_}; }
  /// See Listening; false if the server is of the legacy era, or there is no session.
  [[nodiscard]] bool is_acknowledged_by(const json::object& params) const {
    return listening_ != nullptr && listening_->is_acknowledged_by(params);
  }
  /// See Listening; nothing in the same cases.
  Unheard take_unheard() { return listening_ == nullptr ? Unheard() : listening_->take_unheard(); }
  /// See Subscriptions; for a legacy server.
  void adopt(const std::string& uri) {
    if (subscriptions_ != nullptr) subscriptions_->adopt(uri);
  }
  void disown(const std::string& uri) {
    if (subscriptions_ != nullptr) subscriptions_->disown(uri);
  }

 private:
  Executor* loop_;
  std::shared_ptr<const Upstream> upstream_;
  FeedOwner* owner_;
  bool lists_ = false;  // what is wanted
  std::shared_ptr<const Uris> uris_ = std::make_shared<Uris>();
  /// The session, whose server is of one era or the other, or null.
  std::shared_ptr<ClientSession> session_;
  std::shared_ptr<Subscriptions> subscriptions_;
  std::shared_ptr<Listening> listening_;
};

}  // namespace sluice
