#include "client/session/handshake/message_writer.hpp"

#include <gtest/gtest.h>
#include <string>
#include <string_view>

#include "client/session/memory/listed_tools.hpp"
#include "json/json.hpp"
#include "protocol/revision.hpp"

namespace sluice {
namespace {

class MessageWriterTest : public ::testing::Test {
 protected:
  static constexpr const char* kOwn =
      R"("io.modelcontextprotocol/protocolVersion":"2026-07-28",)"
      R"("io.modelcontextprotocol/clientInfo":{"name":"test","version":"1"},)"
      R"("io.modelcontextprotocol/clientCapabilities":)";

  static json::object parsed(std::string_view text) { return parse_json(text)->as_object(); }
  [[nodiscard]] std::string written(std::string_view method, std::string_view params,
                                    std::string_view id, std::string_view revision,
                                    bool may_become_task = false, bool wants_parts = false) const {
    const MessageWriter writer(options_, tools_, false);
    const json::object object = parsed(params);
    return writer
        .write({.method = std::string(method),
                .params = object,
                .id = std::string(id),
                .may_become_task = may_become_task,
                .wants_parts = wants_parts},
               *find_revision(revision))
        .text;
  }

  ClientSessionOptions options_{.info = {.name = "test", .version = "1"},
                                .capabilities = {{"roots", json::object()}}};
  ListedTools tools_;
};

TEST_F(MessageWriterTest, LegacyMessagesHaveWhatTheyNeed) {
  EXPECT_EQ(written("ping", "{}", "7", "2025-11-25"),
            R"({"jsonrpc":"2.0","id":7,"method":"ping","params":{"_meta":{"progressToken":7}}})");
  EXPECT_EQ(written("initialize", R"({"a":1})", "1", "2025-11-25"),
            R"({"jsonrpc":"2.0","id":1,"method":"initialize","params":{"a":1}})");
  EXPECT_EQ(written("notifications/initialized", "{}", "", "2025-11-25"),
            R"({"jsonrpc":"2.0","method":"notifications/initialized"})");
  EXPECT_EQ(written("notifications/x", R"({"_meta":{"progressToken":1}})", "", "2025-11-25"),
            R"({"jsonrpc":"2.0","method":"notifications/x",)"
            R"("params":{"_meta":{"progressToken":1}}})");
}

TEST_F(MessageWriterTest, ModernMessagesSayWhoseTheyAre) {
  EXPECT_EQ(written("ping", R"({"a":{}})", "7", "2026-07-28"),
            R"({"jsonrpc":"2.0","id":7,"method":"ping","params":{"a":{},"_meta":{)"
            R"("progressToken":7,)" +
                std::string(kOwn) + R"({"roots":{}}}}})");
  EXPECT_EQ(written("notifications/x", "{}", "", "2026-07-28"),
            R"({"jsonrpc":"2.0","method":"notifications/x","params":{"_meta":{)" +
                std::string(kOwn) + R"({"roots":{}}}}})");
}

TEST_F(MessageWriterTest, CallsThatMayBecomeTasksSaySo) {
  const std::string with_tasks =
      R"({"roots":{},"extensions":{"io.modelcontextprotocol/tasks":{}}}}}})";
  EXPECT_TRUE(written("tools/call", "{}", "7", "2026-07-28", true).ends_with(with_tasks));
  EXPECT_TRUE(written("tasks/get", "{}", "7", "2026-07-28").ends_with(with_tasks));
}

TEST_F(MessageWriterTest, CallsThatWantPartialResultsSaySo) {
  EXPECT_EQ(written("tools/call", R"({"_meta":{"partialResultToken":"mine"}})", "7", "2026-07-28",
                    false, true),
            R"({"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"_meta":{)"
            R"("progressToken":7,"partialResultToken":"7",)" +
                std::string(kOwn) + R"({"roots":{},"partialResults":{}}}}})");
  EXPECT_TRUE(written("tools/call", "{}", "7", "2026-07-28", true, true)
                  .ends_with(R"({"roots":{},"extensions":{"io.modelcontextprotocol/tasks":{}},)"
                             R"("partialResults":{}}}}})"));
  EXPECT_EQ(written("tools/call", "{}", "7", "2025-11-25", false, true),
            R"({"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"_meta":{)"
            R"("progressToken":7,"partialResultToken":"7"}}})");
}

TEST_F(MessageWriterTest, MetaOfTheUserIsKeptButForWhatTheSessionSays) {
  EXPECT_EQ(written("ping",
                    R"({"_meta":{"a\"b":"\u0001","progressToken":"mine",)"
                    R"("io.modelcontextprotocol/protocolVersion":"1"}})",
                    "7", "2026-07-28"),
            R"({"jsonrpc":"2.0","id":7,"method":"ping","params":{"_meta":{"a\"b":"\u0001",)"
            R"("progressToken":7,)" +
                std::string(kOwn) + R"({"roots":{}}}}})");
  EXPECT_EQ(written("ping", R"({"_meta":3})", "7", "2025-11-25"),
            R"({"jsonrpc":"2.0","id":7,"method":"ping","params":{"_meta":{"progressToken":7}}})");
}

}  // namespace
}  // namespace sluice
