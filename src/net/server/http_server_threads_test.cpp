#include <array>
#include <atomic>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>
#include <thread>
#include <vector>

#include "net/loop/descriptor.hpp"
#include "net/server/http_server.hpp"
#include "net/server/server_test_support.hpp"

namespace sluice {
namespace {

using namespace std::chrono_literals;
using ::testing::EndsWith;
using ::testing::HasSubstr;

class Client {
 public:
  explicit Client(std::uint16_t port) : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::connect(socket_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  }
  void send(const std::string& request) const {
    EXPECT_EQ(::send(socket_.get(), request.data(), request.size(), 0),
              static_cast<ssize_t>(request.size()));
  }
  /// Receives until the reply ends with `end`, or the server closes.
  std::string read_until(std::string_view end) const {
    std::string reply;
    std::array<char, 1000> piece;
    while (end.empty() || !reply.ends_with(end)) {
      const ssize_t got = ::recv(socket_.get(), piece.data(), piece.size(), 0);
      if (got <= 0) break;
      reply.append(piece.data(), static_cast<std::size_t>(got));
    }
    return reply;
  }

 private:
  Descriptor socket_;
};

void shut_down(HttpServer& server, LoopPool& pool) {
  std::atomic<bool> done = false;
  server.shutdown({SteadyClock().now() + 5s}, [&] { done = true; });
  while (!done) std::this_thread::yield();
  pool.stop();
}

TEST(HttpServerThreadsTest, AConnectionGoesOnWhereItsHandlerWants) {
  /// Answers on a later turn with its number, and sends the connection to the next loop.
  class Handler final : public HttpHandler {
   public:
    void on_request(const HttpRequest& request, HttpExchangePtr exchange) override {
      Executor& home = exchange->executor();
      home.post([this, body = std::string(request.body), exchange = std::move(exchange)] {
        exchange->continue_on(*next);
        exchange->reply(200, "text/plain", body + " on " + std::to_string(number) + ";");
      });
    }
    std::size_t number = 0;
    Executor* next = nullptr;
  };
  LoopPool pool(3);
  const std::vector<EventLoop*> loops = pool.loops();
  std::array<Handler, 3> handlers;
  for (std::size_t i = 0; i < 3; ++i) {
    handlers[i].number = i;
    handlers[i].next = loops[(i + 1) % 3];
  }
  HttpServer server(loops, {&handlers[0], &handlers[1], &handlers[2]});
  const std::uint16_t port = server.listen({"127.0.0.1", 0}).value();
  pool.start();
  const Client client(port);
  for (int i = 0; i < 30; ++i) {
    client.send(post("/", "request " + std::to_string(i)));
    const std::string expected =
        "request " + std::to_string(i) + " on " + std::to_string(i % 3) + ";";
    EXPECT_THAT(client.read_until(expected), HasSubstr(expected));
  }
  // Input that has been read ahead moves with the connection, and so does what has not been read
  // yet.
  std::string many;
  for (int i = 0; i < 300; ++i) many += post("/", std::string(1000, 'x') + std::to_string(i));
  client.send(many + post("/", "the last"));
  const std::string replies = client.read_until("the last on 0;");
  std::size_t at = 0;
  for (int i = 0; i < 300; ++i) {
    at = replies.find("x" + std::to_string(i) + " on " + std::to_string(i % 3) + ";", at);
    ASSERT_NE(at, std::string::npos) << i;
  }
  EXPECT_EQ(server.stats().connections_total, 1U);
  shut_down(server, pool);
  EXPECT_EQ(server.stats().connections, 0U);
  EXPECT_EQ(server.stats().parked, 0U);
}

TEST(HttpServerThreadsTest, AConnectionMayMoveWhenItsOutputHasDrained) {
  class Handler final : public HttpHandler {
   public:
    void on_request(const HttpRequest& request, HttpExchangePtr exchange) override {
      exchange->executor().post(
          [this, exchange = std::move(exchange), target = std::string(request.target)] {
            exchange->continue_on(*next);
            exchange->start(200, "text/plain");
            const bool drains = ++count % 2 == 0;
            if (drains) exchange->on_drain([exchange] { exchange->finish(); });
            exchange->write(std::string(300'000, 'x') + target);
            if (!drains) exchange->finish();
          });
    }
    Executor* next = nullptr;
    int count = 0;
  };
  LoopPool pool(2);
  std::array<Handler, 2> handlers;
  for (std::size_t i = 0; i < 2; ++i) handlers[i].next = &pool.loop(1 - i);
  HttpServer server(pool.loops(), {&handlers[0], &handlers[1]});
  const std::uint16_t port = server.listen({"127.0.0.1", 0}).value();
  pool.start();
  const Client client(port);
  for (int round = 0; round < 8; ++round) {
    client.send(get("/1") + get("/2") + get("/3"));
    static constexpr std::string_view kLast = "/3\r\n0\r\n\r\n";
    const std::string replies = client.read_until(kLast);
    ASSERT_THAT(replies, EndsWith(kLast)) << round;
    ASSERT_EQ(std::ranges::count(replies, 'x'), 900'003) << round;
  }
  shut_down(server, pool);
  EXPECT_EQ(server.stats().connections, 0U);
}

TEST(HttpServerThreadsTest, DealsConnectionsOutToItsLoops) {
  class Echo final : public HttpHandler {
   public:
    void on_request(const HttpRequest& request, HttpExchangePtr exchange) override {
      ++requests;
      exchange->reply(200, "text/plain", request.target);
    }
    std::atomic<int> requests = 0;
  };
  LoopPool pool(3);
  std::array<Echo, 3> handlers;
  HttpServer server(pool.loops(), {&handlers[0], &handlers[1], &handlers[2]});
  const std::uint16_t port = server.listen({"localhost", 0}).value();
  pool.start();
  for (int i = 0; i < 9; ++i) {
    const Client client(port);
    client.send(get("/echo", "Connection: close\r\n"));
    EXPECT_TRUE(client.read_until({}).ends_with("/echo"));
  }
  for (const Echo& handler : handlers) EXPECT_EQ(handler.requests, 3);
  shut_down(server, pool);
  EXPECT_EQ(server.stats().connections, 0U);
  EXPECT_EQ(server.stats().requests_total, 9U);
}

}  // namespace
}  // namespace sluice
