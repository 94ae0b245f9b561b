#include <algorithm>
#include <chrono>
#include <utility>

#include "core/log/log.hpp"
#include "net/http/status_codes.hpp"
#include "protocol/error_codes.hpp"
#include "proxy/upstream/upstream_session.hpp"
#include "rpc/error_codes.hpp"

// A server is replaced by one of the other era, on the same address.

namespace sluice {
namespace {

/// How long it is not doubted again that a server is the same.
constexpr Duration kDoubtPause = std::chrono::seconds(1);
/// What servers on the official SDKs say of what does not fit their transport.
constexpr int kOfTransport = -32000;

/// Whether a server that does not speak the revisions of `era` may answer so.
bool may_be_of_another(Era era, int code) {
  switch (code) {
    case kUnsupportedProtocolVersion:
    case kHeaderMismatch:
    case kOfTransport:
    case kInvalidRequest:
    case kMethodNotFound:
    case kInvalidParams:
    case kNotImplemented:
      return true;
    // These are about access, or say that something else would be answered.
    case kUnauthorized:
    case kForbidden:
    case kProxyAuthenticationRequired:
    case kRequestTimedOut:
    case kConflict:
    case kContentTooLarge:
    case kMisdirectedRequest:
    case kTooEarly:
    case kTooManyRequests:
      return false;
    case kNotFound:
    case kGoneForGood:
      return era == Era::modern;  // a legacy session is over
    default:
      return code >= kBadRequest && code < kInternalServerError;
  }
}

}  // namespace

void UpstreamSession::doubt_era(const Error& why) {
  // A program stays what it is while it runs.
  const UpstreamOptions& options = upstream_->options();
  const bool may_be_replaced = !options.starts_program && options.revision.empty() && is_open();
  const TimePoint now = loop_->clock().now();
  const bool is_looked_for = is_era_asked_ || successor_ != nullptr;
  if (!may_be_replaced || is_looked_for || now < next_doubt_) return;
  const Era era = server_.revision->era;
  if (!may_be_of_another(era, why.code)) return;
  next_doubt_ = now + kDoubtPause;
  is_era_asked_ = true;
  ask_for_life([this, era](const Result<json::object>& answer) {
    is_era_asked_ = false;
    if (!answer && may_be_of_another(era, answer.error().code)) seek_successor();
  });
}

void UpstreamSession::seek_successor() {
  Result<std::unique_ptr<ServerLink>> link = upstream_->options().open_link(*loop_);
  if (!link) return;
  const SessionNumber number = ++sessions_;
  ClientSessionOptions options = session_options(number);
  // A legacy server need not bear a second session only to show that it is the same.
  if (server_.revision->era == Era::legacy) options.revision = newest_revision(Era::modern).name;
  successor_ = std::make_shared<ClientSession>(*loop_, std::move(*link), std::move(options));
  successor_->connect([weak = weak_from_this(), number](const Result<ServerDescription>& server) {
    if (const auto self = weak.lock()) self->on_successor(number, server);
  });
}

void UpstreamSession::on_successor(SessionNumber number, const Result<ServerDescription>& server) {
  if (successor_ == nullptr) return;
  std::shared_ptr<ClientSession> successor = std::move(successor_);
  const bool is_other = server && is_open() && server->revision->era != server_.revision->era;
  if (!is_other) return end_session(std::move(successor));
  log_warning("a server behind the proxy was replaced by one of another revision",
              {{"server", std::string_view(upstream_->options().label)},
               {"revision", server->revision->name}});
  retire_session();
  session_ = std::move(successor);
  session_number_ = number;
  begin_session(*server);
  send_held();
  end_replaced();
}

void UpstreamSession::retire_session() {
  level_.end_session();
  feed_.attach(nullptr);
  is_probing_ = false;
  is_era_asked_ = false;
  replaced_.push_back({session_number_, std::move(session_), heard_});
}

void UpstreamSession::end_replaced() {
  if (replaced_.empty()) return;
  const auto is_used = [this](const Replaced& each) {
    return std::ranges::any_of(
        requests_, [&](const auto& request) { return request.second.session == each.number; });
  };
  const auto unused = std::ranges::partition(replaced_, is_used);
  std::vector<Replaced> over(std::move_iterator(unused.begin()), std::move_iterator(unused.end()));
  replaced_.erase(unused.begin(), unused.end());
  for (Replaced& each : over) end_session(std::move(each.session));
}

void UpstreamSession::end_silent_replaced() {
  const TimePoint now = loop_->clock().now();
  const Duration most = upstream_->options().idle_timeout;
  std::vector<SessionNumber> silent;
  for (const Replaced& each : replaced_) {
    if (now >= each.heard + most) silent.push_back(each.number);
  }
  for (const SessionNumber number : silent) {
    fail_requests(number, {kLostConnection, "it was replaced, and the call is not answered", {}});
  }
  end_replaced();
}

}  // namespace sluice
