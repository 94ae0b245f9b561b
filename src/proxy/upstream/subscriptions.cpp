#include "proxy/upstream/subscriptions.hpp"

#include <algorithm>
#include <iterator>
#include <string_view>
#include <utility>

#include "core/log/log.hpp"
#include "net/http/status_codes.hpp"
#include "proxy/upstream/upstream.hpp"
#include "rpc/error_codes.hpp"

namespace sluice {
namespace {

/// The most requests under way: other requests need room beside them.
constexpr std::size_t kMostUnderWay = 64;
/// How long the answer to one may take.
constexpr Duration kPatience = std::chrono::seconds(30);

/// Whether a request that has failed so may be answered otherwise later.
bool is_passing(int code) {
  // What HTTP says is no answer of the server.
  const bool is_of_http = code == kNotFound || code >= kInternalServerError;
  return code == kLimitReached || code == kTimedOut || code == kTooManyRequests ||
         code == kRequestTimedOut || is_of_http;
}

}  // namespace

Subscriptions::~Subscriptions() {
  if (timer_ != 0) loop_->cancel(timer_);
}

void Subscriptions::forget() {
  leave();
  for (const auto& [uri, number] : std::exchange(under_way_, {})) session_->cancel(number);
}

void Subscriptions::want(std::shared_ptr<const Uris> uris, bool may_renew) {
  // What is wanted otherwise now need not wait.
  std::erase_if(failed_,
                [&](const std::string& uri) { return is_wanted(uri) != uris->contains(uri); });
  for (const std::string& uri : *uris) {
    const bool is_taken = told_.contains(uri) && !under_way_.contains(uri);
    if (!is_wanted(uri) && !is_taken) untaken_.insert(uri);
  }
  uris_ = std::move(uris);
  std::erase_if(untaken_, [this](const std::string& uri) { return !is_wanted(uri); });
  may_renew_ = may_renew;
  due_.clear();
  std::ranges::set_symmetric_difference(*uris_, told_, std::inserter(due_, due_.end()));
  due_.insert(unknown_.begin(), unknown_.end());
  for (const std::string& uri : failed_) due_.erase(uri);
  ask_next();
}

void Subscriptions::ask_next() {
  while (!due_.empty() && under_way_.size() < kMostUnderWay) {
    const std::string uri = std::move(due_.extract(due_.begin()).value());
    // Over HTTP a second request about it could overtake the first.
    if (!under_way_.contains(uri) && !is_as_wanted(uri)) ask(uri, false);
  }
}

void Subscriptions::ask(const std::string& uri, bool is_retry) {
  const bool subscribes = is_wanted(uri);
  unknown_.erase(uri);
  if (subscribes) {
    told_.insert(uri);
  } else {
    told_.erase(uri);
  }
  under_way_[uri] = session_->begin(
      subscribes ? "resources/subscribe" : "resources/unsubscribe", {{"uri", uri}},
      {.timeout = kPatience, .renews_session = may_renew_ && !is_retry},
      {.on_answer = [weak = weak_from_this(),
                     asked = Asked{uri, subscribes, is_retry}](const Result<json::object>& answer) {
        if (const auto self = weak.lock()) self->on_answered(asked, answer);
      }});
}

void Subscriptions::on_answered(const Asked& asked, const Result<json::object>& answer) {
  const std::string& uri = asked.uri;
  under_way_.erase(uri);
  if (asked.is_retry) is_retrying_ = false;
  if (!answer) {
    const Error why = upstream_->explained(answer.error());
    log_debug("a subscription has failed",
              {{"uri", std::string_view(uri)}, {"why", std::string_view(why.message)}});
  }
  const bool is_unknown = !answer && is_passing(answer.error().code);
  if (is_unknown && is_wanted(uri)) unknown_.insert(uri);
  if (is_unknown && is_wanted(uri) && asked.subscribes) {
    failed_.push_back(uri);
  } else {
    due_.insert(uri);  // in case that it is not as wanted any more
  }
  if (!is_unknown) {
    // The client itself may have subscribed meanwhile, and been overtaken.
    if (!asked.subscribes && is_wanted(uri)) told_.erase(uri);
    if (failed_.empty() && !is_retrying_) pause_.reset();
  }
  const bool is_taken = answer && asked.subscribes && untaken_.erase(uri) > 0;
  if (is_taken && owner_ != nullptr) owner_->on_subscribed(uri);
  ask_next();
  if (is_unknown) {
    retry_later();
  } else {
    retry();
  }
}

void Subscriptions::retry_later() {
  if (timer_ != 0 || failed_.empty()) return;
  timer_ = loop_->schedule_at(loop_->clock().now() + *pause_.next(), [weak = weak_from_this()] {
    const auto self = weak.lock();
    if (self == nullptr) return;
    self->timer_ = 0;
    self->retry();
  });
}

void Subscriptions::retry() {
  while (!failed_.empty() && timer_ == 0 && !is_retrying_) {
    const std::string uri = std::move(failed_.front());
    failed_.pop_front();
    if (under_way_.contains(uri) || is_as_wanted(uri)) continue;
    is_retrying_ = true;
    ask(uri, true);
  }
}

}  // namespace sluice
