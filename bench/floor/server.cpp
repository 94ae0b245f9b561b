#include "server.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <fstream>
#include <iterator>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <new>
#include <stdexcept>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

namespace sluice::bench {
namespace {

constexpr std::size_t kReadBytes = std::size_t{64} << 10U;
constexpr int kBacklog = 4096;

int check(int result, const char* what) {
  if (result < 0) throw std::runtime_error(what);
  return result;
}

void watch(int epoll, int fd, void* connection, std::uint32_t events, int operation) {
  epoll_event event{};
  event.events = events;
  event.data.ptr = connection;
  ::epoll_ctl(epoll, operation, fd, &event);
}

}  // namespace

FloorServer::FloorServer(FloorOptions options)
    : options_(std::move(options)),
      epoll_(check(::epoll_create1(EPOLL_CLOEXEC), "epoll_create1")),
      buffer_(kReadBytes, '\0') {
  if (!options_.echo_reply.empty()) {
    std::ifstream file(options_.echo_reply, std::ios::binary);
    echo_.assign(std::istreambuf_iterator<char>(file), {});
    if (echo_.empty()) throw std::runtime_error("--echo-reply: cannot read the file");
  }
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);

  listener_.fd = check(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), "socket");
  timer_.fd = check(::timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC), "timerfd");
  const int on = 1;
  ::setsockopt(listener_.fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(options_.port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  check(::bind(listener_.fd, reinterpret_cast<const sockaddr*>(&address), sizeof address), "bind");
  check(::listen(listener_.fd, kBacklog), "listen");
  watch(epoll_, listener_.fd, &listener_, EPOLLIN, EPOLL_CTL_ADD);
  watch(epoll_, timer_.fd, &timer_, EPOLLIN, EPOLL_CTL_ADD);
  if (options_.producer) start_producer();
}

void FloorServer::start_producer() {
  producer_.fd = check(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC), "eventfd");
  void* const memory =
      ::mmap(nullptr, sizeof(Handed), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw std::runtime_error("mmap");
  auto* const handed = new (memory) Handed(0);
  watch(epoll_, producer_.fd, &producer_, EPOLLIN, EPOLL_CTL_ADD);
  handed_ = handed;
  if (check(::fork(), "fork") != 0) return;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  const timespec pause{.tv_sec = options_.interval_us / 1'000'000,
                       .tv_nsec = options_.interval_us % 1'000'000 * 1000};
  for (;;) {
    ::nanosleep(&pause, nullptr);
    handed->store(monotonic_ns());
    ::eventfd_write(producer_.fd, 1);
  }
}

std::int64_t FloorServer::stamp() const {
  return handed_ == nullptr ? monotonic_ns() : handed_->load();
}

void FloorServer::run() {
  std::array<epoll_event, 512> events{};
  for (;;) {
    const int ready =
        ::epoll_wait(epoll_, events.data(), static_cast<int>(events.size()), timeout());
    closed_.clear();
    for (int i = 0; i < ready; ++i) {
      const epoll_event& event = events[static_cast<std::size_t>(i)];
      auto& connection = *static_cast<Connection*>(event.data.ptr);
      if (&connection == &listener_) {
        accept_all();
      } else if (&connection == &timer_) {
        std::uint64_t expirations = 0;
        [[maybe_unused]] const auto got = ::read(timer_.fd, &expirations, sizeof expirations);
      } else if (&connection == &producer_) {
        eventfd_t made = 0;
        ::eventfd_read(producer_.fd, &made);
        push_shared();
      } else {
        if ((event.events & EPOLLOUT) != 0) flush(connection);
        if ((event.events & ~static_cast<std::uint32_t>(EPOLLOUT)) != 0) read(connection);
      }
    }
    if (options_.shared) {
      if (!options_.producer) push_shared();
    } else if (is_paced()) {
      push_due();
    } else {
      push_active();
    }
  }
}

int FloorServer::timeout() const {
  if (options_.shared) return options_.producer || active_.empty() || blocked_ != 0 ? -1 : 0;
  if (options_.interval_us <= 0) return blocked_ < active_.size() ? 0 : -1;
  if (due_.empty()) return -1;
  const std::int64_t left = due_.front().at - monotonic_ns();
  if (left <= 0) return 0;
  const itimerspec when{
      .it_interval = {},
      .it_value = {.tv_sec = left / 1'000'000'000, .tv_nsec = left % 1'000'000'000}};
  ::timerfd_settime(timer_.fd, 0, &when, nullptr);
  return -1;
}

void FloorServer::accept_all() {
  for (;;) {
    const int fd = ::accept4(listener_.fd, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0) return;
    const int on = 1;
    ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    auto connection = std::make_unique<Connection>();
    connection->fd = fd;
    watch(epoll_, fd, connection.get(), EPOLLIN, EPOLL_CTL_ADD);
    connections_[fd] = std::move(connection);
  }
}

void FloorServer::read(Connection& connection) {
  if (connection.fd < 0) return;
  const ssize_t got = ::recv(connection.fd, buffer_.data(), buffer_.size(), 0);
  if (got <= 0) {
    if (got == 0 || errno != EAGAIN) close(connection);
    return;
  }
  std::string_view bytes(buffer_.data(), static_cast<std::size_t>(got));
  std::string whole;
  if (!connection.unread.empty()) {
    whole = std::move(connection.unread) + std::string(bytes);
    bytes = whole;
  }
  while (!bytes.empty()) {
    const std::size_t used =
        connection.websocket ? take_frame(connection, bytes) : take_request(connection, bytes);
    if (connection.fd < 0) return;
    if (used == 0) break;
    bytes.remove_prefix(used);
  }
  connection.unread.assign(bytes);
}

std::size_t FloorServer::take_request(Connection& connection, std::string_view bytes) {
  static constexpr std::string_view kLength = "Content-Length: ";
  const std::size_t end = bytes.find("\r\n\r\n");
  if (end == std::string_view::npos) return 0;
  std::size_t total = end + 4;
  if (bytes.starts_with("POST")) {
    const std::size_t at = bytes.substr(0, end).find(kLength);
    if (at == std::string_view::npos) return 0;
    std::size_t length = 0;
    std::from_chars(bytes.data() + at + kLength.size(), bytes.data() + end, length);
    total += length;
    if (bytes.size() < total) return 0;
    answer_post(connection);
  } else if (bytes.starts_with("GET /ws")) {
    connection.websocket = true;
    scratch_.clear();
    append_upgrade_reply(scratch_);
    send(connection, scratch_);
  } else {
    connection.polling = false;
    start_stream(connection, Form::events);
  }
  return total;
}

std::size_t FloorServer::take_frame(Connection& connection, std::string_view bytes) {
  // Every message of the load is a `run`; messages are masked and shorter than 64 KiB.
  if (bytes.size() < 2) return 0;
  std::size_t length = static_cast<unsigned char>(bytes[1]) & 0x7fU;
  std::size_t header = 2 + 4;
  if (length == 126) {
    if (bytes.size() < 4) return 0;
    length = static_cast<std::size_t>(static_cast<unsigned char>(bytes[2])) << 8U |
             static_cast<unsigned char>(bytes[3]);
    header += 2;
  }
  if (bytes.size() < header + length) return 0;
  start_stream(connection, Form::frames);
  return header + length;
}

void FloorServer::answer_post(Connection& connection) {
  if (!echo_.empty()) {
    send(connection, echo_);
  } else if (options_.call) {
    start_stream(connection, Form::call);
  } else if (connection.polling) {
    poll_reply(connection);
  } else {
    connection.polling = true;
    connection.next = 0;
    scratch_.clear();
    append_json_reply(scratch_, run_reply_body());
    send(connection, scratch_);
  }
}

void FloorServer::start_stream(Connection& connection, Form form) {
  connection.form = form;
  connection.next = 0;
  scratch_.clear();
  if (form == Form::frames) {
    const std::string_view reply = run_reply_body();
    scratch_.push_back('\x81');
    scratch_.push_back(static_cast<char>(reply.size()));  // below 126
    scratch_.append(reply);
  } else {
    append_event_stream_head(scratch_);
  }
  send(connection, scratch_);
  if (connection.fd < 0) return;
  connection.streaming = true;
  if (is_paced()) {
    due_.push_front({.at = monotonic_ns(), .connection = &connection});
  } else {
    active_.push_back(&connection);
    if (connection.blocked) ++blocked_;
  }
}

void FloorServer::poll_reply(Connection& connection) {
  static thread_local std::string body;
  body.assign(poll_body_prefix());
  const std::int64_t total = options_.count + 1;  // including the chunk that ends the stream
  const std::int64_t until = std::min(connection.next + options_.per_write, total);
  for (; connection.next < until; ++connection.next) {
    append_chunk(body, Form::elements, connection.next, options_.count, stamp());
    if (connection.next + 1 < until) body.push_back(',');
  }
  const bool has_more = connection.next < total;
  body.append(poll_body_suffix(has_more));
  if (!has_more) connection.polling = false;
  scratch_.clear();
  append_json_reply(scratch_, body);
  send(connection, scratch_);
}

void FloorServer::encode(const Connection& connection, std::int64_t chunks) {
  scratch_.clear();
  if (connection.form == Form::frames) {
    for (std::int64_t i = 0; i < chunks; ++i) {
      append_chunk(scratch_, connection.form, connection.next + i, options_.count, stamp());
    }
    return;
  }
  // The length line precedes the events. It has the same length for all but the first few.
  static thread_local std::string events;
  events.clear();
  for (std::int64_t i = 0; i < chunks; ++i) {
    append_chunk(events, connection.form, connection.next + i, options_.count, stamp());
  }
  append_http_chunk_size(scratch_, events.size());
  scratch_.append(events).append("\r\n");
}

void FloorServer::push(Connection& connection) {
  const std::int64_t chunks = std::min(options_.per_write, options_.count - connection.next);
  if (chunks > 0) {
    encode(connection, chunks);
    connection.next += chunks;
    send(connection, scratch_);
    return;
  }
  scratch_.clear();
  append_end(scratch_, connection.form, options_.count);
  connection.streaming = false;
  std::erase(active_, &connection);
  send(connection, scratch_);
}

void FloorServer::push_active() {
  for (std::size_t i = 0; i < active_.size();) {
    Connection* const connection = active_[i];
    if (!connection->blocked) push(*connection);
    // A connection that ended or failed has removed itself.
    if (i < active_.size() && active_[i] == connection) ++i;
  }
}

void FloorServer::push_shared() {
  if (active_.empty() || blocked_ != 0) return;
  active_.front()->next = shared_next_;
  encode(*active_.front(), options_.per_write);
  shared_next_ += options_.per_write;
  for (std::size_t i = 0; i < active_.size();) {
    Connection* const connection = active_[i];
    send(*connection, scratch_);
    if (i < active_.size() && active_[i] == connection) ++i;
  }
}

void FloorServer::push_due() {
  const std::int64_t now = monotonic_ns();
  while (!due_.empty() && due_.front().at <= now) {
    const Due due = due_.front();
    due_.pop_front();
    push(*due.connection);
    if (due.connection->streaming) {
      due_.push_back({.at = due.at + options_.interval_us * 1000, .connection = due.connection});
    }
  }
}

void FloorServer::send(Connection& connection, std::string_view bytes) {
  if (connection.blocked) {
    connection.unsent.append(bytes);
    return;
  }
  const ssize_t sent = ::send(connection.fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
  if (sent == static_cast<ssize_t>(bytes.size())) return;
  if (sent < 0 && errno != EAGAIN) {
    close(connection);
    return;
  }
  connection.unsent.assign(bytes.substr(static_cast<std::size_t>(std::max<ssize_t>(sent, 0))));
  connection.blocked = true;
  if (is_active(connection)) ++blocked_;
  watch(epoll_, connection.fd, &connection, EPOLLIN | EPOLLOUT, EPOLL_CTL_MOD);
}

void FloorServer::flush(Connection& connection) {
  if (!connection.blocked || connection.fd < 0) return;
  std::string& unsent = connection.unsent;
  const ssize_t sent = ::send(connection.fd, unsent.data(), unsent.size(), MSG_NOSIGNAL);
  if (sent > 0) unsent.erase(0, static_cast<std::size_t>(sent));
  if (!unsent.empty()) return;
  connection.blocked = false;
  if (is_active(connection)) --blocked_;
  watch(epoll_, connection.fd, &connection, EPOLLIN, EPOLL_CTL_MOD);
}

bool FloorServer::is_active(const Connection& connection) const {
  return connection.streaming && !is_paced();
}

void FloorServer::close(Connection& connection) {
  if (connection.blocked && is_active(connection)) --blocked_;
  connection.streaming = false;
  std::erase(active_, &connection);
  std::erase_if(due_, [&](const Due& due) { return due.connection == &connection; });
  ::close(connection.fd);
  closed_.push_back(std::move(connections_.extract(connection.fd).mapped()));
  connection.fd = -1;
}

}  // namespace sluice::bench
