#pragma once

#include <memory>
#include <string>

#include "client/answer.hpp"
#include "client/server_address.hpp"
#include "net/client/http_client.hpp"
#include "net/client/websocket_client.hpp"
#include "net/loop/event_loop.hpp"

namespace sluice {

/// An AnswerPort that talks to a real server. It serves one machine at a time. Belongs to the loop.
class AnswerConnection final : public AnswerPort {
 public:
  /// Sends its requests through `http`. All references must outlive the connection.
  AnswerConnection(EventLoop& loop, HttpClient& http, const ServerAddress& address);
  ~AnswerConnection() override;
  AnswerConnection(const AnswerConnection&) = delete;
  AnswerConnection& operator=(const AnswerConnection&) = delete;

  /// Sets the machine that receives all events; it is not owned. Drops whatever was in progress for
  /// the previous machine.
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

/// Options for the HTTP client of answers. The idle timeout is long, because a model may think for
/// minutes before it sends anything.
HttpClientOptions answer_http_options(const ServerAddress& address);
/// The headers of every request to the server.
HttpHeaderList server_headers(const ServerAddress& address);

}  // namespace sluice
