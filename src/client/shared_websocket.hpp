#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "client/answer.hpp"
#include "client/server_address.hpp"
#include "net/client/websocket_client.hpp"
#include "net/loop/event_loop.hpp"

namespace sluice {

/// Carries several answers over one WebSocket. A response is matched to its answer by its id, for
/// which each answer has its own range, and a chunk by its stream. Belongs to the loop.
class SharedWebSocket {
 public:
  /// One answer's share of the connection.
  class Port;

  /// `address` must outlive the connection.
  SharedWebSocket(EventLoop& loop, const ServerAddress& address);
  ~SharedWebSocket();
  SharedWebSocket(const SharedWebSocket&) = delete;
  SharedWebSocket& operator=(const SharedWebSocket&) = delete;

  /// Makes a port that serves one answer after another. The connection must outlive it.
  std::unique_ptr<Port> make_port();

  /// How many ids one answer may use.
  static constexpr std::int64_t kIdsEach = std::int64_t{1} << 20U;

 private:
  void open(Port& port);
  void send(std::string_view text);
  void forget(Port& port);
  void on_open();
  void on_message(std::string_view text);
  void on_end(const Error& error);

  EventLoop* loop_;
  const ServerAddress* address_;
  std::unique_ptr<WebSocketClient> socket_;
  std::int64_t last_range_ = 0;
  std::map<std::int64_t, Port*> by_range_;
  std::map<std::string, Port*, std::less<>> by_stream_;
};

class SharedWebSocket::Port final : public AnswerPort {
 public:
  explicit Port(SharedWebSocket& socket) : socket_(&socket) {}
  ~Port() override { socket_->forget(*this); }
  Port(const Port&) = delete;
  Port& operator=(const Port&) = delete;

  /// Prepares for the next answer and returns the first of its ids.
  std::int64_t next_answer();
  /// Sets the machine that receives all events; it is not owned.
  void set_machine(AnswerMachine* machine) { machine_ = machine; }

  // These do nothing. An answer over WebSocket sends a separate request only to abort while it is
  // disconnected; here the stream is left to expire instead.
  void send(HttpCall /*call*/) override {}
  void send_aside(HttpCall /*call*/) override {}
  void open_websocket(std::string /*target*/) override { socket_->open(*this); }
  void send_text(std::string text) override { socket_->send(text); }
  void close() override { socket_->forget(*this); }
  void set_timer(Duration wait) override;

 private:
  friend class SharedWebSocket;
  SharedWebSocket* socket_;
  AnswerMachine* machine_ = nullptr;
  std::int64_t range_ = 0;
  std::string stream_id_;
  Executor::TimerId timer_ = 0;
  bool opened_ = false;  // the machine has been told that the connection is open
};

}  // namespace sluice
