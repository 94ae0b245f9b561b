#include "engine/openai/websocket_source.hpp"

#include <chrono>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/openai/dialect.hpp"
#include "engine/openai/remote_run.hpp"
#include "engine/openai/responses_request.hpp"
#include "json/members.hpp"
#include "net/client/client_test_support.hpp"
#include "net/websocket/websocket.hpp"
#include "rpc/error_codes.hpp"

namespace sluice {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::Not;

/// What a client has sent over a WebSocket.
struct Heard final : WebSocketEvents {
  void on_message(WebSocketOpcode, std::string_view payload) override {
    messages.emplace_back(payload);
  }
  void on_ping(std::string_view) override {}
  void on_pong(std::string_view) override {}
  void on_close(int, std::string_view) override {}
  std::vector<std::string> messages;
};

struct CollectingSink final : GenerationSink {
  bool on_delta(Delta delta) override {
    text.append(delta.text);
    ++deltas;
    return !is_small;
  }
  void on_complete(Completion completion) override { end = std::move(completion); }
  std::string text;
  int deltas = 0;
  bool is_small = false;
  std::optional<Completion> end;
};

/// One end of a connection of the stand-in for a server.
struct ServerEnd {
  explicit ServerEnd(ScriptedServer::Peer& connected) : peer(&connected) {}
  void say(std::string_view message) {
    std::string frame;
    append_websocket_frame(frame, WebSocketOpcode::text, message);
    peer->send(frame);
  }
  void say_text(std::string_view text) {
    say(R"({"type":"response.output_text.delta","delta":")" + std::string(text) + "\"}");
  }
  void complete(std::string_view id) {
    say(R"({"type":"response.completed","response":{"id":")" + std::string(id) +
        R"(","status":"completed"}})");
  }
  void fail_with(int status, std::string_view code) {
    say(R"({"type":"error","status":)" + std::to_string(status) + R"(,"error":{"code":")" +
        std::string(code) + R"(","message":"said so"}})");
  }

  ScriptedServer::Peer* peer;
  Heard heard;
  WebSocketDecoder decoder{WebSocketDecoder::Role::server, std::size_t{1} << 20U, false};
};

class WebSocketSourceTest : public ::testing::Test {
 protected:
  struct Asked {
    std::shared_ptr<CollectingSink> sink = std::make_shared<CollectingSink>();
    std::shared_ptr<RemoteRun> run;
  };
  Asked ask(std::vector<ChatMessage> messages, const std::string& principal = "me") {
    GenerationRequest request;
    request.messages = std::move(messages);
    request.principal = principal;
    Asked asked;
    asked.run = std::make_shared<RemoteRun>(
        loop,
        RemoteRunOptions{.make_decoder = [] { return make_decoder(ModelApi::websocket, {}); },
                         .idle_timeout = 10s,
                         .hint = ". No WebSocket"},
        asked.sink, [](const Completion&, AnswerRepairs) {});
    asked.run->begin(std::make_unique<WebSocketSource>(
        *sockets, std::move(request), [](const GenerationRequest& what) {
          return *responses_request(what, "m", kCommonDialect);
        }));
    return asked;
  }
  /// The n-th connection, whose handshake is accepted.
  ServerEnd& accept(std::size_t n) {
    static constexpr std::string_view kField = "Sec-WebSocket-Key: ";
    auto& peer = server.peer(n);
    const std::string head = std::exchange(peer.received, {});
    const std::size_t at = head.find(kField) + kField.size();
    peer.send(
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n"
        "Connection: Upgrade\r\nSec-WebSocket-Accept: " +
        websocket_accept_key(head.substr(at, head.find('\r', at) - at)) + "\r\n\r\n");
    return ends.emplace(n, peer).first->second;
  }
  /// The next message to the server.
  json::object next(ServerEnd& end) {
    EXPECT_TRUE(run_until(loop, [&end] {
      end.decoder.feed(end.peer->received, end.heard).value();
      end.peer->received.clear();
      return !end.heard.messages.empty();
    }));
    if (end.heard.messages.empty()) return {};
    const std::string message = std::move(end.heard.messages.front());
    end.heard.messages.erase(end.heard.messages.begin());
    return parse_json(message)->as_object();
  }
  void finish(const Asked& asked) {
    EXPECT_TRUE(run_until(loop, [&asked] { return asked.sink->end.has_value(); }));
  }
  /// An answer "Yes" as the response r1 on the first connection.
  ServerEnd& answer_first() {
    const Asked asked = ask({{.role = "user", .content = "Hello"}});
    ServerEnd& end = accept(0);
    first = next(end);
    end.say_text("Yes");
    end.complete("r1");
    finish(asked);
    EXPECT_EQ(asked.sink->text, "Yes");
    EXPECT_EQ(asked.sink->end->reason, Completion::Reason::stop);
    return end;
  }
  static std::vector<ChatMessage> more() {
    return {{.role = "user", .content = "Hello"},
            {.role = "assistant", .content = "Yes"},
            {.role = "user", .content = "Why?"}};
  }

