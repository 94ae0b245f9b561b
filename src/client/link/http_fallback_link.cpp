#include "client/link/http_fallback_link.hpp"

#include <utility>

#include "client/link/sse_link.hpp"
#include "net/http/status_codes.hpp"

namespace sluice {
namespace {

bool may_mean_another_transport(int status) {
  return status == kBadRequest || status == kNotFound || status == kMethodNotAllowed;
}

}  // namespace

HttpFallbackLink::HttpFallbackLink(EventLoop& loop, HttpLinkOptions options)
    : loop_(&loop),
      options_(std::move(options)),
      link_(std::make_unique<HttpLink>(loop, options_)) {}

void HttpFallbackLink::open(ServerLink::Owner& owner) {
  owner_ = &owner;
  link_->open(*this);
}

Result<void> HttpFallbackLink::send(OutgoingMessage message) {
  if (!is_settled_ && message.method == "initialize") initialize_ = message;
  return link_->send(std::move(message));
}

void HttpFallbackLink::settle() {
  is_settled_ = true;
  refusal_.reset();
  initialize_ = {};
}

void HttpFallbackLink::on_message(std::string_view text) {
  settle();
  owner_->on_message(text);
}

bool HttpFallbackLink::on_reply(const RequestId& id, std::string_view text) {
  settle();
  return owner_->on_reply(id, text);
}

void HttpFallbackLink::on_unanswered(const RequestId& id, const Error& why) {
  const bool is_refused = !id.empty() && id == initialize_.id && !refusal_;
  if (!is_refused || !may_mean_another_transport(why.code)) {
    return owner_->on_unanswered(id, why);
  }
  refusal_ = why;
  link_ = std::make_unique<SseLink>(*loop_, SseLinkOptions{.url = options_.url,
                                                           .headers = options_.headers,
                                                           .http = options_.http,
                                                           .authorizer = options_.authorizer,
                                                           .max_message = options_.max_message});
  link_->open(*this);
  if (const Result<void> sent = link_->send(std::move(initialize_)); !sent) on_lost(sent.error());
}

void HttpFallbackLink::on_lost(const Error& why) {
  if (!refusal_) return owner_->on_lost(why);
  Error both = *std::exchange(refusal_, std::nullopt);
  both.message += "; over HTTP with SSE: " + why.message;
  owner_->on_lost(both);
}

}  // namespace sluice
