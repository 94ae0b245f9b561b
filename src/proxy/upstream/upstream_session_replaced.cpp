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
  const bool is_looked_for = is_era_asked_ || trial_ != nullptr;
  if (!may_be_replaced || is_looked_for || is_retired_ || now < next_doubt_) return;
  const Era era = server_.revision->era;
  if (!may_be_of_another(era, why.code)) return;
  next_doubt_ = now + kDoubtPause;
  is_era_asked_ = true;
  ask_for_life([this, era](const Result<json::object>& answer) {
    is_era_asked_ = false;
    if (!answer && may_be_of_another(era, answer.error().code)) look_for_another();
  });
}

void UpstreamSession::look_for_another() {
  Result<std::unique_ptr<ServerLink>> link = upstream_->options().open_link(*loop_);
  if (!link) return;
  ClientSessionOptions options{
      .info = client_.info,
      .capabilities = json::object(*client_.capabilities, json::storage_ptr()),
      .connect_timeout = upstream_->options().connect_timeout};
  // A legacy server need not bear a second session only to show that it is the same.
  if (server_.revision->era == Era::legacy) options.revision = newest_revision(Era::modern).name;
  trial_ = std::make_shared<ClientSession>(*loop_, std::move(*link), std::move(options));
  trial_->connect([weak = weak_from_this()](const Result<ServerDescription>& server) {
    if (const auto self = weak.lock()) self->on_another(server);
  });
}

void UpstreamSession::on_another(const Result<ServerDescription>& server) {
  if (trial_ == nullptr) return;
  end_session(std::move(trial_));
  const bool is_other = server && is_open() && server->revision->era != server_.revision->era;
  if (!is_other || is_retired_) return;
  log_warning("a server behind the proxy was replaced by one of another revision",
              {{"server", std::string_view(upstream_->options().label)},
               {"revision", server->revision->name}});
  upstream_->on_connected(*server->revision, loop_->clock().now());
  listener_->on_replaced();
}

void UpstreamSession::retire() {
  is_retired_ = true;
  is_probing_ = false;
  check_.end();
  feed_.attach(nullptr);
  if (session_ != nullptr) session_->renew_no_more();
  for (Waiting& each : std::exchange(waiting_, {})) offer(std::move(each.question));
  watch();
}

}  // namespace sluice
