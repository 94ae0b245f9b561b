// Replies that begin before the links have sent all of their messages.

#include <cstddef>
#include <gtest/gtest.h>
#include <string>
#include <string_view>

#include "client/link/http_link.hpp"
#include "client/link/nobody.hpp"
#include "client/link/sse_link.hpp"
#include "net/client/client_test_support.hpp"

namespace sluice {
namespace {

/// More than what sockets hold.
constexpr std::size_t kLong = std::size_t{32} << 20U;
constexpr std::string_view kAccepted =
    "HTTP/1.1 202 Accepted\r\nTransfer-Encoding: chunked\r\n\r\n";
constexpr std::string_view kRefused =
    "HTTP/1.1 400 Bad Request\r\nTransfer-Encoding: chunked\r\n\r\n";
constexpr std::string_view kStream = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n";

class EarlyReplyTest : public ::testing::Test {
 protected:
  /// The server sends `head` before it has read the first message, which has connection `n`, and
  /// does not end its reply. It gets both messages whole.
  void two_arrive(ServerLink& link, std::size_t n, std::string_view head) {
    ASSERT_TRUE(link.send({.text = std::string(kLong, 'x') + "!", .method = "notifications/x"}));
    ASSERT_TRUE(link.send({.text = "later", .method = "notifications/x"}));
    ASSERT_TRUE(run_until(loop, [&] { return server.peers.size() > n; }));
    server.peers[n]->send(head);
    server.peer(n, "!");
    server.peer(n + 1, "later");
  }
  [[nodiscard]] HttpLinkOptions http_options() const { return {.url = server.url("/mcp")}; }

  EventLoop loop;
  ScriptedServer server{loop};
};

TEST_F(EarlyReplyTest, HoldsUpNoLaterNotification) {
  HttpLink link(loop, http_options());
  link.open(nobody());
  two_arrive(link, 0, kAccepted);
}

TEST_F(EarlyReplyTest, ThatRefusesTheMessageHoldsUpNoLaterNotification) {
  HttpLink link(loop, http_options());
  link.open(nobody());
  two_arrive(link, 0, kRefused);
}

TEST_F(EarlyReplyTest, AStreamThatNobodyReadsIsNotEndedBeforeTheMessageIsSent) {
  HttpLink link(loop, http_options());
  link.open(nobody());
  two_arrive(link, 0, kStream);
}

TEST_F(EarlyReplyTest, HoldsUpNoLaterNotificationOverTheOlderTransport) {
  for (const std::string_view head : {kAccepted, kRefused}) {
    SseLink link(loop, {.url = server.url("/sse")});
    link.open(nobody());
    const std::size_t stream = server.peers.size();
    server.peer(stream).send(std::string(kStream) + "event: endpoint\ndata: /m\n\n");
    two_arrive(link, stream + 1, head);
  }
}

}  // namespace
}  // namespace sluice
