#include "proxy/upstream/change_feed.hpp"

namespace sluice {

void ChangeFeed::attach(std::shared_ptr<ClientSession> session) {
  if (subscriptions_ != nullptr) {
    session == session_ ? subscriptions_->forget() : subscriptions_->leave();
  }
  subscriptions_ = nullptr;
  if (listening_ != nullptr) listening_->leave();
  listening_ = nullptr;
  session_ = std::move(session);
  if (session_ == nullptr) return;
  if (session_->server().revision->era == Era::modern) {
    listening_ = std::make_shared<Listening>(*loop_, session_, *owner_);
    listening_->want(lists_, uris_);
  } else {
    subscriptions_ = std::make_shared<Subscriptions>(*loop_, upstream_, session_, *owner_);
    subscriptions_->want(uris_, false);
  }
}

void ChangeFeed::want(bool lists, Uris uris) {
  lists_ = lists;
  uris_ = std::make_shared<Uris>(std::move(uris));
  if (subscriptions_ != nullptr) subscriptions_->want(uris_, true);
  if (listening_ != nullptr) listening_->want(lists_, uris_);
}

}  // namespace sluice
