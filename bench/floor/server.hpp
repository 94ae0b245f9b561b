#pragma once

#include <atomic>
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
  std::string echo_reply;     // file with the complete HTTP reply to each POST
  bool call = false;          // a POST is a tools/call that streams; otherwise a `run` or its poll
  bool shared = false;        // all GETs read one stream
  bool producer = false;      // which another process makes
  std::int64_t count = 1000;  // chunks of a stream
  std::int64_t interval_us = 0;
  std::int64_t per_write = 1;  // chunks in one send(), or in one poll's reply
};

/// A server that does nothing but move bytes. It has one epoll set and parses only where a request
/// ends. What the command line does not say follows from the order of requests: on each connection
/// the first POST is the `run`, and the following ones are its polls until the stream has ended.
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

  /// What the process that makes chunks shares with this one: when it made the last one.
  using Handed = std::atomic<std::int64_t>;

  /// Starts that process, which ends with this one.
  void start_producer();
  void accept_all();
  void read(Connection& connection);
  std::size_t take_request(Connection& connection, std::string_view bytes);
  std::size_t take_frame(Connection& connection, std::string_view bytes);
  void answer_post(Connection& connection);
  void start_stream(Connection& connection, Form form);
  void poll_reply(Connection& connection);
  /// Sends the next chunks of the connection's stream; ends the stream after the last one.
  void push(Connection& connection);
  void push_active();
  void push_shared();
  void push_due();
  void encode(const Connection& connection, std::int64_t chunks);
  void send(Connection& connection, std::string_view bytes);
  void flush(Connection& connection);
  void close(Connection& connection);
  /// Whether each stream has its own pace.
  [[nodiscard]] bool is_paced() const { return options_.interval_us > 0 && !options_.shared; }
  /// Of the next chunk.
  [[nodiscard]] std::int64_t stamp() const;
  /// Whether the connection is in active_ or will be added to it.
  [[nodiscard]] bool is_active(const Connection& connection) const;
  [[nodiscard]] int timeout() const;

  FloorOptions options_;
  std::string echo_;
  int epoll_;
  Connection listener_;
  Connection timer_;
  Connection producer_;             // an eventfd
  const Handed* handed_ = nullptr;  // null: there is no such process
  std::unordered_map<int, std::unique_ptr<Connection>> connections_;
  std::vector<std::unique_ptr<Connection>>
      closed_;                       // closed in this turn; pending events may still refer to them
  std::vector<Connection*> active_;  // streams without a pace, or shared streams
  std::size_t blocked_ = 0;          // how many of them are blocked
  std::deque<Due> due_;              // paced streams in order of time; all have the same interval
  std::int64_t shared_next_ = 0;
  std::string scratch_;
  std::string buffer_;
};

}  // namespace sluice::bench
