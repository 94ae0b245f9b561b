#include "client/answer_connection.hpp"

#include <chrono>
#include <utility>

namespace sluice {

HttpHeaderList server_headers(const ServerAddress& address) {
  HttpHeaderList headers;
  if (!address.api_key.empty()) {
    headers.emplace_back("Authorization", "Bearer " + address.api_key);
  }
  return headers;
}

HttpClientOptions answer_http_options(const ServerAddress& address) {
  HttpClientOptions options;
  options.tls = address.tls;
  options.proxies = address.proxies;
  options.idle_timeout = std::chrono::minutes(10);
  return options;
}

AnswerConnection::AnswerConnection(EventLoop& loop, HttpClient& http, const ServerAddress& address)
    : loop_(&loop), http_(&http), address_(&address) {}

AnswerConnection::~AnswerConnection() {
  AnswerConnection::close();
}

void AnswerConnection::set_machine(AnswerMachine* machine) {
  close();
  machine_ = machine;
}

HttpClientRequest AnswerConnection::request_of(HttpCall call) const {
  HttpClientRequest request{.method = std::move(call.method),
                            .url = address_->url_of(call.target),
                            .headers = server_headers(*address_),
                            .body = std::move(call.body)};
  for (auto& header : call.headers) request.headers.push_back(std::move(header));
  return request;
}

void AnswerConnection::send(HttpCall call) {
  HttpReplyCallbacks callbacks;
  callbacks.on_head = [this](const HttpReplyHead& head) {
    machine_->on_head(head.status, head.header("Content-Type"));
  };
  callbacks.on_body = [this](std::string_view bytes) { machine_->on_body(bytes); };
  callbacks.on_complete = [this] { machine_->on_complete(); };
  callbacks.on_failure = [this](const Error& error) { machine_->on_lost(error); };
  call_ = http_->send(request_of(std::move(call)), std::move(callbacks));
}

void AnswerConnection::send_aside(HttpCall call) {
  http_->send_aside(request_of(std::move(call)));
}

void AnswerConnection::open_websocket(std::string target) {
  WebSocketClientCallbacks callbacks;
  callbacks.on_open = [this] { machine_->on_open(); };
  callbacks.on_message = [this](WebSocketOpcode opcode, std::string_view text) {
    if (opcode == WebSocketOpcode::text) machine_->on_message(text);
  };
  callbacks.on_end = [this](const Error& error) { machine_->on_lost(error); };
  WebSocketClientOptions options;
  options.tls = address_->tls;
  options.proxies = address_->proxies;
  socket_ =
      std::make_unique<WebSocketClient>(*loop_, address_->url_of(target), server_headers(*address_),
                                        std::move(callbacks), std::move(options));
}

void AnswerConnection::send_text(std::string text) {
  if (socket_ != nullptr) socket_->send_text(text);
}

void AnswerConnection::close() {
  call_.drop();
  socket_.reset();
  loop_->cancel(std::exchange(timer_, 0));
}

void AnswerConnection::set_timer(Duration wait) {
  loop_->cancel(timer_);
  timer_ = loop_->schedule_at(loop_->clock().now() + wait, [this] {
    timer_ = 0;
    machine_->on_timer();
  });
}

}  // namespace sluice
