#pragma once

#include <arpa/inet.h>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <gtest/gtest.h>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <sys/socket.h>
#include <thread>
#include <utility>
#include <vector>

#include "net/http/url.hpp"
#include "net/loop/acceptor.hpp"
#include "net/loop/descriptor.hpp"
#include "net/loop/event_loop.hpp"

namespace sluice {

/// Runs the loop until `done()`, for at most ten seconds.
inline bool run_until(EventLoop& loop, const std::function<bool()>& done) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  loop.poll();
  while (!done()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    if (!loop.poll()) std::this_thread::yield();
  }
  return true;
}

/// A server that sends exactly what a test tells it to, on the test's own loop.
class ScriptedServer {
 public:
  class Peer final : private EventLoop::Watcher {
   public:
    Peer(EventLoop& loop, Descriptor socket) : loop_(&loop), socket_(std::move(socket)) {
      loop_->watch(socket_.get(), *this);
    }
    ~Peer() override { close(); }
    Peer(const Peer&) = delete;
    Peer& operator=(const Peer&) = delete;

    /// Runs the loop until the socket has accepted all of `bytes`.
    void send(std::string_view bytes) {
      while (!bytes.empty()) {
        const ssize_t sent = ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
        if (sent > 0) {
          bytes.remove_prefix(static_cast<std::size_t>(sent));
        } else if (errno == EAGAIN) {
          loop_->poll();
        } else {
          return;
        }
      }
    }
    /// Returns how many bytes the socket accepts now.
    std::size_t offer(std::string_view bytes) {
      const ssize_t sent = ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
      return sent > 0 ? static_cast<std::size_t>(sent) : 0;
    }
    void close() {
      if (!socket_) return;
      loop_->unwatch(socket_.get(), *this);
      socket_.close();
    }

    std::string received;
    bool gone = false;

   private:
    void on_ready(std::uint32_t /*events*/) override {
      std::array<char, 4096> buffer{};
      for (;;) {
        const ssize_t size = ::recv(socket_.get(), buffer.data(), buffer.size(), 0);
        if (size > 0) {
          received.append(buffer.data(), static_cast<std::size_t>(size));
        } else {
          gone = gone || size == 0 || errno != EAGAIN;
          return;
        }
      }
    }

    EventLoop* loop_;
    Descriptor socket_;
  };

  explicit ScriptedServer(EventLoop& event_loop) : loop(event_loop) {
    HostPort place{.host = "127.0.0.1"};
    std::vector<Descriptor> sockets = listen_on(place).value();
    port = place.port;
    acceptor = std::make_unique<Acceptor>(
        loop, std::move(sockets.front()),
        [this](Descriptor socket, const PeerAddress&) {
          peers.push_back(std::make_unique<Peer>(loop, std::move(socket)));
        },
        errors);
  }

  [[nodiscard]] Url url(const std::string& target = "/") const {
    return {.scheme = "http", .host = "127.0.0.1", .port = port, .target = target};
  }

  /// The n-th connection once it has received something that ends with `end`.
  Peer& peer(std::size_t n, std::string_view end = "\r\n\r\n") {
    const bool came =
        run_until(loop, [&] { return peers.size() > n && peers[n]->received.ends_with(end); });
    EXPECT_TRUE(came) << "connection " << n << " has not sent '" << end << "'";
    if (!came) throw std::runtime_error("the client did not send what was expected");
    return *peers[n];
  }

  EventLoop& loop;
  std::uint16_t port = 0;
  std::atomic<std::uint64_t> errors = 0;
  std::unique_ptr<Acceptor> acceptor;  // null: the server does not listen
  std::vector<std::unique_ptr<Peer>> peers;
};

}  // namespace sluice
