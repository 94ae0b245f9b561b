#include "engine/openai/response_sockets.hpp"

#include <algorithm>
#include <utility>

namespace sluice {

ResponseSocket::ResponseSocket(EventLoop& loop, const Url& url, HttpHeaderList headers,
                               WebSocketClientOptions options)
    : opened_at_(loop.clock().now()),
      client_(loop, url, std::move(headers), callbacks(), std::move(options)) {}

WebSocketClientCallbacks ResponseSocket::callbacks() {
  return {.on_refused =
              [this](const HttpReplyHead& head) {
                if (const auto user = user_.lock()) user->on_refused(head);
              },
          .on_open =
              [this] {
                if (const auto user = user_.lock()) user->on_open();
              },
          .on_message =
              [this](WebSocketOpcode kind, std::string_view text) {
                const auto user = user_.lock();
                if (user != nullptr && kind == WebSocketOpcode::text) user->on_message(text);
              },
          .on_end =
              [this](const Error& why) {
                if (const auto user = user_.lock()) user->on_end(why);
              }};
}

ResponseSockets::ResponseSockets(EventLoop& loop, Url url, HttpHeaderList headers,
                                 WebSocketClientOptions options)
    : loop_(&loop),
      url_(std::move(url)),
      headers_(std::move(headers)),
      options_(std::move(options)) {}

ResponseSockets::~ResponseSockets() {
  loop_->cancel(timer_);
}

std::unique_ptr<ResponseSocket> ResponseSockets::take(const GenerationRequest& request) {
  drop_stale();
  auto found = std::ranges::find_if(idle_, [&request](const Idle& idle) {
    return idle.socket->chain().continuation(request).has_value();
  });
  if (found == idle_.end() && idle_.size() == kMaxIdle) found = idle_.begin();
  if (found == idle_.end()) return nullptr;
  auto socket = std::move(found->socket);
  idle_.erase(found);
  return socket;
}

std::unique_ptr<ResponseSocket> ResponseSockets::open() {
  return std::make_unique<ResponseSocket>(*loop_, url_, headers_, options_);
}

void ResponseSockets::give_back(std::unique_ptr<ResponseSocket> socket) {
  socket->set_user({});
  idle_.push_back({.socket = std::move(socket), .since = loop_->clock().now()});
  if (idle_.size() > kMaxIdle) idle_.pop_front();
  drop_stale();
}

void ResponseSockets::drop_stale() {
  const TimePoint now = loop_->clock().now();
  idle_.remove_if([now](const Idle& idle) {
    return !idle.socket->is_open() || now - idle.since >= kKeepIdle ||
           now - idle.socket->opened_at() >= kMaxAge;
  });
  loop_->cancel(std::exchange(timer_, 0));
  if (idle_.empty()) return;
  timer_ = loop_->schedule_at(idle_.front().since + kKeepIdle, [this] {
    timer_ = 0;
    drop_stale();
  });
}

}  // namespace sluice
