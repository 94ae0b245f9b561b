#include "loop.hpp"

#include <algorithm>
#include <arpa/inet.h>
#include <array>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdexcept>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "usage.hpp"

namespace sluice::bench {
namespace {

constexpr std::size_t kConnectsAtOnce = 128;
constexpr std::size_t kReadBytes = std::size_t{512} << 10U;
constexpr int kEventsAtOnce = 512;
constexpr std::uint32_t kEnd = EPOLLRDHUP | EPOLLHUP | EPOLLERR;
/// Edge-triggered, so that a socket which has been emptied is not checked again needlessly.
constexpr std::uint32_t kAlways = EPOLLET | EPOLLRDHUP;

}  // namespace

Connection::~Connection() {
  close();
}

void Connection::send(std::string_view bytes) {
  if (state_ != State::open) return;
  if (unsent_.empty()) {
    const ssize_t sent = ::write(out_, bytes.data(), bytes.size());
    if (sent == static_cast<ssize_t>(bytes.size())) return;
    if (sent < 0 && errno != EAGAIN) return;  // the next read reports the error
    bytes.remove_prefix(static_cast<std::size_t>(std::max<ssize_t>(sent, 0)));
    want_room(true);
  }
  unsent_.append(bytes);
}

void Connection::want_room(bool wanted) {
  if (is_pipe()) {
    loop_->watch(*this, out_, EPOLLOUT, wanted ? EPOLL_CTL_ADD : EPOLL_CTL_DEL);
  } else {
    loop_->watch(*this, fd_, wanted ? EPOLLIN | EPOLLOUT : EPOLLIN, EPOLL_CTL_MOD);
  }
}

void Connection::close() {
  if (fd_ < 0) return;
  if (is_pipe()) ::close(out_);
  const linger reset{.l_onoff = 1, .l_linger = 0};
  ::setsockopt(fd_, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
  ::close(fd_);
  if (state_ == State::connecting) --loop_->connecting_;
  fd_ = out_ = -1;
  state_ = State::closed;
  unsent_.clear();
  loop_->dead_.push_back(this);
}

Loop::Loop(const Options& options)
    : epoll_(epoll_create1(EPOLL_CLOEXEC)),
      host_(options.host),
      port_(options.port),
      unix_path_(options.unix_path),
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
    const int family = unix_path_.empty() ? AF_INET : AF_UNIX;
    const int fd = ::socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) throw std::runtime_error(std::string("socket: ") + std::strerror(errno));
    connection.fd_ = connection.out_ = fd;
    connection.state_ = Connection::State::connecting;
    ++connecting_;
    const int error = connect(fd);
    watch(connection, fd, EPOLLIN | EPOLLOUT, EPOLL_CTL_ADD);
    if (error != 0 && error != EINPROGRESS) closed(connection, std::strerror(error));
  }
}

int Loop::connect(int fd) const {
  if (!unix_path_.empty()) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (unix_path_.size() >= sizeof address.sun_path) {
      throw std::runtime_error("--unix: the path is too long");
    }
    unix_path_.copy(address.sun_path, unix_path_.size());
    const auto* const plain = reinterpret_cast<const sockaddr*>(&address);
    return ::connect(fd, plain, sizeof address) == 0 ? 0 : errno;
  }
  const int on = 1;
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port_);
  if (::inet_pton(AF_INET, host_.c_str(), &address.sin_addr) != 1) {
    throw std::runtime_error("--host: give an IPv4 address");
  }
  const auto* const plain = reinterpret_cast<const sockaddr*>(&address);
  return ::connect(fd, plain, sizeof address) == 0 ? 0 : errno;
}

void Loop::adopt(Connection& connection, int in, int out) {
  for (const int fd : {in, out}) ::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) | O_NONBLOCK);
  connection.fd_ = in;
  connection.out_ = out;
  connection.state_ = Connection::State::open;
  watch(connection, in, EPOLLIN, EPOLL_CTL_ADD);
  connection.on_open();
}

void Loop::finish_connect(Connection& connection) {
  int error = 0;
  socklen_t size = sizeof error;
  ::getsockopt(connection.fd_, SOL_SOCKET, SO_ERROR, &error, &size);
  if (error != 0) {
    closed(connection, std::strerror(error));
    return;
  }
  // Otherwise half of this core's time would be spent on an acknowledgement for each read.
  const int off = 0;
  ::setsockopt(connection.fd_, IPPROTO_TCP, TCP_QUICKACK, &off, sizeof off);
  --connecting_;
  connection.state_ = Connection::State::open;
  watch(connection, connection.fd_, EPOLLIN, EPOLL_CTL_MOD);
  connection.on_open();
}

void Loop::read(Connection& connection, bool to_end) {
  while (connection.state_ == Connection::State::open) {
    const ssize_t got = ::read(connection.fd_, buffer_.data(), buffer_.size());
    if (got > 0) {
      const auto size = static_cast<std::size_t>(got);
      connection.on_bytes({buffer_.data(), size}, now_ns());
      if (size < buffer_.size() && !to_end) return;
    } else if (got == 0) {
      closed(connection, "closed by the server");
    } else if (errno == EAGAIN) {
      return;
    } else if (errno != EINTR) {
      closed(connection, std::strerror(errno));
    }
  }
}

void Loop::flush(Connection& connection) {
  std::string& unsent = connection.unsent_;
  const ssize_t sent = ::write(connection.out_, unsent.data(), unsent.size());
  if (sent > 0) unsent.erase(0, static_cast<std::size_t>(sent));
  if (unsent.empty()) connection.want_room(false);
}

void Loop::watch(Connection& connection, int fd, std::uint32_t events, int operation) const {
  epoll_event event{};
  event.events = events | kAlways;
  event.data.ptr = &connection;
  ::epoll_ctl(epoll_, operation, fd, &event);
}

void Loop::closed(Connection& connection, std::string_view why) {
  connection.close();
  connection.on_closed(why);
}

int Loop::timeout_until(std::int64_t until_ns) const {
  std::int64_t next = until_ns;
  if (!timers_.empty()) next = std::min(next, timers_.begin()->first);
  const std::int64_t left = next - now_ns();
  // Rounded down and then checked again, so that a timer is never a millisecond late.
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
      if ((event.events & (EPOLLIN | kEnd)) != 0) read(connection, (event.events & kEnd) != 0);
    }
    while (!timers_.empty() && timers_.begin()->first <= now_ns()) {
      const auto timer = timers_.extract(timers_.begin());
      timer.mapped()();
    }
  }
}

}  // namespace sluice::bench
