// Checks the specification's example messages, and the schemas that the tests use to check
// messages.

#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <iterator>
#include <string>
#include <string_view>

#include "protocol/negotiation.hpp"
#include "protocol/wire_schemas_test_support.hpp"
#include "rpc/message.hpp"

namespace sluice {
namespace {

constexpr int kExamples = 129;

/// Parses `text` as a message from a peer.
void read_message(const std::string& text) {
  MessageParser parser;
  const auto message = parser.parse(text);
  ASSERT_TRUE(message) << message.error().error.message;
  if (message->kind == MessageKind::response) return;
  const auto context = negotiate(*message, nullptr, nullptr);
  EXPECT_TRUE(context) << context.error().message;
}

TEST(WireSchemas, TheSpecificationsExamplesComeBackTheSame) {
  int seen = 0;
  const Revision& revision = *find_revision("2026-07-28");
  const std::filesystem::path folder = WireSchema::folder() / revision.name / "examples";
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (!entry.is_regular_file()) continue;
    SCOPED_TRACE(entry.path());
    ++seen;
    std::ifstream file(entry.path(), std::ios::binary);
    const std::string text(std::istreambuf_iterator<char>(file), {});
    const Result<json::value> value = parse_json(text);
    ASSERT_TRUE(value) << value.error().message;
    const std::string type = entry.path().parent_path().filename();
    EXPECT_EQ(WireSchema::of(revision).check(*value, type), "");
    const std::string written = to_json(*value);
    EXPECT_EQ(*parse_json(written), *value);
    if (value->is_object() && value->get_object().contains("jsonrpc")) read_message(written);
  }
  EXPECT_EQ(seen, kExamples);
}

TEST(WireSchemas, SeeWhatIsWrong) {
  const auto wrong = [](std::string_view revision, std::string_view method, std::string_view text) {
    return WireSchema::of(*find_revision(revision)).check_sent(parse_json(text).value(), method);
  };
  for (const Revision& revision : revisions()) {
    SCOPED_TRACE(revision.name);
    EXPECT_NE(wrong(revision.name, "tools/list", R"({"jsonrpc":"2.0","id":1,"result":{}})"), "");
    EXPECT_NE(wrong(revision.name, "", R"({"jsonrpc":"2.0","id":1.5,"result":{}})"), "");
    EXPECT_NE(wrong(revision.name, "",
                    R"({"jsonrpc":"2.0","method":"notifications/progress","params":{}})"),
              "");
    EXPECT_EQ(wrong(revision.name, "run", R"({"jsonrpc":"2.0","method":"run","params":{}})"), "");
  }
  EXPECT_EQ(wrong("2025-11-25", "ping", R"({"jsonrpc":"2.0","id":1,"result":{}})"), "");
  EXPECT_NE(
      wrong("2026-07-28", "tools/call", R"({"jsonrpc":"2.0","id":1,"result":{"content":[]}})"), "");
}

}  // namespace
}  // namespace sluice
