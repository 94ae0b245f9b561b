#include <chrono>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>

#include "client/session/client_session.hpp"
#include "client/session/client_session_test_support.hpp"
#include "protocol/error_codes.hpp"

namespace sluice {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

using test::ClientSessionTest;

TEST_F(ClientSessionTest, FindsAModernServer) {
  open();
  EXPECT_THAT(take(), HasSubstr(R"("method":"server/discover")"));
  EXPECT_THAT(last.text, HasSubstr(R"("io.modelcontextprotocol/protocolVersion":"2026-07-28")"));
  EXPECT_THAT(last.text, HasSubstr(R"("io.modelcontextprotocol/clientInfo":{"name":"test")"));
  receive(R"({"jsonrpc":"2.0","id":1,"result":{"supportedVersions":["3000-01-01","2026-07-28"]}})");
  ASSERT_TRUE(connected && *connected);
  EXPECT_EQ((*connected)->revision->name, "2026-07-28");
  EXPECT_THAT(wire.sent, IsEmpty());
  EXPECT_EQ(loop.timers(), 0U);
}

TEST_F(ClientSessionTest, TakesAnyOtherErrorForALegacyServer) {
  for (const std::string error :
       {R"("error":{"code":-32601,"message":"?"})", R"("error":{"code":-32602,"message":"?"})",
        R"("error":7)", R"("result":[])"}) {
    connected.reset();
    open();
    reply(error);
    EXPECT_THAT(take(), HasSubstr(R"("method":"initialize")")) << error;
    EXPECT_THAT(last.text, HasSubstr(R"("protocolVersion":"2025-11-25")"));
    EXPECT_THAT(last.text, Not(HasSubstr("_meta")));
    receive(R"({"jsonrpc":"2.0","id":)" + last.id +
            R"(,"result":{"protocolVersion":"2025-03-26","capabilities":{}}})");
    ASSERT_TRUE(connected && *connected);
    EXPECT_EQ((*connected)->revision->name, "2025-03-26");
    EXPECT_THAT(take(), HasSubstr("notifications/initialized"));
  }
}

TEST_F(ClientSessionTest, TakesSilenceAndDeathForALegacyServer) {
  open();
  take();
  loop.advance(options.probe_timeout);
  EXPECT_THAT(take(), HasSubstr(R"("method":"initialize")"));
  EXPECT_THAT(wire.sent, IsEmpty()) << "no cancellation";
  // The answer to the probe comes too late.
  receive(R"({"jsonrpc":"2.0","id":1,"result":{"supportedVersions":["2026-07-28"]}})");
  EXPECT_FALSE(connected);

  connected.reset();
  open();
  take();
  wire.owner->on_lost({502, "it has ended", {}});
  loop.run();
  EXPECT_THAT(take(), HasSubstr(R"("method":"initialize")"));
  wire.owner->on_lost({502, "it has ended again", {}});
  loop.run();
  ASSERT_TRUE(connected && !*connected);
  EXPECT_EQ(connected->error().message, "it has ended again");
  EXPECT_THAT(lost, ElementsAre("it has ended again"));
}

TEST_F(ClientSessionTest, AProbesTimeCountsFromWhenTheConnectionStands) {
  wire.tells_connected = true;
  open();
  take();
  loop.advance(2 * options.probe_timeout);
  EXPECT_THAT(wire.sent, IsEmpty());
  wire.owner->on_connected("1");
  loop.advance(options.probe_timeout - 1ms);
  EXPECT_THAT(wire.sent, IsEmpty());
  loop.advance(1ms);
  EXPECT_THAT(take(), HasSubstr(R"("method":"initialize")"));
  // What begins a session has its own time, wherever that goes.
  wire.owner->on_connected("2");
  loop.advance(options.connect_timeout - 1ms);
  EXPECT_FALSE(connected);
  loop.advance(1ms);
  EXPECT_TRUE(connected && !*connected);
}

TEST_F(ClientSessionTest, AConnectionThatNeverStandsIsGivenUp) {
  wire.tells_connected = true;
  open();
  take();
  loop.advance(options.connect_timeout);
  take();
  loop.advance(options.connect_timeout);
  EXPECT_TRUE(connected && !*connected);
}

TEST_F(ClientSessionTest, AServerThatIsKnownToBeALegacyOneIsNotProbed) {
  options.expects_legacy = true;
  open();
  EXPECT_THAT(take(), HasSubstr(R"("method":"initialize")"));
  receive(R"({"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"no longer"}})");
  ASSERT_TRUE(connected && !*connected);
  EXPECT_EQ(connected->error().message, "no longer");

  // A revision that was named goes first.
  connected.reset();
  options.revision = "2026-07-28";
  open();
  EXPECT_THAT(take(), HasSubstr(R"("method":"server/discover")"));
}

TEST_F(ClientSessionTest, ARevisionThatBothKnowIsTriedOnce) {
  open();
  reply(
      R"("error":{"code":-32022,"message":"no","data":{"supported":["2025-06-18","1999-01-01"]}})");
  EXPECT_THAT(take(), HasSubstr(R"("protocolVersion":"2025-06-18")"));

  connected.reset();
  open();
  for (int i = 0; i < 2; ++i) {
    reply(R"("error":{"code":-32022,"message":"no","data":{"supported":["2026-07-28"]}})");
  }
  ASSERT_TRUE(connected && !*connected);
  EXPECT_EQ(connected->error().code, kUnsupportedProtocolVersion);
  EXPECT_THAT(wire.sent, IsEmpty());
}

