#include "proxy/upstream/era_check.hpp"

#include <utility>

#include "net/http/status_codes.hpp"
#include "protocol/error_codes.hpp"
#include "rpc/error_codes.hpp"

namespace sluice {
namespace {

/// What servers on the official SDKs say of what does not fit their transport.
constexpr int kOfTransport = -32000;

/// Whether a server that does not know the session's revision may answer so.
bool may_be_of_other_era(int code) {
  const bool is_of_http = code >= kBadRequest && code < kInternalServerError &&
                          code != kUnauthorized && code != kForbidden && code != kTooManyRequests;
  return is_of_http || code == kNotImplemented || code == kUnsupportedProtocolVersion ||
         code == kOfTransport || code == kInvalidRequest || code == kMethodNotFound;
}

}  // namespace

void EraCheck::on_error(const Error& why, const Revision& spoken, ClientSessionOptions client,
                        std::function<void(const Revision& now)> then) {
  const UpstreamOptions& options = upstream_->options();
  const bool is_due = session_ == nullptr && loop_->clock().now() >= next_ &&
                      !options.starts_program && options.revision.empty() &&
                      may_be_of_other_era(why.code);
  if (!is_due) return;
  put_off();
  Result<std::unique_ptr<ServerLink>> link = options.open_link(*loop_);
  if (!link) return;
  session_ = std::make_shared<ClientSession>(*loop_, std::move(*link), std::move(client));
  session_->connect(
      [this, era = spoken.era, then = std::move(then)](const Result<ServerDescription>& found) {
        stop();
        if (found && found->revision->era != era) then(*found->revision);
      });
}

void EraCheck::stop() {
  if (session_ != nullptr) close_session(*loop_, std::move(session_));
}

void close_session(Executor& loop, std::shared_ptr<ClientSession> session,
                   std::shared_ptr<void> kept, std::function<void()> done) {
  ClientSession& closing = *session;
  closing.close([&loop, session = std::move(session), kept = std::move(kept),
                 done = std::move(done)]() mutable {
    loop.post(
        [session = std::move(session), kept = std::move(kept), done = std::move(done)]() mutable {
          session.reset();
          kept.reset();
          if (done) done();
        });
  });
}

}  // namespace sluice