  EventLoop loop;
  ScriptedServer server{loop};
  std::unique_ptr<ResponseSockets> sockets = std::make_unique<ResponseSockets>(
      loop, server.url("/v1/responses"), HttpHeaderList{}, WebSocketClientOptions{});
  std::map<std::size_t, ServerEnd> ends;
  json::object first;  // request
};

TEST_F(WebSocketSourceTest, AConversationGoesOnWithWhatIsNew) {
  ServerEnd& end = answer_first();
  EXPECT_EQ(text_at(first, "type"), "response.create");
  EXPECT_FALSE(first.contains("stream"));
  EXPECT_FALSE(first.contains("previous_response_id"));
  const Asked asked = ask(more());
  const json::object second = next(end);
  EXPECT_EQ(text_at(second, "previous_response_id"), "r1");
  EXPECT_EQ(to_json(second.at("input")), R"([{"type":"message","role":"user","content":"Why?"}])");
  end.say_text("So");
  end.complete("r2");
  finish(asked);
  EXPECT_EQ(asked.sink->text, "So");
  EXPECT_EQ(server.peers.size(), 1U);
}

TEST_F(WebSocketSourceTest, TheEndOfTheAnswerBeforeDoesNotEndTheNextOne) {
  ServerEnd& end = answer_first();
  const Asked asked = ask(more());
  next(end);
  end.complete("r1");
  end.say_text("So");
  end.complete("r2");
  finish(asked);
  EXPECT_EQ(asked.sink->text, "So");
}

TEST_F(WebSocketSourceTest, AnswersMayHaveTheSameId) {
  ServerEnd& end = answer_first();
  const Asked asked = ask(more());
  next(end);
  end.say(R"({"type":"response.created","response":{"id":"r1","status":"in_progress"}})");
  end.say_text("So");
  end.complete("r1");
  finish(asked);
  EXPECT_EQ(asked.sink->text, "So");
}

TEST_F(WebSocketSourceTest, OthersHaveAConnectionOfTheirOwn) {
  answer_first();
  const Asked other = ask(more(), "other");
  ServerEnd& end = accept(1);
  EXPECT_FALSE(next(end).contains("previous_response_id"));
  end.complete("r2");
  finish(other);
}

TEST_F(WebSocketSourceTest, AServerThatHasForgottenIsToldAll) {
  ServerEnd& end = answer_first();
  const Asked asked = ask(more());
  EXPECT_TRUE(next(end).contains("previous_response_id"));
  end.fail_with(400, "previous_response_not_found");
  const json::object whole = next(end);
  EXPECT_FALSE(whole.contains("previous_response_id"));
  EXPECT_EQ(whole.at("input").as_array().size(), 3U);
  end.say_text("So");
  end.complete("r2");
  finish(asked);
  EXPECT_EQ(asked.sink->text, "So");
}

TEST_F(WebSocketSourceTest, AConnectionThatIsTooOldOrClosedIsReplaced) {
  ServerEnd& end = answer_first();
  Asked asked = ask(more());
  next(end);
  end.fail_with(400, "websocket_connection_limit_reached");
  ServerEnd& second = accept(1);
  EXPECT_EQ(next(second).at("input").as_array().size(), 3U);
  second.say_text("Yes");
  second.complete("r2");
  finish(asked);
  // It is closed when the request is on its way.
  std::vector<ChatMessage> messages = more();
  messages.push_back({.role = "assistant", .content = "Yes"});
  messages.push_back({.role = "user", .content = "?"});
  asked = ask(messages);
  EXPECT_EQ(text_at(next(second), "previous_response_id"), "r2");
  second.peer->close();
  ServerEnd& third = accept(2);
  EXPECT_EQ(next(third).at("input").as_array().size(), 5U);
  third.complete("r3");
  finish(asked);
  // It is closed before.
  third.peer->close();
  for (int i = 0; i < 50; ++i) loop.poll();
  asked = ask(messages);
  accept(3).complete("r4");
  finish(asked);
  EXPECT_EQ(asked.sink->end->reason, Completion::Reason::stop);
}

