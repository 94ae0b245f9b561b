#include "server/dispatch/listen.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <memory>
#include <string>
#include <utility>

#include "rpc/error_codes.hpp"
#include "server/dispatch/server_test_support.hpp"
#include "stream/stream_error.hpp"

namespace sluice {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class ListenTest : public ::testing::Test {
 protected:
  ListenTest() {
    bench.definition.announces_changes = true;
    bench.serve();
  }

  std::string listen(std::string_view notifications) {
    return bench.request("subscriptions/listen",
                         R"("_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",)"
                         R"("io.modelcontextprotocol/clientCapabilities":{}},"notifications":)" +
                             std::string(notifications),
                         caller);
  }
  void publish(Change::Kind kind, const std::string& uri = {}) {
    bench.changes->publish({kind, uri});
    bench.run_all();
  }

  ServerBench bench;
  RecordingCaller caller;
};

TEST_F(ListenTest, AcknowledgesFirstAndTellsOnlyWhatWasAskedFor) {
  EXPECT_EQ(listen(R"({"toolsListChanged":true,"resourceSubscriptions":["test://a"]})"), "");
  bench.run_all();
  const std::string acknowledged =
      R"(data: {"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":)"
      R"({"_meta":{"io.modelcontextprotocol/subscriptionId":1},"notifications":)"
      R"({"toolsListChanged":true,"resourceSubscriptions":["test://a"]}}})"
      "\n\n";
  EXPECT_EQ(caller.channel().written, acknowledged);
  publish(Change::Kind::prompts);
  publish(Change::Kind::resources);
  publish(Change::Kind::resource, "test://b");
  EXPECT_EQ(caller.channel().written, acknowledged);
  publish(Change::Kind::tools);
  publish(Change::Kind::resource, "test://a");
  EXPECT_EQ(caller.channel().written,
            acknowledged +
                R"(data: {"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":)"
                R"({"_meta":{"io.modelcontextprotocol/subscriptionId":1}}})"
                "\n\n"
                R"(data: {"jsonrpc":"2.0","method":"notifications/resources/updated","params":)"
                R"({"_meta":{"io.modelcontextprotocol/subscriptionId":1},"uri":"test://a"}})"
                "\n\n");
}

TEST_F(ListenTest, RefusesAClientThatTakesNoEvents) {
  caller.streams = false;
  listen(R"({"toolsListChanged":true})");
  bench.run_all();
  ASSERT_EQ(caller.channel().replies.size(), 1U);
  EXPECT_THAT(caller.channel().replies[0], HasSubstr("accept text/event-stream"));
}

TEST_F(ListenTest, EndsWithItsClient) {
  listen(R"({"promptsListChanged":true})");
  bench.run_all();
  caller.channel().close();
  const std::string written = caller.channel().written;
  publish(Change::Kind::prompts);
  EXPECT_EQ(caller.channel().written, written);
  EXPECT_EQ(bench.managers[0]->counters().open, 0U);
}

TEST_F(ListenTest, EndsGracefullyWithTheServer) {
  listen(R"({"resourcesListChanged":true})");
  bench.run_all();
  bench.changes->close();
  bench.run_all();
  EXPECT_THAT(caller.channel().written,
              HasSubstr(R"({"jsonrpc":"2.0","id":1,"result":{"resultType":"complete",)"));
  EXPECT_THAT(caller.channel().written,
              HasSubstr(R"(,"io.modelcontextprotocol/subscriptionId":1}}})"));
  EXPECT_EQ(caller.channel().finishes, 1);
}

TEST_F(ListenTest, ASlowClientMissesChangesRatherThanHoldingThem) {
  listen(R"({"toolsListChanged":true})");
  bench.run_all();
  caller.channel().writable = false;
  for (std::size_t i = 0; i < 2 * bench.policy.limits.max_chunks; ++i) {
    publish(Change::Kind::tools);
  }
  bench.run_all();
  caller.channel().drain();
  bench.run_all();
  const std::string before = caller.channel().written;
  publish(Change::Kind::tools);
  EXPECT_GT(caller.channel().written.size(), before.size()) << "it hears of later ones";
}

TEST_F(ListenTest, WhatASlowClientMissedItHearsOnce) {
  listen(R"({"toolsListChanged":true,"resourceSubscriptions":["test://a"]})");
  bench.run_all();
  caller.channel().writable = false;
  for (std::size_t i = 0; i < 2 * bench.policy.limits.max_chunks; ++i) {
    publish(Change::Kind::tools);
  }
  for (int i = 0; i < 3; ++i) bench.changes->publish({Change::Kind::resource, "test://a"});
  bench.run_all();
  const auto times = [&](std::string_view uri) {
    std::size_t count = 0;
    const std::string& written = caller.channel().written;
    for (std::size_t at = 0; (at = written.find(uri, at)) != std::string::npos; ++at) ++count;
    return count;
  };
  const std::string about = R"("uri":"test://a")";
  EXPECT_EQ(times(about), 0U);
  caller.channel().drain();
  bench.run_all();
  EXPECT_EQ(times(about), 1U);
}

TEST_F(ListenTest, AServerThatNeverChangesAgreesToNothing) {
  bench.definition.announces_changes = false;
  bench.serve();
  listen(R"({"toolsListChanged":true})");
  bench.run_all();
  EXPECT_THAT(caller.channel().written, HasSubstr(R"("notifications":{}}})"));
}

TEST_F(ListenTest, WhatIsIllTypedIsNamed) {
  for (const auto& [filter, why] :
       {std::pair("[]", "notifications must be an object"),
        std::pair(R"({"toolsListChanged":1})", "notifications.toolsListChanged must be a boolean"),
        std::pair(R"({"resourceSubscriptions":{}})", "resourceSubscriptions must be an array"),
        std::pair(R"({"resourceSubscriptions":[1]})", "resourceSubscriptions must hold strings")}) {
    EXPECT_THAT(listen(filter), HasSubstr(why));
    EXPECT_THAT(listen(filter), HasSubstr("-32602"));
  }
  std::string many = R"({"resourceSubscriptions":["")";
  for (std::size_t i = 0; i < Session::kMaxSubscriptions; ++i) many += ",\"\"";
  EXPECT_THAT(listen(many + "]}"), HasSubstr("has more than 1000 entries"));
  const std::string text(Session::kMaxSubscribedBytes + 1, 'x');
  EXPECT_THAT(listen(R"({"resourceSubscriptions":[")" + text + "\"]}"),
              HasSubstr("has more than 131072 bytes"));
}

TEST_F(ListenTest, ListeningIsModern) {
  EXPECT_THAT(bench.request("subscriptions/listen", R"("notifications":{})", caller),
              HasSubstr("-32601"));
}

TEST_F(ListenTest, WithoutMemorySaysSoOfSubscriptions) {
  const std::shared_ptr<MemoryShare> share = bench.managers[0]->memory_of("alice");
  std::size_t taken = 0;
  while (share->try_acquire(1000)) taken += 1000;
  const std::string refused = listen(R"({"toolsListChanged":true})");
  EXPECT_EQ(error_code(refused), kLimitReached);
  EXPECT_THAT(refused, HasSubstr("Your streams and subscriptions have used"));
  share->release(taken);
  const std::size_t before = bench.policy.budget.used();
  EXPECT_EQ(listen(R"({"toolsListChanged":true})"), "");
  bench.run_all();
  EXPECT_LT(bench.policy.budget.used(), before + 4096U);
}

TEST_F(ListenTest, KeepsNoVersionOfWhatIsOffered) {
  const auto take = [this](const std::shared_ptr<int>& mark) {
    bench.definition.tools[0].visible_to = [mark](const Principal&) { return true; };
    bench.dispatcher->take(RefPtr(new LoopCatalog(Catalog::make(bench.definition).value(),
                                                  *bench.results, bench.executors[0])));
    bench.definition.tools[0].visible_to = {};
  };
  auto mark = std::make_shared<int>();
  const std::weak_ptr<int> version = mark;
  take(std::exchange(mark, nullptr));
  EXPECT_EQ(listen(R"({"toolsListChanged":true})"), "");
  bench.run_all();
  ASSERT_FALSE(version.expired());
  take(std::make_shared<int>());
  EXPECT_TRUE(version.expired());
}

}  // namespace
}  // namespace sluice
