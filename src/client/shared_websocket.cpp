#include "client/shared_websocket.hpp"

#include <charconv>
#include <utility>

#include "client/answer_connection.hpp"

namespace sluice {
namespace {

/// The text after `name` in a message, up to the next quote; empty if `name` is not in it. Relies
/// on the server's JSON having no spaces.
std::string_view string_after(std::string_view text, std::string_view name) {
  const auto at = text.find(name);
  if (at == std::string_view::npos) return {};
  text.remove_prefix(at + name.size());
  return text.substr(0, text.find('"'));
}

}  // namespace

SharedWebSocket::SharedWebSocket(EventLoop& loop, const ServerAddress& address)
    : loop_(&loop), address_(&address) {}

SharedWebSocket::~SharedWebSocket() = default;

std::unique_ptr<SharedWebSocket::Port> SharedWebSocket::make_port() {
  return std::make_unique<Port>(*this);
}

std::int64_t SharedWebSocket::Port::next_answer() {
  socket_->forget(*this);
  range_ = ++socket_->last_range_;
  socket_->by_range_.emplace(range_, this);
  return range_ * kIdsEach;
}

void SharedWebSocket::Port::set_timer(Duration wait) {
  socket_->loop_->cancel(timer_);
  timer_ = socket_->loop_->schedule_at(socket_->loop_->clock().now() + wait, [this] {
    timer_ = 0;
    socket_->by_range_.emplace(range_, this);
    machine_->on_timer();
  });
}

void SharedWebSocket::open(Port& port) {
  port.opened_ = false;
  if (socket_ != nullptr && socket_->is_open()) {
    loop_->post([this] { on_open(); });
    return;
  }
  if (socket_ != nullptr) return;  // already connecting
  WebSocketClientCallbacks callbacks;
  callbacks.on_open = [this] { on_open(); };
  callbacks.on_message = [this](WebSocketOpcode, std::string_view text) { on_message(text); };
  callbacks.on_end = [this](const Error& error) { on_end(error); };
  WebSocketClientOptions options;
  options.tls = address_->tls;
  options.proxies = address_->proxies;
  socket_ =
      std::make_unique<WebSocketClient>(*loop_, address_->url_of("/ws"), server_headers(*address_),
                                        std::move(callbacks), std::move(options));
}

void SharedWebSocket::send(std::string_view text) {
  if (socket_ != nullptr) socket_->send_text(text);
}

void SharedWebSocket::forget(Port& port) {
  loop_->cancel(std::exchange(port.timer_, 0));
  by_range_.erase(port.range_);
  if (!port.stream_id_.empty()) by_stream_.erase(port.stream_id_);
  port.stream_id_.clear();
}

void SharedWebSocket::on_open() {
  const auto ports = by_range_;  // a copy: an answer that ends is removed from the table
  for (const auto& [range, port] : ports) {
    if (by_range_.contains(range) && !std::exchange(port->opened_, true)) {
      port->machine_->on_open();
    }
  }
}

void SharedWebSocket::on_message(std::string_view text) {
  const std::string_view stream_id = string_after(text, R"("stream_id":")");
  if (text.starts_with(R"({"jsonrpc":"2.0","method":)")) {
    const auto found = by_stream_.find(stream_id);
    if (found != by_stream_.end()) found->second->machine_->on_message(text);
    return;
  }
  constexpr std::string_view kId = "\"id\":";
  const auto at = text.find(kId);
  std::int64_t id = 0;
  if (at == std::string_view::npos) return;
  std::from_chars(text.data() + at + kId.size(), text.data() + text.size(), id);
  const auto found = by_range_.find(id / kIdsEach);
  if (found == by_range_.end()) return;
  Port& port = *found->second;
  if (port.stream_id_.empty() && !stream_id.empty()) {
    port.stream_id_ = stream_id;
    by_stream_.emplace(port.stream_id_, &port);
  }
  port.machine_->on_message(text);
}

void SharedWebSocket::on_end(const Error& error) {
  socket_.reset();
  const auto ports = by_range_;
  for (const auto& [range, port] : ports) {
    // An answer that ends may remove others from the table.
    if (by_range_.contains(range)) port->machine_->on_lost(error);
  }
}

}  // namespace sluice
