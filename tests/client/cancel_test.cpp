// Calls that nobody waits for any more.

#include <atomic>
#include <chrono>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stop_token>
#include <string>
#include <tuple>
#include <utility>

#include "sluice/client.hpp"
#include "ways.hpp"

namespace sluice::client_tests {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

class ClientCancelTest : public ::testing::TestWithParam<WayAndRevision> {
 protected:
  [[nodiscard]] Client connect(ClientOptions options = {}) {
    options.revision = std::get<1>(GetParam());
    return served.connect(std::get<0>(GetParam()), std::move(options));
  }
  Served served;
};

INSTANTIATE_TEST_SUITE_P(All, ClientCancelTest, ::testing::ValuesIn(ways()), name_of_way);

TEST_P(ClientCancelTest, CancelsWhatIsDropped) {
  Client client = connect();
  {
    auto call = client.call("hang");
  }
  auto call = client.call("hang");
  call.cancel();
  EXPECT_FALSE(call.next());
  try {
    call.result();
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.code, kCancelled);
  }
  std::stop_source stop;
  auto stopped = client.call("hang", {}, {.stop = stop.get_token()});
  EXPECT_FALSE(stopped.is_ready());
  stop.request_stop();
  EXPECT_TRUE(stopped.is_ready());
  // The connection still works.
  EXPECT_THAT(client.call("add", {{"a", 1}, {"b", 1}}).result().text(), HasSubstr("2"));
}

TEST_P(ClientCancelTest, TheServerHearsOfWhatIsDroppedStoppedOrCancelled) {
  Client client = connect();
  const auto await_server = [&client](int begun, int ended) {
    const json::object wanted = {{"begun", begun}, {"ended", ended}};
    EXPECT_EQ(client.call("await_hanging", wanted, {.timeout = 30s}).result().text(),
              std::to_string(begun) + " " + std::to_string(ended));
  };
  {
    const auto dropped = client.call("hang");
    await_server(1, 0);
  }
  await_server(1, 1);
  std::stop_source stop;
  const auto stopped = client.call("hang", {}, {.stop = stop.get_token()});
  await_server(2, 1);
  stop.request_stop();
  await_server(2, 2);
  auto cancelled = client.call("hang");
  await_server(3, 2);
  cancelled.cancel();
  await_server(3, 3);
}

TEST_P(ClientCancelTest, WhatWasStoppedBeforeIsNotSent) {
  std::atomic<int> sent = 0;
  Client client = connect({.on_traffic = [&sent](const Traffic& traffic) {
    if (traffic.is_sent && traffic.message.contains("too late")) ++sent;
  }});
  std::stop_source stop;
  stop.request_stop();
  auto call = client.call("add", {{"a", "too late"}}, {.stop = stop.get_token()});
  EXPECT_TRUE(call.is_ready());
  // It would have gone before this one.
  EXPECT_THAT(client.call("add", {{"a", 1}, {"b", 1}}).result().text(), HasSubstr("2"));
  EXPECT_EQ(sent, 0);
}

TEST_P(ClientCancelTest, StopsAsAWhole) {
  std::stop_source stop;
  Client client = connect({.stop = stop.get_token()});
  auto call = client.call("hang");
  std::stop_source own;
  auto other = client.call("hang", {}, {.stop = own.get_token()});
  own.request_stop();
  EXPECT_TRUE(other.is_ready());
  EXPECT_FALSE(call.is_ready());
  stop.request_stop();
  EXPECT_TRUE(call.is_ready());
  EXPECT_TRUE(client.call("hang").is_ready());
  try {
    static_cast<void>(connect({.stop = stop.get_token()}));
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.code, kCancelled);
  }
}

TEST_P(ClientCancelTest, GivesUpInTime) {
  Client client = connect();
  try {
    client.call("hang", {}, {.timeout = 20ms}).result();
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.code, kTimedOut);
    EXPECT_THAT(error.message, HasSubstr("it took too long"));
  }
}

}  // namespace
}  // namespace sluice::client_tests
