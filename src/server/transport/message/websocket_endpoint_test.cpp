#include "server/transport/message/websocket_endpoint.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "server/transport/http/endpoint_test_support.hpp"

namespace sluice {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class WebSocketEndpointTest : public EndpointTest {
 protected:
  Peer open(std::string_view more_fields = "") {
    Peer peer = connect_to_endpoint();
    peer.send(get("/ws",
                  "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
                  "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n" +
                      std::string(more_fields)));
    EXPECT_TRUE(peer.expect("\r\n\r\n"));
    EXPECT_THAT(peer.taken, HasSubstr(" 101 "));
    return peer;
  }
  /// One text frame, masked with zeros.
  static std::string frame(std::string_view text) {
    std::string out = "\x81";
    if (text.size() < 126) {
      out.push_back(static_cast<char>(0x80U | text.size()));
    } else {
      out.push_back(static_cast<char>(0x80U | 126U));
      out.push_back(static_cast<char>(text.size() >> 8U));
      out.push_back(static_cast<char>(text.size()));
    }
    return out.append(4, '\0').append(text);
  }
  static std::string request(std::string_view id, std::string_view method,
                             std::string_view params) {
    return frame(R"({"jsonrpc":"2.0","id":)" + std::string(id) + R"(,"method":")" +
                 std::string(method) + R"(","params":{)" + std::string(params) + "}}");
  }
  std::string stream_member() const {
    return R"("stream_id":")" + std::string(runs.back()->id()) + "\"";
  }
  /// Starts a stream on `peer`.
  void run(Peer& peer, std::string_view more = "") {
    peer.send(request("1", "run", R"("stream":true)" + std::string(more)));
    ASSERT_TRUE(peer.expect(R"("status":"streaming_started"}})"));
  }
};

TEST_F(WebSocketEndpointTest, PushesAStreamBehindItsReply) {
  Peer peer = open();
  run(peer);
  ASSERT_EQ(runs.size(), 1U);
  runs[0]->append(ChunkKind::text, "a");
  ASSERT_TRUE(peer.expect(R"({"jsonrpc":"2.0","method":"run","params":{)" + stream_member() +
                          R"(,"seq":0,"delta":"a","end":false}})"));
  runs[0]->finish();
  EXPECT_TRUE(peer.expect(R"("seq":1,"delta":"","end":true}})"));
}

TEST_F(WebSocketEndpointTest, HoldsToTheWindow) {
  Peer peer = open();
  run(peer, R"(,"window":2)");
  for (int i = 0; i < 4; ++i) runs[0]->append(ChunkKind::text, "x");
  ASSERT_TRUE(peer.expect(R"("seq":1,"delta":"x","end":false}})"));
  settle();
  peer.receive();
  EXPECT_EQ(peer.received, "");
  peer.send(request("2", "ack", stream_member() + R"(,"seq":1)"));
  ASSERT_TRUE(peer.expect(R"("seq":2,"delta":"x","end":false}})"));
  EXPECT_TRUE(peer.taken.find("acknowledged") != std::string::npos ||
              peer.expect(R"("status":"acknowledged"}})"));
  peer.send(request("3", "ack", stream_member() + R"(,"seq":4)"));
  EXPECT_TRUE(peer.expect(R"("code":-32006)"));
}

TEST_F(WebSocketEndpointTest, ALostReaderSubscribesAgain) {
  {
    Peer peer = open();
    run(peer);
    runs[0]->append(ChunkKind::text, "a");
    ASSERT_TRUE(peer.expect(R"("seq":0,"delta":"a","end":false}})"));
  }
  settle();
  runs[0]->append(ChunkKind::text, "b");
  Peer peer = open();
  peer.send(request("2", "subscribe", stream_member() + R"(,"from_seq":1)"));
  ASSERT_TRUE(peer.expect(R"("status":"subscribed"}})"));
  ASSERT_TRUE(peer.expect(R"("seq":1,"delta":"b","end":false}})"));
  EXPECT_THAT(peer.taken, Not(HasSubstr(R"("seq":0)")));
  peer.send(request("3", "unsubscribe", stream_member()));
  ASSERT_TRUE(peer.expect(R"("status":"unsubscribed"}})"));
  runs[0]->append(ChunkKind::text, "c");
  peer.send(request("4", "unsubscribe", stream_member()));
  ASSERT_TRUE(peer.expect(R"("code":-32001)"));
  EXPECT_THAT(peer.taken, Not(HasSubstr(R"("delta":"c")")));
  peer.send(request("5", "subscribe", stream_member() + R"(,"from_seq":9)"));
  EXPECT_TRUE(peer.expect(R"("code":-32006)"));
}

TEST_F(WebSocketEndpointTest, AReaderIsToldThatItsStreamIsGone) {
  Peer peer = open();
  run(peer);
  manager.discard(*runs[0]);
  ASSERT_TRUE(peer.expect(R"("code":-32005)"));
  EXPECT_THAT(peer.taken, HasSubstr(R"("method":"run")"));
}

