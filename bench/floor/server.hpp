#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "wire.hpp"

namespace sluice::bench {

struct FloorOptions {
  std::uint16_t port = 0;
  std::string echo_reply;     // file with the whole HTTP reply to each POST
  bool call = false;          // a POST is a tools/call that streams; else a `run` or its poll
  bool shared = false;        // all GETs read one stream
  std::int64_t count = 1000;  // chunks of a stream
  std::int64_t interval_us = 0;
  std::int64_t per_write = 1;  // chunks in one send(), or in one poll's reply
};

/// A server that does nothing but move the bytes: one epoll set, no parsing beyond where a request
/// ends. What is not on the command line is known from the order of requests: on a connection, the
/// first POST is the `run`, those that follow are its polls until the stream has ended.
class FloorServer {
 public:
  explicit FloorServer(FloorOptions options);
  [[noreturn]] void run();

 private:
  struct Connection {
    int fd = -1;
    Form form = Form::call;
    bool streaming = false;
    bool polling = false;
    bool websocket = false;
    bool blocked = false;
    std::int64_t next = 0;
    std::string unread;  // an unfinished request
    std::string unsent;
  };
  struct Due {
    std::int64_t at;
    Connection* connection;
  };

  void accept_all();
  void read(Connection& connection);
  std::size_t take_request(Connection& connection, std::string_view bytes);
  std::size_t take_frame(Connection& connection, std::string_view bytes);
  void answer_post(Connection& connection);
  void start_stream(Connection& connection, Form form);
  void poll_reply(Connection& connection);
  /// Sends the next chunks of its stream; ends it after the last.
  void push(Connection& connection);
  void push_active();
  void push_shared();
  void push_due();
  void encode(const Connection& connection, std::int64_t chunks);
  void send(Connection& connection, std::string_view bytes);
  void flush(Connection& connection);
  void close(Connection& connection);
  /// Whether it is, or is about to be, in active_.
  [[nodiscard]] bool is_active(const Connection& connection) const;
  [[nodiscard]] int timeout() const;

  FloorOptions options_;
  std::string echo_;
  int epoll_;
  Connection listener_;
  Connection timer_;
  std::unordered_map<int, std::unique_ptr<Connection>> connections_;
  std::vector<std::unique_ptr<Connection>> closed_;  // in this turn; others may still name them
  std::vector<Connection*> active_;                  // streaming without a pace, or shared
  std::size_t blocked_ = 0;                          // of those
  std::deque<Due> due_;                              // paced, in order: all have the same interval
  std::int64_t shared_next_ = 0;
  std::string scratch_;
  std::string buffer_;
};

}  // namespace sluice::bench
