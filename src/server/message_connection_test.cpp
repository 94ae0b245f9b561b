#include "server/message_connection.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "server/server_test_support.hpp"

namespace sluice {
namespace {

struct RecordingOutput final : MessageOutput {
  void send(std::string_view message) override { messages.emplace_back(message); }
  bool send_framed(std::string_view block) override {
    messages.emplace_back(block);
    return true;
  }
  bool send_framed(const Bytes& block) override { return send_framed(block.view()); }
  void flush() override {}
  bool push_framed(std::string_view block) override { return send_framed(block); }
  std::vector<std::string> messages;
};

class MessageConnectionTest : public testing::Test {
 protected:
  MessageConnectionTest() { connection->attach(output); }
  /// Whether it is handled at once; `handled` counts those that are later.
  bool say(std::string_view text) {
    Executor::Task task = [this] { ++handled; };
    return connection->on_message(text, task);
  }

  ServerBench bench;
  const AccessPolicy access{{}};
  Service service{bench.offer,
                  access,
                  bench.sessions,
                  bench.quota,
                  *bench.changes,
                  *bench.tasks,
                  {{&bench.executors[0], bench.managers[0].get()}},
                  0};
  const PushedChunkEncoder encoder{line_framing()};
  RecordingOutput output;
  std::shared_ptr<MessageConnection> connection =
      std::make_shared<MessageConnection>(service, "alice", encoder);
  int handled = 0;
};

// The transports' tests drive all the rest.
TEST_F(MessageConnectionTest, ItsSessionEndsWithIt) {
  say(R"({"jsonrpc":"2.0","id":1,"method":"initialize","params":)"
      R"({"protocolVersion":"2025-11-25","capabilities":{}}})");
  ASSERT_EQ(output.messages.size(), 1U);
  const std::shared_ptr<Session> session = connection->session().value();
  ASSERT_NE(session, nullptr);
  EXPECT_FALSE(session->ended());
  connection->on_close();
  EXPECT_TRUE(session->ended());
}

TEST_F(MessageConnectionTest, ItsSessionIsNotBegunAnewWhileItWaitsForAnAnswer) {
  const std::string initialize = R"({"jsonrpc":"2.0","id":1,"method":"initialize","params":)"
                                 R"({"protocolVersion":"2025-11-25","capabilities":{"roots":{}}}})";
  say(initialize);
  say(R"({"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"later"}})");
  ASSERT_EQ(bench.calls.size(), 1U);
  std::string heard;
  bench.calls[0]->ask({{"roots", "roots/list", {}}},
                      [&](const Result<std::vector<json::value>>& answers) {
                        heard = answers ? to_json(answers->front()) : answers.error().message;
                      });
  bench.run_all();
  EXPECT_THAT(output.messages.back(), testing::HasSubstr("roots/list"));
  say(initialize);
  EXPECT_EQ(error_code(output.messages.back()), kInvalidRequest);
  say(R"({"jsonrpc":"2.0","id":1,"result":{"roots":[]}})");
  bench.run_all();
  EXPECT_EQ(heard, R"({"roots":[]})");
  say(initialize);
  EXPECT_EQ(error_code(output.messages.back()), 0);
  bench.calls[0]->complete({.text = "done"});
  bench.run_all();
}

TEST_F(MessageConnectionTest, HooksAreAskedOfWhatItServesItself) {
  std::vector<std::string> heard;
  bench.definition.before.push_back([&](const RequestInfo& request) -> std::optional<Error> {
    heard.emplace_back(request.method);
    return Error{-32003, "no"};
  });
  bench.serve();
  service.dispatcher.take(bench.offer);
  for (const char* method : {"run", "subscribe", "unsubscribe", "ack"}) {
    say(R"({"jsonrpc":"2.0","id":1,"method":")" + std::string(method) +
        R"(","params":{"stream":true,"stream_id":"0123456789abcdef","seq":0}})");
    ASSERT_FALSE(output.messages.empty());
    EXPECT_EQ(error_code(output.messages.back()), -32003) << method;
  }
  EXPECT_EQ(heard, (std::vector<std::string>{"run", "subscribe", "unsubscribe", "ack"}));
  EXPECT_TRUE(bench.runs.empty());
}

TEST_F(MessageConnectionTest, IsNotPushedToAfterItsEnd) {
  const std::shared_ptr<ChunkStream> stream = bench.start(0);
  say(R"({"jsonrpc":"2.0","id":1,"method":"subscribe","params":{"stream_id":")" +
      std::string(std::string_view(stream->id())) + "\"}}");
  bench.run_all();
  stream->append(ChunkKind::text, "a");
  bench.run_all();
  ASSERT_EQ(output.messages.size(), 2U);
  stream->append(ChunkKind::text, "b");
  connection->on_close();
  connection = nullptr;
  bench.run_all();
  EXPECT_EQ(output.messages.size(), 2U) << "nobody reads any more";
}

TEST_F(MessageConnectionTest, HandlesALongMessageLater) {
  const std::string ping = R"({"jsonrpc":"2.0","id":1,"method":"ping"})";
  EXPECT_TRUE(say(ping));
  EXPECT_EQ(output.messages.size(), 1U);
  EXPECT_FALSE(say(ping + std::string(LongMessages::kLong, ' ')));
  EXPECT_FALSE(say("{" + std::string(LongMessages::kLong, ' ')));
  bool is_idle = false;
  connection->when_idle([&] { is_idle = true; });
  EXPECT_EQ(output.messages.size(), 1U);
  EXPECT_FALSE(is_idle);
  bench.run_all();
  ASSERT_EQ(output.messages.size(), 3U);
  EXPECT_EQ(output.messages[1], output.messages[0]);
  EXPECT_THAT(output.messages[2], testing::HasSubstr("-32700"));
  EXPECT_EQ(handled, 2);
  EXPECT_TRUE(is_idle);
}

TEST_F(MessageConnectionTest, ALongMessageOfAPeerThatHasGoneIsDropped) {
  EXPECT_FALSE(say(R"({"jsonrpc":"2.0","id":1,"method":"ping"})" + std::string(100'000, ' ')));
  connection->on_close();
  bench.run_all();
  EXPECT_TRUE(output.messages.empty());
  EXPECT_EQ(handled, 0);
}

}  // namespace
}  // namespace sluice