TEST_F(WebSocketEndpointTest, RequestsAreCancelledByTheirIds) {
  Peer peer = open();
  peer.send(request("123456789012345678901234567890", "tools/call", R"("name":"later")"));
  ASSERT_TRUE(until([&] { return calls.size() == 1; }));
  // An id that is still unanswered cannot be used again.
  peer.send(request("123456789012345678901234567890", "tools/call", R"("name":"later")"));
  ASSERT_TRUE(peer.expect(R"("id":123456789012345678901234567890,"error":{"code":-32600)"));
  peer.send(frame(R"({"jsonrpc":"2.0","method":"notifications/cancelled",)"
                  R"("params":{"requestId":123456789012345678901234567890}})"));
  EXPECT_TRUE(until([&] { return calls[0]->over(); }));
  peer.send(request("7", "tools/call", R"("name":"later")"));
  ASSERT_TRUE(until([&] { return calls.size() == 2; }));
  peer.close();
  EXPECT_TRUE(until([&] { return calls[1]->over(); }));
}

TEST_F(WebSocketEndpointTest, TakesTheSubprotocolMcpWhereItIsOffered) {
  EXPECT_THAT(open().taken, Not(HasSubstr("Sec-WebSocket-Protocol")));
  EXPECT_THAT(open("Sec-WebSocket-Protocol: chat\r\n").taken,
              Not(HasSubstr("Sec-WebSocket-Protocol")));
  EXPECT_THAT(open("Sec-WebSocket-Protocol: chat, mcp\r\n").taken,
              HasSubstr("\r\nSec-WebSocket-Protocol: mcp\r\n"));
  EXPECT_THAT(open("Sec-WebSocket-Protocol: chat\r\nSec-WebSocket-Protocol: mcp\r\n").taken,
              HasSubstr("\r\nSec-WebSocket-Protocol: mcp\r\n"));
}

TEST_F(WebSocketEndpointTest, AnswersWhatIsNoMessage) {
  Peer peer = open();
  peer.send(frame("{"));
  ASSERT_TRUE(peer.expect(R"("code":-32700)"));
  peer.send(request("1", "ping", ""));
  EXPECT_TRUE(peer.expect(R"({"jsonrpc":"2.0","id":1,"result":{}})"));
}

TEST_F(WebSocketEndpointTest, RequestsWaitInTheMiddleware) {
  std::vector<Resolver<bool>> asked;
  int waiting = 0;
  definition.middleware.push_back([&](Request& request) -> Task<> {
    struct Here {
      explicit Here(int& those) : count(&those) { ++*count; }
      ~Here() { --*count; }
      Here(const Here&) = delete;
      Here& operator=(const Here&) = delete;
      int* count;
    };
    const Here here(waiting);
    const bool allowed = co_await request.callback<bool>(
        [&](const Resolver<bool>& resolver) { asked.push_back(resolver); });
    if (!allowed) throw Error{403, "Not for you"};
    co_await request.next();
  });
  Peer peer = open();
  peer.send(request("1", "ping", "") + request("2", "run", R"("stream":true)") +
            request("3", "ping", ""));
  ASSERT_TRUE(until([&] { return asked.size() == 3; }));
  asked[2].succeed(false);
  ASSERT_TRUE(peer.expect(R"({"jsonrpc":"2.0","id":3,"error":{"code":403)"));
  asked[1].succeed(true);
  ASSERT_TRUE(peer.expect(R"("status":"streaming_started"}})"));
  runs.at(0)->append(ChunkKind::text, "a");
  ASSERT_TRUE(peer.expect(R"("seq":0,"delta":"a","end":false}})"));
  peer.close();
  EXPECT_TRUE(until([&] { return waiting == 0; })) << "the one whose peer has gone";
  EXPECT_EQ(quota.in_use(), 0U);
  asked[0].succeed(true);
  settle();
}

TEST_F(WebSocketEndpointTest, EndsWithTheKeyOfItsCaller) {
  require({{"ann", "key-of-ann"}, {"bob", "key-of-bob"}});
  Peer ann = open("X-API-Key: key-of-ann\r\n");
  Peer bob = open("Authorization: Bearer key-of-bob\r\n");
  policy->replace_authenticator(std::make_shared<ApiKeys>(
      std::vector<std::pair<std::string, std::string>>{{"ann", "key-of-ann"}, {"bob", "another"}}));
  ann.send(request("1", "ping", ""));
  EXPECT_TRUE(ann.expect(R"({"jsonrpc":"2.0","id":1,"result":{}})"));
  bob.send(request("2", "run", R"("stream":true)"));
  EXPECT_TRUE(bob.expect("The API key of this connection is not valid any more"));
  EXPECT_THAT(bob.taken, HasSubstr("\x03\xF0"));  // 1008
  EXPECT_TRUE(runs.empty());
}

}  // namespace
}  // namespace sluice
