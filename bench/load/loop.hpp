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

/// One connection of the load: TCP, to a Unix socket, or a child's pipes. Belongs to its loop,
/// which must outlive it.
class Connection {
 public:
  explicit Connection(Loop& loop) : loop_(&loop) {}
  virtual ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  virtual void on_open() = 0;
  /// Bytes as they came. `now`: CLOCK_MONOTONIC right after they were read.
  virtual void on_bytes(std::string_view bytes, std::int64_t now) = 0;
  /// The server closed, or the connection failed. It may be opened again from here.
  virtual void on_closed(std::string_view why) = 0;

  /// Sends, or keeps what the socket does not take for later.
  void send(std::string_view bytes);
  /// Closes without a word to on_closed(), by a reset: nothing lingers in TIME_WAIT.
  void close();
  [[nodiscard]] bool is_open() const { return state_ == State::open; }

 protected:
  [[nodiscard]] Loop& loop() const { return *loop_; }

 private:
  friend class Loop;
  enum class State : std::uint8_t { closed, queued, connecting, open };

  [[nodiscard]] bool is_pipe() const { return out_ != fd_; }
  /// Whether to be told when there is room again.
  void want_room(bool wanted);

  Loop* loop_;
  int fd_ = -1;
  int out_ = -1;  // of a socket the same
  State state_ = State::closed;
  std::string unsent_;
};

/// One thread, one epoll set: opens connections, hands them what they read, runs timers.
class Loop {
 public:
  explicit Loop(const Options& options);
  ~Loop();
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  /// Opens `connection`, a bounded number at a time; nothing if it is open or about to be.
  void open(Connection& connection);
  /// Makes two pipes a connection, which is open at once; takes both over.
  void adopt(Connection& connection, int in, int out);
  void at(std::int64_t when_ns, std::function<void()> task);
  /// Until CLOCK_MONOTONIC is `until_ns` or stop() has been called.
  void run_until(std::int64_t until_ns);
  void stop() { stopped_ = true; }
  /// Whether the last run was ended so.
  [[nodiscard]] bool stopped() const { return stopped_; }

 private:
  friend class Connection;

  void start_connects();
  void finish_connect(Connection& connection);
  /// Reads what there is; `to_end`: the peer has sent its last, which is not told again.
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
  std::vector<Connection*> dead_;  // closed while a batch of events may still name them
};

}  // namespace sluice::bench