TEST_F(WebSocketSourceTest, ARefusalSaysWhatToDo) {
  const Asked asked = ask(more());
  server.peer(0).send("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n");
  finish(asked);
  EXPECT_EQ(asked.sink->end->reason, Completion::Reason::error);
  EXPECT_THAT(asked.sink->end->error->message, HasSubstr("HTTP 404. No WebSocket"));
}

TEST_F(WebSocketSourceTest, AnErrorWithAStatusIsARefusal) {
  Asked asked = ask(more());
  ServerEnd& end = accept(0);
  next(end);
  end.fail_with(401, "invalid_api_key");
  finish(asked);
  EXPECT_THAT(asked.sink->end->error->message, HasSubstr("HTTP 401: said so"));
  EXPECT_THAT(asked.sink->end->error->message, Not(HasSubstr("No WebSocket")));
  // A server that is busy is asked again.
  asked = ask(more());
  ServerEnd& busy = accept(1);
  next(busy);
  busy.fail_with(429, "rate_limit_exceeded");
  ServerEnd& again = accept(2);
  next(again);
  again.say_text("Yes");
  again.complete("r");
  finish(asked);
  EXPECT_EQ(asked.sink->text, "Yes");
  // But not in the middle of an answer.
  asked = ask({{.role = "user", .content = "Another"}});
  ServerEnd& broken = accept(3);
  broken.say_text("Y");
  broken.fail_with(500, "server_error");
  finish(asked);
  EXPECT_THAT(asked.sink->end->error->message, HasSubstr("failed: said so"));
}

TEST_F(WebSocketSourceTest, ACancelledAnswerClosesItsConnection) {
  const Asked asked = ask(more());
  ServerEnd& end = accept(0);
  end.say_text("a");
  EXPECT_TRUE(run_until(loop, [&asked] { return asked.sink->deltas == 1; }));
  asked.run->cancel();
  finish(asked);
  EXPECT_EQ(asked.sink->end->reason, Completion::Reason::cancelled);
  EXPECT_TRUE(run_until(loop, [&end] { return end.peer->gone; }));
}

TEST_F(WebSocketSourceTest, AConnectionThatBreaksEndsItsAnswer) {
  const Asked asked = ask(more());
  ServerEnd& end = accept(0);
  end.say_text("a");
  EXPECT_TRUE(run_until(loop, [&asked] { return asked.sink->deltas == 1; }));
  end.peer->close();
  finish(asked);
  EXPECT_THAT(asked.sink->end->error->message, HasSubstr("before it was whole"));
}

TEST_F(WebSocketSourceTest, AFullSinkHoldsUpTheServer) {
  const Asked asked = ask(more());
  asked.sink->is_small = true;
  ServerEnd& end = accept(0);
  for (const std::string_view text : {"a", "b", "c"}) end.say_text(text);
  EXPECT_TRUE(run_until(loop, [&asked] { return asked.sink->deltas == 1; }));
  for (int i = 0; i < 20; ++i) loop.poll();
  EXPECT_EQ(asked.sink->text, "a");
  asked.sink->is_small = false;
  asked.run->resume();
  end.complete("r");
  finish(asked);
  EXPECT_EQ(asked.sink->text, "abc");
}

TEST_F(WebSocketSourceTest, FewConnectionsAreKept) {
  for (std::size_t i = 0; i < ResponseSockets::kMaxIdle; ++i) {
    const Asked asked = ask({{.role = "user", .content = std::to_string(i)}});
    ServerEnd& end = accept(i);
    next(end);
    end.complete("r" + std::to_string(i));
    finish(asked);
  }
  // The one that was not used for longest takes another conversation.
  const Asked asked = ask({{.role = "user", .content = "one more"}});
  ServerEnd& end = ends.at(0);
  EXPECT_FALSE(next(end).contains("previous_response_id"));
  end.complete("one more");
  finish(asked);
  EXPECT_EQ(server.peers.size(), ResponseSockets::kMaxIdle);
}

}  // namespace
}  // namespace sluice
