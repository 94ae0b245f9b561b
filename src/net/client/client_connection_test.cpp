#include "net/client/client_connection.hpp"

#include <array>
#include <chrono>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <memory>
#include <span>
#include <string>
#include <sys/socket.h>

#include "net/http/url.hpp"
#include "net/loop/descriptor.hpp"
#include "net/loop/event_loop.hpp"

namespace sluice {
namespace {

using namespace std::chrono_literals;

/// A connection over one end of a pair of sockets. The test is the server at the other.
class ClientConnectionTest : public ::testing::Test, private ClientConnection::Owner {
 protected:
  ClientConnectionTest() {
    std::array<int, 2> ends{};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends.data()), 0);
    server = Descriptor(ends[1]);
    const Url url = parse_url("http://server.example/").value();
    connection = std::make_shared<ClientConnection>(
        loop, url, nullptr,
        ConnectionRoute{
            .dial = [end = ends[0]](const Url&) -> Result<Descriptor> { return Descriptor(end); }});
    connection->set_owner(this);
    connection->connect(10s);
    while (!is_established && loop.poll()) {
    }
    EXPECT_TRUE(is_established);
  }

  /// What has arrived at the server.
  std::string arrived() {
    std::string bytes;
    std::array<char, 4096> buffer{};
    while (true) {
      const ssize_t got = ::recv(server.get(), buffer.data(), buffer.size(), 0);
      if (got > 0) {
        bytes.append(buffer.data(), static_cast<std::size_t>(got));
        continue;
      }
      has_ended = got == 0;
      return bytes;
    }
  }

  EventLoop loop;
  Descriptor server;
  std::shared_ptr<ClientConnection> connection;
  bool is_established = false;
  bool has_ended = false;
  int drained = 0;

 private:
  void on_established() override { is_established = true; }
  void on_drained() override { ++drained; }
  void on_bytes(std::span<char> /*bytes*/) override {}
  void on_end() override {}
  void on_failure(const Error& error) override { ADD_FAILURE() << error.message; }
};

TEST_F(ClientConnectionTest, SendsAtTheEndOfTheTurnWhatWasWrittenInIt) {
  connection->write("one ");
  connection->write("two");
  EXPECT_EQ(arrived(), "");
  EXPECT_EQ(connection->queued_bytes(), 7U);
  loop.poll();
  EXPECT_EQ(arrived(), "one two");
  EXPECT_EQ(connection->queued_bytes(), 0U);
  EXPECT_EQ(drained, 1);
}

TEST_F(ClientConnectionTest, MuchDoesNotWaitForTheEndOfTheTurn) {
  connection->write("first ");
  connection->write(std::string(20'000, 'x'));
  EXPECT_EQ(arrived().size(), 20'006U);
  EXPECT_EQ(connection->queued_bytes(), 0U);
}

TEST_F(ClientConnectionTest, WhatWasWrittenIsSentBeforeItCloses) {
  connection->write("goodbye");
  connection->close();
  EXPECT_EQ(arrived(), "goodbye");
  EXPECT_TRUE(has_ended);
}

TEST_F(ClientConnectionTest, MayBeDestroyedBeforeTheTurnEnds) {
  connection->write("goodbye");
  connection.reset();
  loop.poll();
  EXPECT_EQ(arrived(), "goodbye");
  EXPECT_TRUE(has_ended);
}

TEST_F(ClientConnectionTest, WhatTheSocketDoesNotTakeAtOnceFollowsWhenItDoes) {
  const std::size_t much = std::size_t{8} << 20U;
  connection->write(std::string(much, 'x'));
  EXPECT_GT(connection->queued_bytes(), 0U);
  connection->write("end");
  std::string all;
  while (drained == 0) {
    all += arrived();
    loop.poll();
  }
  all += arrived();
  EXPECT_EQ(all.size(), much + 3);
  EXPECT_TRUE(all.ends_with("xend"));
}

}  // namespace
}  // namespace sluice
