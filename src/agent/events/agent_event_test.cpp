#include "sluice/agent_event.hpp"

#include <cstdlib>
#include <fstream>
#include <gtest/gtest.h>
#include <iterator>
#include <string>

#include "agent/events/event_table.hpp"
#include "agent/events/run_events.hpp"
#include "json/json.hpp"

namespace sluice {
namespace {

TEST(AgentEvents, TheTableIsDocumented) {
  const std::string path = std::string(SLUICE_SOURCE_DIR) + "/docs/events.md";
  std::ifstream in(path);
  const std::string page{std::istreambuf_iterator<char>(in), {}};
  const std::string mark = "SLUICE_WRITE_DOCS=1 -->\n";
  const std::size_t at = page.find(mark);
  ASSERT_NE(at, std::string::npos) << path;
  const std::string expected = page.substr(0, at + mark.size()) + "\n" + event_table();
  if (std::getenv("SLUICE_WRITE_DOCS") != nullptr)
    std::ofstream(path) << expected;
  else
    EXPECT_EQ(page, expected) << "run it with SLUICE_WRITE_DOCS=1";
}

TEST(AgentEvents, HaveTheMembersThatTheTableNames) {
  const AgentEvent delta{.type = AgentEventType::output_text_delta,
                         .sequence_number = 7,
                         .turn = 2,
                         .item_id = "msg_1",
                         .output_index = 0,
                         .content_index = 0,
                         .text = "Hi"};
  EXPECT_EQ(to_json(to_object(delta, "r")),
            R"({"type":"response.output_text.delta","sequence_number":7,"run_id":"r","turn":2,)"
            R"("item_id":"msg_1","output_index":0,"content_index":0,"delta":"Hi","logprobs":[]})");
  const AgentEvent output{.type = AgentEventType::tool_output_delta,
                          .call_id = "c",
                          .text = "x",
                          .first = 3,
                          .last = 5,
                          .dropped = 1};
  EXPECT_EQ(to_json(to_object(output, "r")),
            R"({"type":"sluice:tool.output.delta","sequence_number":0,"run_id":"r","turn":0,)"
            R"("call_id":"c","first":3,"last":5,"dropped":1,"delta":"x"})");
}

TEST(AgentEvents, TheLastIsKnownOnceItIsTaken) {
  RunEvents events({});
  events.push({.type = AgentEventType::run_done, .text = "Bye."});
  EXPECT_FALSE(events.last());
  ASSERT_TRUE(events.poll());
  EXPECT_TRUE(events.is_over());
  ASSERT_TRUE(events.last());
  EXPECT_EQ(events.last()->text, "Bye.");
}

}  // namespace
}  // namespace sluice
