#include "proxy/upstream/change_feed.hpp"

#include <algorithm>
#include <iterator>
#include <string_view>
#include <utility>

#include "core/log/log.hpp"
#include "json/members.hpp"
#include "net/http/status_codes.hpp"
#include "proxy/upstream/upstream.hpp"
#include "rpc/error_codes.hpp"

namespace sluice {
namespace {

/// A server that has told of changes for so long is asked again at once when it ends that.
constexpr Duration kLasting = std::chrono::seconds(5);
/// Of the requests about resources: others need room beside them.
constexpr std::size_t kMostUnderWay = 64;
/// How long the answer to one may take.
constexpr Duration kPatience = std::chrono::seconds(30);

/// Whether a request that has failed so may be answered otherwise later.
bool is_passing(int code) {
  // What HTTP says is no answer of the server.
  const bool is_of_http = code == kNotFound || code >= kInternalServerError;
  return code == kLimitReached || code == kTimedOut || code == kTooManyRequests || is_of_http;
}

}  // namespace

ChangeFeed::~ChangeFeed() {
  if (timer_ != 0) loop_->cancel(timer_);
}

void ChangeFeed::attach(std::shared_ptr<ClientSession> session) {
  if (timer_ != 0) loop_->cancel(std::exchange(timer_, 0));
  // What the forgotten session was asked would be repeated in the new one, in any order.
  for (const auto& [uri, number] : std::exchange(under_way_, {})) {
    if (session == session_) session_->cancel(number);
  }
  due_.clear();
  failed_.clear();
  unknown_.clear();
  retried_.clear();
  session_ = std::move(session);
  backoff_.reset();
  listening_ = 0;
  ++round_;
  told_.clear();
  told_lists_ = false;
  unheard_ = {};
  heard_since_ = {};
  cannot_listen_ = false;
  has_listened_ = false;
  may_renew_ = false;
  tell();
}

void ChangeFeed::want(bool lists, Uris uris) {
  lists_ = lists;
  // What is wanted otherwise now need not wait.
  std::erase_if(failed_,
                [&](const std::string& uri) { return uris_.contains(uri) != uris.contains(uri); });
  uris_ = std::move(uris);
  may_renew_ = true;
  tell();
}

void ChangeFeed::tell() {
  if (session_ == nullptr) return;
  if (session_->server().revision->era == Era::modern) {
    if (cannot_listen_ || (told_lists_ == lists_ && told_ == uris_)) return;
    if (timer_ != 0) return;  // which listens soon
    listen();
  } else {
    subscribe();
  }
}

void ChangeFeed::subscribe() {
  due_.clear();
  std::ranges::set_symmetric_difference(uris_, told_, std::inserter(due_, due_.end()));
  due_.insert(unknown_.begin(), unknown_.end());
  for (const std::string& uri : failed_) due_.erase(uri);
  ask_next();
}

void ChangeFeed::ask_next() {
  while (!due_.empty() && under_way_.size() < kMostUnderWay) {
    const std::string uri = std::move(due_.extract(due_.begin()).value());
    // Over HTTP a second request about it could overtake the first.
    if (!under_way_.contains(uri) && !is_as_wanted(uri)) ask(uri, may_renew_);
  }
}

void ChangeFeed::retry() {
  while (!failed_.empty() && timer_ == 0 && retried_.empty()) {
    const std::string uri = std::move(failed_.front());
    failed_.pop_front();
    if (under_way_.contains(uri) || is_as_wanted(uri)) continue;
    retried_ = uri;
    ask(uri, false);
  }
}

void ChangeFeed::ask(const std::string& uri, bool may_renew) {
  const bool subscribes = uris_.contains(uri);
  unknown_.erase(uri);
  if (subscribes) {
    told_.insert(uri);
  } else {
    told_.erase(uri);
  }
  under_way_[uri] =
      session_->begin(subscribes ? "resources/subscribe" : "resources/unsubscribe", {{"uri", uri}},
                      {.timeout = kPatience, .renews_session = may_renew},
                      {.on_answer = [weak = weak_from_this(), uri, subscribes,
                                     round = round_](const Result<json::object>& answer) {
                        const auto self = weak.lock();
                        if (self != nullptr && self->round_ == round)
                          self->on_answered(uri, subscribes, answer);
                      }});
}

void ChangeFeed::on_answered(const std::string& uri, bool subscribes,
                             const Result<json::object>& answer) {
  under_way_.erase(uri);
  if (retried_ == uri) retried_.clear();
  if (!answer) {
    const Error why = upstream_->explained(answer.error());
    log_debug("a subscription has failed",
              {{"uri", std::string_view(uri)}, {"why", std::string_view(why.message)}});
  }
  const bool is_wanted = uris_.contains(uri);
  const bool is_unknown = !answer && is_passing(answer.error().code);
  if (is_unknown && is_wanted) unknown_.insert(uri);
  if (is_unknown && is_wanted && subscribes) {
    failed_.push_back(uri);
    if (timer_ == 0) try_later(&ChangeFeed::retry);
  } else {
    due_.insert(uri);  // in case that it is not as wanted any more
  }
  if (!is_unknown) {
    // The client itself may have subscribed meanwhile, and been overtaken.
    if (!subscribes && is_wanted) told_.erase(uri);
    if (failed_.empty() && retried_.empty()) backoff_.reset();
  }
  ask_next();
  retry();
}

void ChangeFeed::listen() {
  const bool is_first = unheard_.empty();
  unheard_.lists = lists_ && (unheard_.lists || !told_lists_);
  std::erase_if(unheard_.uris, [this](const std::string& uri) { return !uris_.contains(uri); });
  std::ranges::set_difference(uris_, told_, std::inserter(unheard_.uris, unheard_.uris.end()));
  if (is_first && !unheard_.empty()) on_asked_();
  told_lists_ = lists_;
  told_ = uris_;
  const ClientSession::Number before = std::exchange(listening_, 0);
  const std::uint64_t round = ++round_;
  json::object filter;
  const json::object* const capabilities = object_at(session_->server().about, "capabilities");
  for (const auto& [feature, member] :
       {std::pair("tools", "toolsListChanged"), std::pair("prompts", "promptsListChanged"),
        std::pair("resources", "resourcesListChanged")}) {
    if (lists_ && capabilities != nullptr && capabilities->contains(feature)) filter[member] = true;
  }
  if (!uris_.empty()) {
    json::array& uris = (filter["resourceSubscriptions"] = json::array()).get_array();
    for (const std::string& uri : uris_) uris.emplace_back(uri);
  }
  if (!filter.empty()) {
    listening_ = session_->begin(
        "subscriptions/listen", {{"notifications", std::move(filter)}}, {.idle_timeout = {}},
        {.on_answer = [weak = weak_from_this(), round](const Result<json::object>& answer) {
          if (const auto self = weak.lock()) self->on_ended(round, answer);
        }});
  }
  // Only now, so that nothing is missed in between.
  if (before != 0) session_->cancel(before);
}

bool ChangeFeed::is_acknowledged_by(const json::object& params) const {
  const json::object* const meta = object_at(params, "_meta");
  const json::value* const id =
      meta == nullptr ? nullptr : meta->if_contains("io.modelcontextprotocol/subscriptionId");
  // Some servers make a text of the number.
  const std::int64_t number = session_->id_of(listening_);
  return id == nullptr || *id == number || *id == json::value(std::to_string(number));
}

ChangeFeed::Unheard ChangeFeed::take_unheard() {
  if (!heard_since_) heard_since_ = loop_->clock().now();
  has_listened_ = true;
  return std::exchange(unheard_, {});
}

void ChangeFeed::on_ended(std::uint64_t round, const Result<json::object>& answer) {
  if (round != round_) return;
  listening_ = 0;
  if (!answer && answer.error().code == kMethodNotFound && !has_listened_) {
    cannot_listen_ = true;
    unheard_ = {};
    return;
  }
  told_lists_ = false;
  told_.clear();
  if (const auto since = std::exchange(heard_since_, {})) {
    unheard_.is_after_break = true;
    if (loop_->clock().now() - *since >= kLasting) backoff_.reset();
  }
  try_later(&ChangeFeed::listen);
}

void ChangeFeed::try_later(void (ChangeFeed::*again)()) {
  timer_ = loop_->schedule_at(loop_->clock().now() + backoff_.next().value_or(Duration()),
                              [weak = weak_from_this(), again] {
                                const auto self = weak.lock();
                                if (self == nullptr) return;
                                self->timer_ = 0;
                                if (self->session_ != nullptr) ((*self).*again)();
                              });
}

}  // namespace sluice
