#include "proxy/parked_calls.hpp"

#include <utility>

#include "proxy/forwarded_call.hpp"

namespace sluice {

ParkedCalls::~ParkedCalls() {
  for (const auto& [key, parked] : calls_) loop_->cancel(parked.timer);
}

void ParkedCalls::add(const std::string& key, std::shared_ptr<ForwardedCall> call) {
  const Executor::TimerId timer =
      loop_->schedule_at(loop_->clock().now() + kAnswerTime, [this, key] { give_up(key); });
  calls_.insert_or_assign(key, Parked{std::move(call), timer});
}

std::shared_ptr<ForwardedCall> ParkedCalls::take(const std::string& key) {
  const auto found = calls_.find(key);
  if (found == calls_.end()) return nullptr;
  loop_->cancel(found->second.timer);
  std::shared_ptr<ForwardedCall> call = std::move(found->second.call);
  calls_.erase(found);
  return call;
}

void ParkedCalls::give_up(const std::string& key) {
  if (const auto call = take(key)) call->give_up();
}

void ParkedCalls::clear() {
  while (!calls_.empty()) give_up(calls_.begin()->first);
}

}  // namespace sluice
