#pragma once

#include <memory>
#include <string>

#include "client/answer.hpp"
#include "client/server_address.hpp"
#include "net/client/http_client.hpp"
#include "net/client/websocket_client.hpp"
#include "net/loop/event_loop.hpp"

namespace sluice {

/// An AnswerPort to a real server. Carries one machine's answer at a time. Belongs to the loop.
class AnswerConnection final : public AnswerPort {
 public:
  /// Requests go through `http`. All references outlive the connection.
  AnswerConnection(EventLoop& loop, HttpClient& http, const ServerAddress& address);
  ~AnswerConnection() override;
  AnswerConnection(const AnswerConnection&) = delete;
  AnswerConnection& operator=(const AnswerConnection&) = delete;

  /// What is told of everything; not owned. Whatever was under way for another one is dropped.
  void set_machine(AnswerMachine* machine);

  void send(HttpCall call) override;
  void send_aside(HttpCall call) override;
  void open_websocket(std::string target) override;
  void send_text(std::string text) override;
  void close() override;
  void set_timer(Duration wait) override;

 private:
  HttpClientRequest request_of(HttpCall call) const;

  EventLoop* loop_;
  HttpClient* http_;
  const ServerAddress* address_;
  AnswerMachine* machine_ = nullptr;
  HttpClient::Call call_;
  std::unique_ptr<WebSocketClient> socket_;
  Executor::TimerId timer_ = 0;
};

/// Settings for the HTTP client of answers: a model may think for minutes before it says a word.
HttpClientOptions answer_http_options(const ServerAddress& address);
/// The headers that every request to the server carries.
HttpHeaderList server_headers(const ServerAddress& address);

}  // namespace sluice
