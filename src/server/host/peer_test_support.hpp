#pragma once

#include <arpa/inet.h>
#include <cstdint>
#include <gtest/gtest.h>
#include <string>
#include <string_view>
#include <sys/socket.h>
#include <unistd.h>
#include <utility>

namespace sluice {

/// A blocking connection to the host, which runs on threads of its own.
class Peer {
 public:
  explicit Peer(std::uint16_t port) : socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(port);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::connect(socket_, reinterpret_cast<const sockaddr*>(&to), sizeof to), 0);
    const timeval limit{.tv_sec = 20, .tv_usec = 0};
    ::setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  }
  ~Peer() { ::close(socket_); }
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;

  void send(std::string_view bytes) {
    EXPECT_EQ(::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
  }
  void get(const std::string& path) {
    send("GET " + path + " HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n");
  }
  void post(std::string_view message) {
    send("POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: " +
         std::to_string(message.size()) + "\r\n\r\n");
    send(message);
  }
  /// What comes up to `end`, or all there is if the connection closes before.
  std::string until(std::string_view end) {
    while (received_.find(end) == std::string::npos && receive()) {
    }
    const auto found = received_.find(end);
    const std::size_t size = found == std::string::npos ? received_.size() : found + end.size();
    std::string taken = received_.substr(0, size);
    received_.erase(0, size);
    return taken;
  }
  std::string rest() {
    while (receive()) {
    }
    return std::exchange(received_, {});
  }

 private:
  bool receive() {
    char buffer[4096];
    const ssize_t size = ::recv(socket_, buffer, sizeof buffer, 0);
    if (size > 0) received_.append(buffer, static_cast<std::size_t>(size));
    return size > 0;
  }

  int socket_;
  std::string received_;
};

}  // namespace sluice
