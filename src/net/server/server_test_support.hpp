#pragma once

#include <arpa/inet.h>
#include <array>
#include <chrono>
#include <fcntl.h>
#include <functional>
#include <gtest/gtest.h>
#include <memory>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string>
#include <string_view>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>

#include "net/loop/event_loop.hpp"
#include "net/server/http_server.hpp"

namespace sluice {

/// A server on a loop that the test drives, and raw sockets to talk to it.
class ServerTest : public ::testing::Test, protected HttpHandler {
 protected:
  /// A non-blocking client socket. Receives only when asked to.
  class Peer {
   public:
    Peer(ServerTest& test, std::uint16_t port, int receive_buffer = 0) : test_(&test) {
      socket_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
      if (receive_buffer > 0) {
        ::setsockopt(socket_, SOL_SOCKET, SO_RCVBUF, &receive_buffer, sizeof receive_buffer);
      }
      sockaddr_in address{};
      address.sin_family = AF_INET;
      address.sin_port = htons(port);
      address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
      EXPECT_EQ(::connect(socket_, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
      const int on = 1;
      ::setsockopt(socket_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
      ::fcntl(socket_, F_SETFL, O_NONBLOCK);
    }
    Peer(Peer&& other) noexcept
        : received(std::move(other.received)),
          ended(other.ended),
          heard(std::move(other.heard)),
          audit(std::exchange(other.audit, {})),
          test_(other.test_),
          socket_(std::exchange(other.socket_, -1)) {}
    ~Peer() {
      close();
      if (audit) audit(heard);
    }

    void close() {
      if (socket_ >= 0) ::close(std::exchange(socket_, -1));
    }
    void reset() {
      const linger now{.l_onoff = 1, .l_linger = 0};
      ::setsockopt(socket_, SOL_SOCKET, SO_LINGER, &now, sizeof now);
      close();
    }
    void end() { ::shutdown(socket_, SHUT_WR); }

    void send(std::string_view bytes) {
      while (!bytes.empty()) {
        const ssize_t sent = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
        if (sent > 0) bytes.remove_prefix(static_cast<std::size_t>(sent));
        if (sent < 0 && errno != EAGAIN) return;
        if (!bytes.empty()) test_->loop.poll();
      }
    }
    /// Sends what the socket accepts at once. Returns how many bytes, or -1.
    ssize_t try_send(std::string_view bytes) {
      return ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    }
    /// Appends what has arrived to `received`. Returns how many bytes.
    std::size_t receive() {
      std::array<char, 65536> piece;
      const ssize_t got = ::recv(socket_, piece.data(), piece.size(), 0);
      if (got == 0 || (got < 0 && errno != EAGAIN)) ended = true;
      if (got <= 0) return 0;
      received.append(piece.data(), static_cast<std::size_t>(got));
      if (audit) heard.append(piece.data(), static_cast<std::size_t>(got));
      return static_cast<std::size_t>(got);
    }
    /// Waits until `received` has `end`, and moves all up to there to `taken`. Returns false if it
    /// does not arrive.
    bool expect(std::string_view end) {
      const bool came = test_->until([&] {
        receive();
        return received.find(end) != std::string::npos;
      });
      taken.clear();
      if (!came) return false;
      const std::size_t size = received.find(end) + end.size();
      taken = received.substr(0, size);
      received.erase(0, size);
      return true;
    }
    bool expect_end() {
      return test_->until([&] {
        receive();
        return ended;
      });
    }

    std::string received;
    std::string taken;
    bool ended = false;
    std::string heard;  // everything received, if there is an audit at the end
    std::function<void(std::string_view bytes)> audit;

   private:
    ServerTest* test_;
    int socket_ = -1;
  };

  ServerTest() {
    options.clock = &clock;
    options.time_of_day = [] {
      return std::chrono::system_clock::time_point(std::chrono::seconds(784111777));
    };
    options.tick = std::chrono::milliseconds(1);
  }

  // The server's handlers may refer to the derived test.
  void TearDown() override { server.reset(); }

  void on_request(const HttpRequest& request, HttpExchangePtr exchange) override {
    handle(request, std::move(exchange));
  }
  [[nodiscard]] bool streams_body(const HttpRequest& head) const override {
    return streams && streams(head);
  }
  std::unique_ptr<HeadVerdict> judge(const HttpRequest& head) override {
    return judges ? judges(head) : nullptr;
  }
  [[nodiscard]] std::string head_lines(const HttpRequest& head) const override {
    return lines_of ? lines_of(head) : std::string();
  }

  /// Runs the loop until `done`, for at most ten seconds.
  bool until(const std::function<bool()>& done) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (!done()) {
      if (std::chrono::steady_clock::now() > deadline) return false;
      if (!loop.poll()) std::this_thread::yield();
    }
    return true;
  }
  /// Advances the clock by `by`, and lets the server see it.
  void pass(Duration by) {
    clock.advance(by);
    bool ticked = false;
    loop.schedule_at(loop.clock().now() + 3 * options.tick, [&ticked] { ticked = true; });
    ASSERT_TRUE(until([&] { return ticked; }));
    settle();
  }

  /// Runs the loop until nothing is ready.
  void settle() {
    ASSERT_TRUE(until([this] { return !loop.poll(); }));
  }

  Peer connect(int receive_buffer = 0) {
    if (!server) start();
    return Peer(*this, port, receive_buffer);
  }
  void start() {
    server = std::make_unique<HttpServer>(std::vector<EventLoop*>{&loop},
                                          std::vector<HttpHandler*>{this}, options);
    port = server->listen({"127.0.0.1", 0}).value();
  }

  HttpServerOptions options;
  ManualClock clock;
  EventLoop loop;
  std::function<void(const HttpRequest&, HttpExchangePtr)> handle;
  std::function<bool(const HttpRequest&)> streams;
  std::function<std::unique_ptr<HeadVerdict>(const HttpRequest&)> judges;
  std::function<std::string(const HttpRequest&)> lines_of;
  std::unique_ptr<HttpServer> server;
  std::uint16_t port = 0;
};

inline std::string get(std::string_view target, std::string_view headers = {}) {
  return std::string("GET ")
      .append(target)
      .append(" HTTP/1.1\r\nHost: test\r\n")
      .append(headers)
      .append("\r\n");
}

inline std::string post(std::string_view target, std::string_view body,
                        std::string_view headers = {}) {
  return std::string("POST ")
      .append(target)
      .append(" HTTP/1.1\r\nHost: test\r\nContent-Length: ")
      .append(std::to_string(body.size()))
      .append("\r\n")
      .append(headers)
      .append("\r\n")
      .append(body);
}

}  // namespace sluice
