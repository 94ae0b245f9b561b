#include "agent/events/response_writer.hpp"

#include <chrono>
#include <cstdint>
#include <gtest/gtest.h>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "json/json.hpp"
#include "json/members.hpp"

namespace sluice {
namespace {

using Reason = Completion::Reason;

/// The response in the last event that waits, which must be of this type.
json::object last_response(RunEvents& events, AgentEventType type) {
  AgentEvent last;
  while (auto event = events.poll()) last = *std::move(event);
  EXPECT_EQ(name_of(last.type), name_of(type));
  const json::value* const response = last.data.if_contains("response");
  return response == nullptr ? json::object() : response->as_object();
}

json::object ended(Reason reason, AgentEventType type) {
  RunEvents events({});
  ResponseWriter writer(events, "resp_1", "small", 1);
  writer.text("Half");
  Completion completion;
  completion.reason = reason;
  if (reason == Reason::error) completion.error = Error{502, "it is gone"};
  writer.end(completion);
  return last_response(events, type);
}

TEST(ResponseWriterTest, AResponseHasWhatTheApiDemandsFromTheStart) {
  const auto before = std::chrono::system_clock::now();
  RunEvents events({});
  ResponseWriter writer(events, "resp_1", "small", 1);
  json::object response = last_response(events, AgentEventType::response_in_progress);
  const std::chrono::seconds created(response.at("created_at").to_number<std::int64_t>());
  EXPECT_GE(created, std::chrono::floor<std::chrono::seconds>(before.time_since_epoch()));
  EXPECT_LE(created, std::chrono::system_clock::now().time_since_epoch());
  response["created_at"] = 0;
  EXPECT_EQ(
      to_json(response),
      R"({"id":"resp_1","object":"response","created_at":0,"status":"in_progress","model":"small",)"
      R"("output":[],"output_text":"","error":null,"incomplete_details":null,)"
      R"("usage":{"input_tokens":0,"input_tokens_details":{"cached_tokens":0,"cache_write_tokens":0},)"
      R"("output_tokens":0,"output_tokens_details":{"reasoning_tokens":0},"total_tokens":0},)"
      R"("instructions":null,"tools":[],"tool_choice":"auto","parallel_tool_calls":true,)"
      R"("temperature":null,"top_p":null,"metadata":{},"access_programs":null})");
}

TEST(ResponseWriterTest, ItsTextIsThatOfAllItsMessages) {
  RunEvents events({});
  ResponseWriter writer(events, "resp_1", "small", 1);
  writer.text("One ");
  writer.reasoning("Two?");
  writer.text("three");
  Completion completion;
  completion.usage = {.prompt_tokens = 7, .cached_tokens = 5, .completion_tokens = 3};
  writer.end(completion);
  const json::object response = last_response(events, AgentEventType::response_completed);
  EXPECT_EQ(text_at(response, "output_text"), "One three");
  EXPECT_EQ(response.at("output").as_array().size(), 3U);
  EXPECT_EQ(
      to_json(response.at("usage")),
      R"({"input_tokens":7,"input_tokens_details":{"cached_tokens":5,"cache_write_tokens":0},)"
      R"("output_tokens":3,"output_tokens_details":{"reasoning_tokens":0},"total_tokens":10})");
}

TEST(ResponseWriterTest, ThePiecesOfArgumentsAreTheWhole) {
  // The pieces of a model, the arguments as they were read, and what is told as the whole.
  struct Case {
    std::vector<std::string> pieces;
    std::string read;
    std::string whole;
  };
  for (const Case& each : {Case{{R"({"n": )", "8 }"}, R"({"n":8})", R"({"n": 8 })"},
                           Case{{R"({"n":8.0})"}, R"({"n":8})", R"({"n":8.0})"},
                           Case{{R"({"n":)"}, R"({"n":8})", R"({"n":8})"}, Case{{}, "{}", "{}"}}) {
    RunEvents events({});
    ResponseWriter writer(events, "resp_1", "small", 1);
    for (const std::string& piece : each.pieces) writer.call_part("a", "count", piece);
    writer.call({.id = "a", .name = "count", .arguments = each.read});
    std::string pieces;
    std::string done;
    while (const auto event = events.poll()) {
      if (event->type == AgentEventType::function_call_arguments_delta) pieces += event->text;
      if (event->type == AgentEventType::function_call_arguments_done) done = event->text;
      if (event->type != AgentEventType::output_item_done) continue;
      EXPECT_EQ(text_at(event->data.at("item").as_object(), "arguments"), each.whole);
    }
    EXPECT_EQ(pieces, each.whole);
    EXPECT_EQ(done, each.whole);
  }
}

TEST(ResponseWriterTest, WhyItEndedIsSaidInTheWordsOfTheApi) {
  const json::object cut = ended(Reason::length, AgentEventType::response_incomplete);
  EXPECT_EQ(text_at(cut, "status"), "incomplete");
  EXPECT_EQ(to_json(cut.at("incomplete_details")), R"({"reason":"max_output_tokens"})");
  const json::object cancelled = ended(Reason::cancelled, AgentEventType::response_incomplete);
  EXPECT_EQ(text_at(cancelled, "status"), "cancelled");
  EXPECT_TRUE(cancelled.at("incomplete_details").is_null());
  const json::object failed = ended(Reason::error, AgentEventType::response_failed);
  EXPECT_EQ(text_at(failed, "status"), "failed");
  EXPECT_EQ(to_json(failed.at("error")), R"({"code":"server_error","message":"it is gone"})");
  for (const json::object& response : {cut, cancelled, failed}) {
    EXPECT_EQ(text_at(response.at("output").as_array().at(0).as_object(), "status"), "incomplete");
    EXPECT_EQ(text_at(response, "output_text"), "Half");
  }
}

}  // namespace
}  // namespace sluice
