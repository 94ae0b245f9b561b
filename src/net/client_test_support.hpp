#pragma once

#include <array>
#include <chrono>
#include <functional>
#include <gtest/gtest.h>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <boost/asio/buffer.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/write.hpp>

#include "net/event_loop.hpp"
#include "net/url.hpp"

namespace sluice {

/// Runs the loop until `done()`, for at most ten seconds.
inline bool run_until(EventLoop& loop, const std::function<bool()>& done) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  loop.poll();
  while (!done()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    loop.context().run_one_until(deadline);
  }
  return true;
}

/// A server that says exactly what a test tells it to, on the test's own loop.
class ScriptedServer {
 public:
  using tcp = boost::asio::ip::tcp;

  struct Peer {
    explicit Peer(tcp::socket accepted) : socket(std::move(accepted)) {}

    void send(std::string_view bytes) {
      boost::asio::write(socket, boost::asio::buffer(bytes.data(), bytes.size()));
    }
    void close() { socket.close(); }
    void read() {
      socket.async_read_some(boost::asio::buffer(buffer),
                             [this](const boost::system::error_code& error, std::size_t size) {
                               received.append(buffer.data(), size);
                               if (error) {
                                 gone = true;
                               } else {
                                 read();
                               }
                             });
    }

    tcp::socket socket;
    std::string received;
    bool gone = false;
    std::array<char, 4096> buffer{};
  };

  explicit ScriptedServer(EventLoop& event_loop)
      : loop(event_loop),
        acceptor(event_loop.context(), tcp::endpoint(boost::asio::ip::address_v4::loopback(), 0)) {
    accept();
  }

  [[nodiscard]] Url url(const std::string& target = "/") const {
    return {.scheme = "http",
            .host = "127.0.0.1",
            .port = acceptor.local_endpoint().port(),
            .target = target};
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
  tcp::acceptor acceptor;
  std::vector<std::unique_ptr<Peer>> peers;

 private:
  void accept() {
    acceptor.async_accept([this](const boost::system::error_code& error, tcp::socket socket) {
      if (error) return;
      peers.push_back(std::make_unique<Peer>(std::move(socket)));
      peers.back()->read();
      accept();
    });
  }
};

}  // namespace sluice
