#include "server/dispatch/new_session.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <memory>
#include <string>
#include <vector>

#include "server/dispatch/forwarder.hpp"
#include "server/transport/http/endpoint_test_support.hpp"

namespace sluice {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr std::string_view kForwardedInitialize =
    R"({"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25",)"
    R"("capabilities":{},"clientInfo":{"name":"test","version":"1"}}})";

/// Keeps what it is asked, or refuses it at once.
class Keeper final : public Forwarder {
 public:
  Result<void> forward(const ForwardedMessage& /*message*/,
                       const std::shared_ptr<PendingRequest>& call) override {
    if (refuses) return fail(kInternalError, "no such server");
    kept.push_back(call);
    return {};
  }
  Result<std::shared_ptr<void>> listen(const SubscriptionFilter& /*filter*/,
                                       const std::shared_ptr<PendingRequest>& /*call*/,
                                       std::weak_ptr<ChangeListener> /*listener*/) override {
    return nullptr;
  }
  void notify(const ForwardedMessage& /*message*/) override {}

  bool refuses = false;
  std::vector<std::shared_ptr<PendingRequest>> kept;
};

class NewSessionTest : public EndpointTest {
 protected:
  NewSessionTest() { definition.forwarder = keeper; }
  void TearDown() override {
    keeper->kept.clear();
    EndpointTest::TearDown();
  }
  /// Sends an initialize, which is kept.
  Peer begin() {
    Peer peer = connect_to_endpoint();
    peer.send(post("/mcp", kForwardedInitialize));
    EXPECT_TRUE(until([&] { return !keeper->kept.empty(); }));
    EXPECT_EQ(sessions->size(), 1U);
    return peer;
  }

  std::shared_ptr<Keeper> keeper = std::make_shared<Keeper>();
};

TEST_F(NewSessionTest, LivesOnAndIsNamedWhenInitializeIsAnswered) {
  Peer peer = begin();
  keeper->kept[0]->answer_with_result(
      R"({"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"a","version":"1"}})");
  ASSERT_TRUE(peer.expect("}}"));
  EXPECT_THAT(peer.taken, HasSubstr("Mcp-Session-Id: "));
  EXPECT_EQ(sessions->size(), 1U);
}

TEST_F(NewSessionTest, IsGivenUpWhenInitializeIsRefused) {
  Peer peer = begin();
  keeper->kept[0]->fail({kInternalError, "no such server", {}});
  ASSERT_TRUE(peer.expect("}}"));
  EXPECT_THAT(peer.taken, HasSubstr("no such server"));
  EXPECT_THAT(peer.taken, Not(HasSubstr("Mcp-Session-Id")));
  EXPECT_EQ(sessions->size(), 0U);
}

TEST_F(NewSessionTest, IsGivenUpWhenInitializeIsRefusedAtOnce) {
  keeper->refuses = true;
  EXPECT_THAT(ask(post("/mcp", kForwardedInitialize)), Not(HasSubstr("Mcp-Session-Id")));
  EXPECT_EQ(sessions->size(), 0U);
}

TEST_F(NewSessionTest, IsGivenUpWhenThereIsNoRoomForTheCall) {
  std::vector<ClientQuota::Unit> taken;
  {
    Peer peer = begin();
    const std::string client = keeper->kept[0]->principal().id;
    while (ClientQuota::Unit unit = quota.take(client)) taken.push_back(std::move(unit));
    keeper->kept[0]->fail({kInternalError, "no such server", {}});
    ASSERT_TRUE(peer.expect("}}"));
    taken.push_back(quota.take(client));
  }
  const std::string reply = ask(post("/mcp", kForwardedInitialize));
  EXPECT_THAT(reply, HasSubstr("calls"));
  EXPECT_THAT(reply, Not(HasSubstr("Mcp-Session-Id")));
  EXPECT_EQ(sessions->size(), 0U);
}

TEST_F(NewSessionTest, IsGivenUpWhenItsClientGoesBeforeTheAnswer) {
  begin();
  EXPECT_TRUE(until([&] { return sessions->size() == 0; }));
}

}  // namespace
}  // namespace sluice
