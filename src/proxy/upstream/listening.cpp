#include "proxy/upstream/listening.hpp"

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>

#include "json/members.hpp"
#include "rpc/error_codes.hpp"

namespace sluice {
namespace {

/// A server that has told of changes for so long is asked again at once when it ends that.
constexpr Duration kLasting = std::chrono::seconds(5);

}  // namespace

Listening::~Listening() {
  if (timer_ != 0) loop_->cancel(timer_);
}

void Listening::want(bool lists, std::shared_ptr<const Uris> uris) {
  lists_ = lists;
  uris_ = std::move(uris);
  if (cannot_listen_ || (told_lists_ == lists_ && *told_ == *uris_)) return;
  if (timer_ == 0) listen();  // or soon
}

void Listening::listen() {
  const bool is_first = unheard_.empty();
  unheard_.lists = lists_ && (unheard_.lists || !told_lists_);
  std::erase_if(unheard_.uris, [this](const std::string& uri) { return !uris_->contains(uri); });
  std::ranges::set_difference(*uris_, *told_, std::inserter(unheard_.uris, unheard_.uris.end()));
  if (is_first && !unheard_.empty() && owner_ != nullptr) owner_->on_asked();
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
  if (!uris_->empty()) {
    json::array& uris = (filter["resourceSubscriptions"] = json::array()).get_array();
    for (const std::string& uri : *uris_) uris.emplace_back(uri);
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

bool Listening::is_acknowledged_by(const json::object& params) const {
  const json::object* const meta = object_at(params, "_meta");
  const json::value* const id =
      meta == nullptr ? nullptr : meta->if_contains("io.modelcontextprotocol/subscriptionId");
  // Some servers make a text of the number.
  const std::int64_t number = session_->id_of(listening_);
  return id == nullptr || *id == number || *id == json::value(std::to_string(number));
}

Listening::Unheard Listening::take_unheard() {
  if (!heard_since_) heard_since_ = loop_->clock().now();
  has_listened_ = true;
  return std::exchange(unheard_, {});
}

void Listening::on_ended(std::uint64_t round, const Result<json::object>& answer) {
  if (round != round_) return;
  listening_ = 0;
  if (!answer && owner_ != nullptr) owner_->on_refused(answer.error());
  if (!answer && answer.error().code == kMethodNotFound && !has_listened_) {
    cannot_listen_ = true;
    unheard_ = {};
    return;
  }
  told_lists_ = false;
  told_ = std::make_shared<Uris>();
  if (const auto since = std::exchange(heard_since_, {})) {
    unheard_.is_after_break = true;
    if (loop_->clock().now() - *since >= kLasting) pause_.reset();
  }
  timer_ = loop_->schedule_at(loop_->clock().now() + *pause_.next(), [weak = weak_from_this()] {
    const auto self = weak.lock();
    if (self == nullptr) return;
    self->timer_ = 0;
    self->listen();
  });
}

}  // namespace sluice
