#include <chrono>
#include <functional>
#include <gtest/gtest.h>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <tuple>
#include <utility>

#include "sluice/client.hpp"
#include "ways.hpp"

namespace sluice::client_tests {
namespace {

using namespace std::chrono_literals;

class ClientWatchTest : public ::testing::TestWithParam<WayAndRevision> {
 protected:
  Client connect() {
    return served.connect(std::get<0>(GetParam()), {.revision = std::get<1>(GetParam())});
  }
  Served served;
};

/// Where the test can change the server.
class ClientChangeTest : public ClientWatchTest {};

INSTANTIATE_TEST_SUITE_P(All, ClientWatchTest, ::testing::ValuesIn(ways()), name_of_way);
INSTANTIATE_TEST_SUITE_P(All, ClientChangeTest, ::testing::ValuesIn(ways({Way::child})),
                         name_of_way);

/// Waits for a notification of this method, and makes the change until it comes: a stream of
/// notifications opens in its own time.
std::optional<Notification> wait_for(Watch& watch, const std::string& method,
                                     const std::function<void()>& change) {
  std::jthread changing([&change](const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      change();
      std::this_thread::sleep_for(1ms);
    }
  });
  while (auto told = watch.next()) {
    if (told->method == method) return told;
  }
  return std::nullopt;
}

TEST_P(ClientChangeTest, HearsOfChanges) {
  Client client = connect();
  Watch watch = client.watch({.tools = false, .uris = {"text://motto"}});
  const auto updated = wait_for(watch, "notifications/resources/updated",
                                [this] { served.server().resource_updated("text://motto"); });
  ASSERT_TRUE(updated);
  EXPECT_EQ(updated->params.at("uri"), "text://motto");
  ASSERT_TRUE(wait_for(watch, "notifications/prompts/list_changed", [this] {
    served.server().tools_changed();
    served.server().prompts_changed();
  }));
  watch.cancel();
  while (const auto told = watch.next()) {
    EXPECT_NE(told->method, "notifications/tools/list_changed");
  }
  EXPECT_FALSE(watch.next());
}

TEST_P(ClientWatchTest, RefusalsAreErrors) {
  Client client = connect();
  std::stop_source stop;
  Watch stopped = client.watch({.stop = stop.get_token()});
  stop.request_stop();
  while (stopped.next()) {
  }
  if (std::get<1>(GetParam()).empty()) return;
  Watch watch = client.watch({.uris = {"nowhere://at/all"}});
  EXPECT_THROW(
      {
        while (watch.next()) {
        }
      },
      Error);
}

}  // namespace
}  // namespace sluice::client_tests
