#include "loop.hpp"

#include <algorithm>
#include <arpa/inet.h>
#include <array>
#include <cerrno>
#include <cstring>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdexcept>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "usage.hpp"

namespace sluice::bench {
namespace {

constexpr std::size_t kConnectsAtOnce = 128;
constexpr std::size_t kReadBytes = std::size_t{512} << 10U;
constexpr int kEventsAtOnce = 512;

}  // namespace

Connection::~Connection() {
  close();
}

void Connection::send(std::string_view bytes) {
  if (state_ != State::open) return;
  if (unsent_.empty()) {
    const ssize_t sent = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent == static_cast<ssize_t>(bytes.size())) return;
    if (sent < 0 && errno != EAGAIN) return;  // the read that follows reports it
    bytes.remove_prefix(static_cast<std::size_t>(std::max<ssize_t>(sent, 0)));
    loop_->watch(*this, EPOLLIN | EPOLLOUT, EPOLL_CTL_MOD);
  }
  unsent_.append(bytes);
}

void Connection::close() {
  if (fd_ < 0) return;
  const linger reset{.l_onoff = 1, .l_linger = 0};
  ::setsockopt(fd_, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
  ::close(fd_);
  if (state_ == State::connecting) --loop_->connecting_;
  fd_ = -1;
  state_ = State::closed;
  unsent_.clear();
  loop_->dead_.push_back(this);
}

Loop::Loop(const Options& options)
    : epoll_(epoll_create1(EPOLL_CLOEXEC)),
      host_(options.host),
      port_(options.port),
      lazy_us_(options.lazy_us),
      buffer_(kReadBytes) {
  if (epoll_ < 0) throw std::runtime_error("epoll_create1 failed");
}

Loop::~Loop() {
  ::close(epoll_);
}

void Loop::open(Connection& connection) {
  if (connection.state_ != Connection::State::closed) return;
  connection.state_ = Connection::State::queued;
  to_open_.push_back(&connection);
}

void Loop::at(std::int64_t when_ns, std::function<void()> task) {
  timers_.emplace(when_ns, std::move(task));
}

void Loop::start_connects() {
  while (connecting_ < kConnectsAtOnce && !to_open_.empty()) {
    Connection& connection = *to_open_.front();
    to_open_.pop_front();
    const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) throw std::runtime_error(std::string("socket: ") + std::strerror(errno));
    const int on = 1;
    ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    connection.fd_ = fd;
    connection.state_ = Connection::State::connecting;
    ++connecting_;

    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port_);
    if (::inet_pton(AF_INET, host_.c_str(), &address.sin_addr) != 1) {
      throw std::runtime_error("--host: give an IPv4 address");
    }
    const int result = ::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address);
    watch(connection, EPOLLIN | EPOLLOUT, EPOLL_CTL_ADD);
    if (result != 0 && errno != EINPROGRESS) closed(connection, std::strerror(errno));
  }
}

void Loop::finish_connect(Connection& connection) {
  int error = 0;
  socklen_t size = sizeof error;
  ::getsockopt(connection.fd_, SOL_SOCKET, SO_ERROR, &error, &size);
  if (error != 0) {
    closed(connection, std::strerror(error));
    return;
  }
  --connecting_;
  connection.state_ = Connection::State::open;
  watch(connection, EPOLLIN, EPOLL_CTL_MOD);
  connection.on_open();
}

void Loop::read(Connection& connection) {
  const ssize_t got = ::recv(connection.fd_, buffer_.data(), buffer_.size(), 0);
  if (got > 0) {
    connection.on_bytes({buffer_.data(), static_cast<std::size_t>(got)}, now_ns());
  } else if (got == 0) {
    closed(connection, "closed by the server");
  } else if (errno != EAGAIN && errno != EINTR) {
    closed(connection, std::strerror(errno));
  }
}

void Loop::flush(Connection& connection) {
  std::string& unsent = connection.unsent_;
  const ssize_t sent = ::send(connection.fd_, unsent.data(), unsent.size(), MSG_NOSIGNAL);
  if (sent > 0) unsent.erase(0, static_cast<std::size_t>(sent));
  if (unsent.empty()) watch(connection, EPOLLIN, EPOLL_CTL_MOD);
}

void Loop::watch(Connection& connection, std::uint32_t events, int operation) const {
  epoll_event event{};
  event.events = events;
  event.data.ptr = &connection;
  ::epoll_ctl(epoll_, operation, connection.fd_, &event);
}

void Loop::closed(Connection& connection, std::string_view why) {
  connection.close();
  connection.on_closed(why);
}

int Loop::timeout_until(std::int64_t until_ns) const {
  std::int64_t next = until_ns;
  if (!timers_.empty()) next = std::min(next, timers_.begin()->first);
  const std::int64_t left = next - now_ns();
  // Rounded down, and looked at again: never late by a millisecond.
  return left <= 0 ? 0 : static_cast<int>(std::min<std::int64_t>(left / 1'000'000, 100));
}

void Loop::run_until(std::int64_t until_ns) {
  std::array<epoll_event, kEventsAtOnce> events{};
  stopped_ = false;
  while (!stopped_ && now_ns() < until_ns) {
    start_connects();
    if (lazy_us_ > 0) {
      const timespec nap{.tv_sec = 0, .tv_nsec = lazy_us_ * 1000};
      ::nanosleep(&nap, nullptr);
    }
    const int ready = ::epoll_wait(epoll_, events.data(), kEventsAtOnce, timeout_until(until_ns));
    dead_.clear();
    for (int i = 0; i < ready; ++i) {
      const epoll_event& event = events[static_cast<std::size_t>(i)];
      auto& connection = *static_cast<Connection*>(event.data.ptr);
      if (!dead_.empty() && std::ranges::find(dead_, &connection) != dead_.end()) continue;
      if (connection.state_ == Connection::State::connecting) {
        finish_connect(connection);
        continue;
      }
      if ((event.events & EPOLLOUT) != 0 && !connection.unsent_.empty()) flush(connection);
      if ((event.events & ~static_cast<std::uint32_t>(EPOLLOUT)) != 0) read(connection);
    }
    while (!timers_.empty() && timers_.begin()->first <= now_ns()) {
      const auto timer = timers_.extract(timers_.begin());
      timer.mapped()();
    }
  }
}

}  // namespace sluice::bench
