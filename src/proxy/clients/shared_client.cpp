#include "proxy/clients/shared_client.hpp"

#include <utility>

namespace sluice {

SharedClient::~SharedClient() {
  if (timer_ != 0) loop_->cancel(timer_);
}

std::shared_ptr<ProxyClient> SharedClient::join() {
  ++users_;
  if (timer_ != 0) loop_->cancel(std::exchange(timer_, 0));
  return {client_.get(), [weak = weak_from_this(), client = client_](ProxyClient*) {
            if (const auto self = weak.lock()) self->left();
          }};
}

void SharedClient::left() {
  --users_;
  // In a later turn, when the session of the client that left is gone.
  loop_->post([weak = weak_from_this()] {
    const auto self = weak.lock();
    if (self == nullptr) return;
    self->client_->want();
    self->client_->forget_asked();
    self->client_->refuse_questions();
  });
  if (users_ == 0) wait();
}

void SharedClient::wait() {
  if (idle_.after <= Duration()) return;
  timer_ = loop_->schedule_at(loop_->clock().now() + idle_.after, [weak = weak_from_this()] {
    const auto self = weak.lock();
    if (self == nullptr) return;
    self->wait();
    self->idle_.run();
  });
}

}  // namespace sluice
