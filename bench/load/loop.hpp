#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "options.hpp"

namespace sluice::bench {

class Loop;

/// A connection of the load generator: TCP, a Unix socket, or a child's pipes. Belongs to its loop,
/// which must outlive it.
class Connection {
 public:
  explicit Connection(Loop& loop) : loop_(&loop) {}
  virtual ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  virtual void on_open() = 0;
  /// Receives bytes. `now` is CLOCK_MONOTONIC right after they were read.
  virtual void on_bytes(std::string_view bytes, std::int64_t now) = 0;
  /// The server closed the connection, or it failed. The callback may reopen it.
  virtual void on_closed(std::string_view why) = 0;

  /// Sends `bytes`, and keeps what the socket does not accept for later.
  void send(std::string_view bytes);
  /// Closes the connection without calling on_closed(), by a reset, so that nothing lingers in
  /// TIME_WAIT.
  void close();
  [[nodiscard]] bool is_open() const { return state_ == State::open; }

 protected:
  [[nodiscard]] Loop& loop() const { return *loop_; }

 private:
  friend class Loop;
  enum class State : std::uint8_t { closed, queued, connecting, open };

  [[nodiscard]] bool is_pipe() const { return out_ != fd_; }
  /// Sets whether the loop reports when the socket has room again.
  void want_room(bool wanted);

  Loop* loop_;
  int fd_ = -1;
  int out_ = -1;  // the same descriptor for a socket
  State state_ = State::closed;
  std::string unsent_;
};

/// One thread with one epoll set. It opens connections, passes them the bytes that it reads, and
/// runs timers.
class Loop {
 public:
  explicit Loop(const Options& options);
  ~Loop();
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  /// Opens `connection`; only a limited number is being opened at a time. Does nothing if it is
  /// open or being opened.
  void open(Connection& connection);
  /// Makes a connection of two pipes, which is open at once. Takes ownership of both.
  void adopt(Connection& connection, int in, int out);
  void at(std::int64_t when_ns, std::function<void()> task);
  /// Runs until CLOCK_MONOTONIC is `until_ns` or stop() is called.
  void run_until(std::int64_t until_ns);
  void stop() { stopped_ = true; }
  /// Whether stop() ended the last run.
  [[nodiscard]] bool stopped() const { return stopped_; }

 private:
  friend class Connection;

  void start_connects();
  void finish_connect(Connection& connection);
  /// Reads what is available. `to_end` says that the peer has sent its last bytes, which epoll does
  /// not report again.
  void read(Connection& connection, bool to_end);
  void flush(Connection& connection);
  int connect(int fd) const;
  void watch(Connection& connection, int fd, std::uint32_t events, int operation) const;
  void closed(Connection& connection, std::string_view why);
  int timeout_until(std::int64_t until_ns) const;

  int epoll_;
  std::string host_;
  std::uint16_t port_;
  std::string unix_path_;
  std::int64_t lazy_us_;
  bool stopped_ = false;
  std::size_t connecting_ = 0;
  std::deque<Connection*> to_open_;
  std::multimap<std::int64_t, std::function<void()>> timers_;
  std::vector<char> buffer_;
  std::vector<Connection*>
      dead_;  // closed, but events of the current batch may still refer to them
};

}  // namespace sluice::bench
