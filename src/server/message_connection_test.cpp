#include "server/message_connection.hpp"

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

  ServerBench bench;
  const AccessPolicy access{{}};
  Service service{bench.offer,
                  access,
                  bench.sessions,
                  *bench.changes,
                  *bench.tasks,
                  {{&bench.executors[0], bench.managers[0].get()}},
                  0};
  const PushedChunkEncoder encoder{line_framing()};
  RecordingOutput output;
  std::shared_ptr<MessageConnection> connection =
      std::make_shared<MessageConnection>(service, "alice", encoder);
};

// The transports' tests drive all the rest.
TEST_F(MessageConnectionTest, ItsSessionEndsWithIt) {
  connection->on_message(R"({"jsonrpc":"2.0","id":1,"method":"initialize","params":)"
                         R"({"protocolVersion":"2025-11-25","capabilities":{}}})");
  ASSERT_EQ(output.messages.size(), 1U);
  const std::shared_ptr<Session> session = connection->session().value();
  ASSERT_NE(session, nullptr);
  EXPECT_FALSE(session->ended());
  connection->on_close();
  EXPECT_TRUE(session->ended());
}

TEST_F(MessageConnectionTest, IsNotPushedToAfterItsEnd) {
  const std::shared_ptr<ChunkStream> stream = bench.start(0);
  connection->on_message(R"({"jsonrpc":"2.0","id":1,"method":"subscribe","params":{"stream_id":")" +
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

}  // namespace
}  // namespace sluice
