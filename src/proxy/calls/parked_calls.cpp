#include "proxy/calls/parked_calls.hpp"

#include <algorithm>
#include <string_view>

#include "core/sharing/client.hpp"
#include "proxy/calls/forwarded_call.hpp"
#include "proxy/clients/client_pool.hpp"
#include "rpc/error_codes.hpp"
#include "server/calls/pending_request.hpp"

namespace sluice {

ParkedCalls::Key ParkedCalls::key_of(PendingRequest& call) {
  return {.principal = call.principal().id, .rounds = call.idempotency_key()};
}

ParkedCalls::~ParkedCalls() {
  for (const auto& [key, parked] : calls_) loop_->cancel(parked.timer);
}

void ParkedCalls::add(const Key& key, std::shared_ptr<ForwardedCall> call) {
  if (calls_.size() >= kMaxCalls) make_room();
  const auto pool = pool_.lock();
  const bool has_left_place = pool != nullptr && pool->vacate(call->client());
  const Executor::TimerId timer =
      loop_->schedule_at(loop_->clock().now() + kAnswerTime, [this, key] { give_up(key); });
  calls_.insert_or_assign(key, Parked{.call = std::move(call),
                                      .client = client_of(key.principal),
                                      .number = ++last_number_,
                                      .has_left_place = has_left_place,
                                      .timer = timer});
}

void ParkedCalls::make_room() {
  std::map<std::string_view, std::size_t> counts;
  for (const auto& [key, parked] : calls_) ++counts[parked.client];
  const std::string_view most =
      std::ranges::max_element(counts, {}, [](const auto& each) { return each.second; })->first;
  const auto age = [most](const auto& each) {
    return std::pair(each.second.client != most, each.second.number);
  };
  const Key oldest = std::ranges::min_element(calls_, {}, age)->first;
  give_up(oldest);
}

Result<std::shared_ptr<ForwardedCall>> ParkedCalls::take(PendingRequest& next) {
  const auto found = calls_.find(key_of(next));
  if (found == calls_.end()) {
    return fail(kInvalidParams,
                "Invalid params: the call that requestState belongs to is not open any more; make "
                "it again without");
  }
  const auto pool = pool_.lock();
  if (found->second.has_left_place && pool != nullptr) {
    const Result<void> has_place = pool->occupy(found->second.call->client(), next.principal());
    if (!has_place) return std::unexpected(has_place.error());
  }
  return remove(found);
}

std::shared_ptr<ForwardedCall> ParkedCalls::remove(Calls::iterator parked) {
  loop_->cancel(parked->second.timer);
  std::shared_ptr<ForwardedCall> call = std::move(parked->second.call);
  calls_.erase(parked);
  return call;
}

void ParkedCalls::give_up(const Key& key) {
  const auto found = calls_.find(key);
  if (found != calls_.end()) remove(found)->give_up();
}

void ParkedCalls::clear() {
  while (!calls_.empty()) remove(calls_.begin())->give_up();
}

}  // namespace sluice