TEST_F(ClientSessionTest, SpeaksOnlyWhatTheServerLists) {
  open();
  reply(R"("result":{"supportedVersions":["3000-01-01","2025-03-26","2025-06-18"]})");
  EXPECT_THAT(take(), HasSubstr(R"("protocolVersion":"2025-06-18")"));
  receive(R"({"jsonrpc":"2.0","id":2,"result":{"protocolVersion":"2025-06-18"}})");
  ASSERT_TRUE(connected && *connected);
  EXPECT_EQ((*connected)->revision->name, "2025-06-18");

  for (const std::string pinned : {"", "2026-07-28"}) {
    options.revision = pinned;
    connected.reset();
    open();
    reply(R"("result":{"supportedVersions":["3000-01-01"]})");
    ASSERT_TRUE(connected && !*connected);
    EXPECT_EQ(connected->error().code, kUnsupportedProtocolVersion);
    EXPECT_EQ(connected->error().data, R"({"supported":["3000-01-01"]})");
    EXPECT_THAT(wire.sent, IsEmpty());
  }
}

TEST_F(ClientSessionTest, AModernServerThatStartsSlowlyIsFound) {
  // It answers the probe late, and knows no `initialize`.
  open();
  take();
  loop.advance(options.probe_timeout);
  EXPECT_THAT(take(), HasSubstr(R"("id":2,"method":"initialize")"));
  receive(R"({"jsonrpc":"2.0","id":1,"result":{"supportedVersions":["2026-07-28"],"a":1}})");
  EXPECT_FALSE(connected);
  receive(R"({"jsonrpc":"2.0","id":2,"error":{"code":-32601,"message":"what?"}})");
  ASSERT_TRUE(connected && *connected);
  EXPECT_EQ((*connected)->revision->name, "2026-07-28");
  EXPECT_TRUE((*connected)->about.contains("a"));
  EXPECT_THAT(wire.sent, IsEmpty());

  // It has lost the probe, and says what it speaks.
  connected.reset();
  open();
  take();
  loop.advance(options.probe_timeout);
  const std::string refusal =
      R"("error":{"code":-32022,"message":"no","data":{"supported":["2026-07-28"]}})";
  reply(refusal);
  reply(R"("result":{"supportedVersions":["2026-07-28"]})");
  EXPECT_EQ(last.method, "server/discover");
  ASSERT_TRUE(connected && *connected);
  EXPECT_EQ((*connected)->revision->name, "2026-07-28");

  // It speaks both eras: the session that was begun counts.
  connected.reset();
  open();
  take();
  loop.advance(options.probe_timeout);
  receive(R"({"jsonrpc":"2.0","id":1,"result":{"supportedVersions":["2026-07-28"]}})");
  reply(R"("result":{"protocolVersion":"2025-11-25"})");
  ASSERT_TRUE(connected && *connected);
  EXPECT_EQ((*connected)->revision->name, "2025-11-25");
  // Nor does the late answer count when that session is replaced.
  take();
  call();
  take();
  wire.owner->on_session_over(last.id);
  reply(refusal);
  EXPECT_THAT(said, ElementsAre("-32022 no"));
}

TEST_F(ClientSessionTest, APinnedRevisionIsTheOnlyOne) {
  options.revision = "2026-07-28";
  open();
  reply(R"("error":{"code":-32022,"message":"?"})");
  ASSERT_TRUE(connected && !*connected);

  // It need not be asked.
  connected.reset();
  options.asks_first = false;
  open();
  ASSERT_TRUE(connected && *connected);
  EXPECT_EQ((*connected)->revision->name, "2026-07-28");
  EXPECT_THAT(wire.sent, IsEmpty());

  connected.reset();
  options.revision = "2025-06-18";
  open();
  reply(R"("result":{"protocolVersion":"2025-03-26","capabilities":{}})");
  ASSERT_TRUE(connected && !*connected);
  EXPECT_EQ(connected->error().message,
            "The server speaks revision \"2025-03-26\", which was not asked for");

  connected.reset();
  options.revision = "1999-01-01";
  open();
  ASSERT_TRUE(connected && !*connected);
  EXPECT_EQ(connected->error().code, kUnsupportedProtocolVersion);
  EXPECT_THAT(connected->error().message, HasSubstr("does not speak revision \"1999-01-01\""));
}

TEST_F(ClientSessionTest, ProgressDoesNotKeepConnectingAlive) {
  open();
  // The requests that find out what the server speaks offer no progress token.
  for (int second = 0; second < 60 && !connected; ++second) {
    take();
    const std::string id = last.id;
    receive(R"({"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":)" +
            id + R"(,"progress":1}})");
    loop.advance(1s);
  }
  ASSERT_TRUE(connected && !*connected);
  EXPECT_EQ(connected->error().code, kTimedOut);
}

}  // namespace
}  // namespace sluice
