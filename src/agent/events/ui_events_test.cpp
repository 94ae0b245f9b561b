#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>
#include <utility>
#include <vector>

#include "json/json.hpp"
#include "json/members.hpp"
#include "sluice/agent_event.hpp"

namespace sluice {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<std::string> names(const std::vector<json::object>& events) {
  std::vector<std::string> out;
  for (const json::object& event : events) out.emplace_back(text_at(event, "type"));
  return out;
}

TEST(UiEvents, WhatAToolWritesIsAMessage) {
  UiEvents view;
  const auto wrote = [&view](std::string call, std::string text) {
    return view.show({.type = AgentEventType::tool_output_delta,
                      .call_id = std::move(call),
                      .text = std::move(text)},
                     "run");
  };
  const auto first = wrote("c1", "2 ");
  EXPECT_THAT(names(first), ElementsAre("response.output_item.added", "response.content_part.added",
                                        "response.output_text.delta"));
  EXPECT_EQ(first[0].at("item").at("id"), "notif_c1");
  EXPECT_EQ(first[2].at("delta"), "2 ");
  EXPECT_EQ(first[2].at("item_id"), "notif_c1");
  EXPECT_THAT(names(wrote("c2", "x")), testing::SizeIs(3)) << "another call is another message";
  EXPECT_THAT(names(wrote("c1", "4 ")), ElementsAre("response.output_text.delta"));
  const auto last = view.show({.type = AgentEventType::tool_output_done,
                               .call_id = "c1",
                               .text = "all",
                               .data = {{"status", "completed"}}},
                              "run");
  EXPECT_THAT(names(last), ElementsAre("response.output_text.done", "response.content_part.done",
                                       "response.output_item.done"));
  EXPECT_EQ(last[2].at("item").at("content").at(0).at("text"), "2 4 ");
  EXPECT_EQ(last[2].at("item").at("status"), "completed");
}

TEST(UiEvents, AMessageIsWithinAResponseOrBetweenTwo) {
  UiEvents view;
  const AgentEvent piece{.type = AgentEventType::tool_output_delta, .call_id = "c", .text = "2 "};
  const auto before = view.show(piece, "run");
  std::vector<std::string> seen;
  for (const AgentEventType type :
       {AgentEventType::response_created, AgentEventType::response_incomplete}) {
    const auto shown = view.show({.type = type}, "run");
    EXPECT_THAT(names(shown), ElementsAre("response.output_text.done", "response.content_part.done",
                                          "response.output_item.done", name_of(type)));
    EXPECT_EQ(shown[0].at("text"), "2 ");
    const auto again = view.show(piece, "run");
    ASSERT_THAT(again, testing::SizeIs(3));
    seen.emplace_back(text_at(again[1], "item_id"));
    EXPECT_GT(again[0].at("output_index").as_int64(), before[0].at("output_index").as_int64());
  }
  EXPECT_THAT(seen, ElementsAre("notif_c:2", "notif_c:3"));
  EXPECT_GE(before[0].at("output_index").as_int64(), UiEvents::kFirstIndex);
}

TEST(UiEvents, NoTwoMessagesHaveTheSameId) {
  UiEvents view;
  std::vector<std::string> ids;
  const auto add = [&](std::string call) {
    const auto shown = view.show(
        {.type = AgentEventType::tool_output_delta, .call_id = std::move(call), .text = "2 "},
        "run");
    ids.emplace_back(text_at(shown.back(), "item_id"));
  };
  add("a");
  add("a_2");
  view.show({.type = AgentEventType::response_created}, "run");
  add("a");
  EXPECT_THAT(ids, ElementsAre("notif_a", "notif_a_2", "notif_a:2"));
}

TEST(UiEvents, WhatACallWritesThatWasMadeAnewIsAnotherMessage) {
  UiEvents view;
  AgentEvent piece{.type = AgentEventType::tool_output_delta, .call_id = "c", .text = "2 "};
  view.show(piece, "run");
  piece.data["restart"] = true;
  const auto anew = view.show(piece, "run");
  ASSERT_THAT(names(anew),
              ElementsAre("response.output_text.done", "response.content_part.done",
                          "response.output_item.done", "response.output_item.added",
                          "response.content_part.added", "response.output_text.delta"));
  EXPECT_EQ(anew[2].at("item").at("status"), "incomplete");
  EXPECT_EQ(anew.back().at("item_id"), "notif_c:2");
}

TEST(UiEvents, TheMessageOfACallThatFailsIsIncomplete) {
  for (const char* status : {"failed", "cancelled", "unknown"}) {
    UiEvents view;
    view.show({.type = AgentEventType::tool_output_delta, .call_id = "c", .text = "2 "}, "run");
    const auto last = view.show(
        {.type = AgentEventType::tool_output_done, .call_id = "c", .data = {{"status", status}}},
        "run");
    ASSERT_THAT(last, testing::SizeIs(3));
    EXPECT_EQ(last[2].at("item").at("status"), "incomplete") << status;
  }
}

TEST(UiEvents, NothingFollowsWhatIsCut) {
  UiEvents view;
  for (const std::string& text :
       {std::string(UiEvents::kMaxText - 1, 'a'), std::string("\xC3\xA9"), std::string("b")}) {
    view.show({.type = AgentEventType::tool_output_delta, .call_id = "c", .text = text}, "run");
  }
  const auto last = view.show({.type = AgentEventType::tool_output_done, .call_id = "c"}, "run");
  EXPECT_EQ(text_at(last[0], "text"), std::string(UiEvents::kMaxText - 1, 'a'));
}

TEST(UiEvents, OfALongOutputTheBeginningIsKept) {
  UiEvents view;
  const std::string piece(UiEvents::kMaxText / 2 + 1, 'x');
  for (int i = 0; i < 3; ++i) {
    const auto shown = view.show(
        {.type = AgentEventType::tool_output_delta, .call_id = "c", .text = piece}, "run");
    EXPECT_EQ(text_at(shown.back(), "delta").size(), piece.size());
  }
  const auto last = view.show({.type = AgentEventType::tool_output_done, .call_id = "c"}, "run");
  EXPECT_EQ(text_at(last[0], "text").size(), UiEvents::kMaxText);
}

TEST(UiEvents, TheModelsEventsAreAsTheyAreAndOthersAreLeftOut) {
  UiEvents view;
  const AgentEvent said{.type = AgentEventType::output_text_delta, .item_id = "m", .text = "Hi"};
  EXPECT_THAT(view.show(said, "run"), ElementsAre(to_object(said, "run")));
  for (const AgentEventType type :
       {AgentEventType::run_started, AgentEventType::tool_progress, AgentEventType::tool_detached,
        AgentEventType::tool_output_started, AgentEventType::tool_output_done,
        AgentEventType::tool_output_delta, AgentEventType::run_done}) {
    EXPECT_THAT(view.show({.type = type, .call_id = "c"}, "run"), IsEmpty());
  }
}

}  // namespace
}  // namespace sluice
