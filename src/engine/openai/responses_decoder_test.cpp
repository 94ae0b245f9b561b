#include "engine/openai/responses_decoder.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>
#include <string_view>
#include <vector>

#include "engine/openai/decoder_test_support.hpp"
#include "rpc/error_codes.hpp"

namespace sluice {
namespace {

using ::testing::HasSubstr;

/// {"type":"response.<kind>",<members>}
std::string event(std::string_view kind, std::string_view members) {
  return R"({"type":"response.)" + std::string(kind) + "\"," + std::string(members) + "}";
}
std::string text(std::string_view said) {
  return event("output_text.delta", R"("item_id":"m","delta":")" + std::string(said) + "\"");
}
std::string completed(std::string_view members = {}) {
  return event("completed",
               R"("response":{"id":"r","status":"completed")" + std::string(members) + "}");
}
std::string call_item(std::string_view kind, std::string_view members) {
  return event("output_item." + std::string(kind),
               R"("item":{"type":"function_call",)" + std::string(members) + "}");
}
std::string arguments(std::string_view item, std::string_view piece) {
  return event("function_call_arguments.delta",
               R"("item_id":")" + std::string(item) + R"(","delta":")" + std::string(piece) + "\"");
}

class ResponsesDecoderTest : public ::testing::Test {
 protected:
  std::string read(const std::string& stream, const AnswerOptions& options = {}) {
    return read_answer<ResponsesDecoder>(stream, options, repairs);
  }
  AnswerRepairs repairs;  // of the last answer that was read
};

TEST_F(ResponsesDecoderTest, OfOpenAi) {
  EXPECT_EQ(read(
                "event: response.created\n" +
                events_of({R"({"type":"response.created","sequence_number":0,"response":{"id":"resp_1","object":"response","status":"in_progress","error":null,"incomplete_details":null,"output":[],"usage":null}})",
                           R"({"type":"response.in_progress","sequence_number":1,"response":{"id":"resp_1","status":"in_progress","error":null}})",
                           R"({"type":"response.output_item.added","sequence_number":2,"output_index":0,"item":{"id":"rs_1","type":"reasoning","summary":[]}})",
                           R"({"type":"response.reasoning_summary_part.added","sequence_number":3,"item_id":"rs_1","output_index":0,"summary_index":0,"part":{"type":"summary_text","text":""}})",
                           R"({"type":"response.reasoning_summary_text.delta","sequence_number":4,"item_id":"rs_1","output_index":0,"summary_index":0,"delta":"Hm.","obfuscation":"x"})",
                           R"({"type":"response.reasoning_summary_text.delta","sequence_number":5,"item_id":"rs_1","output_index":0,"summary_index":1,"delta":"Yes."})",
                           R"({"type":"response.output_item.done","sequence_number":6,"output_index":0,"item":{"id":"rs_1","type":"reasoning","summary":[{"type":"summary_text","text":"Hm."},{"type":"summary_text","text":"Yes."}]}})",
                           R"({"type":"response.output_item.added","sequence_number":7,"output_index":1,"item":{"id":"msg_1","type":"message","status":"in_progress","content":[],"role":"assistant"}})",
                           R"({"type":"response.content_part.added","sequence_number":8,"item_id":"msg_1","output_index":1,"content_index":0,"part":{"type":"output_text","annotations":[],"text":""}})",
                           R"({"type":"response.output_text.delta","sequence_number":9,"item_id":"msg_1","output_index":1,"content_index":0,"delta":"Grüß ","logprobs":[],"obfuscation":"y"})",
                           R"({"type":"response.output_text.delta","sequence_number":10,"item_id":"msg_1","output_index":1,"content_index":0,"delta":"dich \ud83d\ude00","logprobs":[]})",
                           R"({"type":"response.output_text.done","sequence_number":11,"item_id":"msg_1","output_index":1,"content_index":0,"text":"Grüß dich \ud83d\ude00"})", R"({"type":"response.content_part.done","sequence_number":12,"item_id":"msg_1","output_index":1,"content_index":0,"part":{"type":"output_text","text":"Grüß dich \ud83d\ude00"}})", R"({"type":"response.output_item.done","sequence_number":13,"output_index":1,"item":{"id":"msg_1","type":"message","status":"completed","content":[{"type":"output_text","text":"Grüß dich \ud83d\ude00"}],"role":"assistant"}})", R"({"type":"response.completed","sequence_number":14,"response":{"id":"resp_1","status":"completed","error":null,"output":[{"id":"msg_1","type":"message","content":[{"type":"output_text","text":"Grüß dich \ud83d\ude00"}]}],"usage":{"input_tokens":36,"input_tokens_details":{"cached_tokens":5},"output_tokens":87,"output_tokens_details":{"reasoning_tokens":60},"total_tokens":123}}})"})),
            "Grüß dich \U0001F600|Hm.\n\nYes.||stop 36/5/87/60");
  EXPECT_TRUE(repairs.empty());
}

TEST_F(ResponsesDecoderTest, CallsOfOpenAi) {
  const std::string stream = events_of(
      {R"({"type":"response.output_item.added","sequence_number":2,"output_index":0,"item":{"id":"fc_1","type":"function_call","status":"in_progress","arguments":"","call_id":"call_1","name":"add"}})",
       R"({"type":"response.output_item.added","sequence_number":3,"output_index":1,"item":{"id":"fc_2","type":"function_call","status":"in_progress","arguments":"","call_id":"call_2","name":"now"}})",
       R"({"type":"response.function_call_arguments.delta","sequence_number":4,"item_id":"fc_1","output_index":0,"delta":"{\"a\":"})",
       R"({"type":"response.function_call_arguments.delta","sequence_number":5,"item_id":"fc_2","output_index":1,"delta":"{}"})",
       R"({"type":"response.function_call_arguments.delta","sequence_number":6,"item_id":"fc_1","output_index":0,"delta":"1}"})",
       R"({"type":"response.function_call_arguments.done","sequence_number":7,"item_id":"fc_1","output_index":0,"arguments":"{\"a\":1}","name":"add"})",
       R"({"type":"response.output_item.done","sequence_number":8,"output_index":0,"item":{"id":"fc_1","type":"function_call","status":"completed","arguments":"{\"a\":1}","call_id":"call_1","name":"add"}})",
       R"({"type":"response.output_item.done","sequence_number":9,"output_index":1,"item":{"id":"fc_2","type":"function_call","status":"completed","arguments":"{}","call_id":"call_2","name":"now"}})",
       R"({"type":"response.completed","sequence_number":10,"response":{"id":"r","status":"completed","output":[{"id":"fc_1","type":"function_call","arguments":"{\"a\":1}","call_id":"call_1","name":"add"}],"usage":{"input_tokens":3,"output_tokens":2}}})"});
  EXPECT_EQ(
      read(stream),
      R"(||{"name":"add","arguments":{"a":1}}{"name":"now","arguments":{}}|tool_calls 3/0/2)");
  EXPECT_TRUE(repairs.empty());
  EXPECT_EQ(read(stream, {.has_call_parts = true}),
            R"(||call_1={"name":"add","arguments":{"a":1}}call_2={"name":"now","arguments":{}}|)"
            R"([call_1 add {"a":][call_2 now {}][call_1 add 1}]|tool_calls 3/0/2)");
}

TEST_F(ResponsesDecoderTest, OfLlamaServer) {
  // No indices, no end of the arguments, and "completed" for an answer that was cut off.
  const std::string stream =
      ":\n\n" +
      events_of(
          {R"({"type":"response.created","response":{"id":"resp_1","object":"response","status":"in_progress"}})",
           R"({"type":"response.output_item.added","item":{"id":"rs_1","summary":[],"type":"reasoning","content":[],"encrypted_content":"","status":"in_progress"}})",
           R"({"type":"response.reasoning_text.delta","delta":"Hm.","item_id":"rs_1"})",
           R"({"type":"response.output_item.added","item":{"id":"fc_x","arguments":"","call_id":"call_x","name":"add","type":"function_call","status":"in_progress"}})",
           R"({"type":"response.function_call_arguments.delta","delta":"{\"a\":1}","item_id":"fc_x"})",
           R"({"type":"response.output_item.done","item":{"id":"fc_x","type":"function_call","status":"completed","arguments":"{\"a\":1}","call_id":"call_x","name":"add"}})",
           completed(
               R"(,"usage":{"input_tokens":3,"output_tokens":2,"total_tokens":5,"input_tokens_details":{"cached_tokens":1}})")});
  EXPECT_EQ(read(stream), R"(|Hm.|{"name":"add","arguments":{"a":1}}|tool_calls 3/1/2)");
  EXPECT_TRUE(repairs.empty());
  const std::string cut = events_of({text("Yes"), completed(R"(,"usage":{"output_tokens":2})")});
  EXPECT_EQ(read(cut, {.max_tokens = 2}), "Yes|||length 0/0/2");
  EXPECT_TRUE(repairs.has(Repair::finish_reason));
  EXPECT_EQ(read(cut, {.max_tokens = 3}), "Yes|||stop 0/0/2");
  EXPECT_EQ(read(cut), "Yes|||stop 0/0/2");
}

TEST_F(ResponsesDecoderTest, ReasoningIsNotSummarizedAgain) {
  EXPECT_EQ(read(events_of({event("reasoning_text.delta", R"("delta":"Hm.")"),
                            event("reasoning_summary_text.delta", R"("delta":"He thought.")"),
                            text("Yes"), completed()})),
            "Yes|Hm.||stop 0/0/0");
}

TEST_F(ResponsesDecoderTest, RepairsCallsOfSloppyServers) {
  // The pieces have the id of the call, and the items have none.
  EXPECT_EQ(
      read(events_of({call_item("added", R"("call_id":"c1","name":"add","arguments":"")"),
                      arguments("c1", R"({\"a\":)"), arguments("c1", "1}"),
                      call_item("added", R"("call_id":"c2","name":"now")"), arguments("c2", "{}"),
                      completed()})),
      R"(||{"name":"add","arguments":{"a":1}}{"name":"now","arguments":{}}|tool_calls 0/0/0)");
  EXPECT_TRUE(repairs.empty());
  // Nothing says which call they are of.
  EXPECT_EQ(
      read(events_of({call_item("added", R"("name":"add")"),
                      event("function_call_arguments.delta", R"("delta":"{\"a\":1")"),
                      event("function_call_arguments.delta", R"("delta":"}")"), completed()}),
           {.made_id = "made_", .has_call_parts = true}),
      R"(||made_1={"name":"add","arguments":{"a":1}}|[made_1 add {"a":1][made_1 add }]|tool_calls 0/0/0)");
  EXPECT_TRUE(repairs.has(Repair::call_item));
  EXPECT_TRUE(repairs.has(Repair::call_id));
  // The same index for all, and no other sign.
  EXPECT_EQ(
      read(events_of({R"({"type":"response.output_item.added","output_index":0,)"
                      R"("item":{"type":"function_call","name":"add"}})",
                      R"({"type":"response.function_call_arguments.delta","output_index":0,)"
                      R"("delta":"{}"})",
                      R"({"type":"response.output_item.added","output_index":0,)"
                      R"("item":{"type":"function_call","name":"now"}})",
                      R"({"type":"response.function_call_arguments.delta","output_index":0,)"
                      R"("delta":"{\"b\":2}"})",
                      completed()})),
      R"(||{"name":"add","arguments":{}}{"name":"now","arguments":{"b":2}}|tool_calls 0/0/0)");
  // Two calls with one id.
  EXPECT_EQ(read(events_of({call_item("added", R"("id":"f1","call_id":"c","name":"add")"),
                            call_item("added", R"("id":"f2","call_id":"c","name":"now")"),
                            arguments("f2", "{}"), arguments("f1", R"({\"a\":1})"), completed()}),
                 {.made_id = "made_", .has_call_parts = true}),
            R"(||made_1={"name":"add","arguments":{"a":1}}c={"name":"now","arguments":{}}|)"
            R"([c now {}][made_1 add {"a":1}]|tool_calls 0/0/0)");
  EXPECT_TRUE(repairs.has(Repair::call_id));
}

TEST_F(ResponsesDecoderTest, CallsThatShareTheirIdsAreToldApartByTheirIndexes) {
  const auto item = [](std::string_view kind, int index, std::string_view members) {
    return event("output_item." + std::string(kind),
                 R"("output_index":)" + std::to_string(index) +
                     R"(,"item":{"type":"function_call","call_id":"c","name":"go")" +
                     std::string(members) + "}");
  };
  const auto piece = [](int index, std::string_view text) {
    return event("function_call_arguments.delta", R"("output_index":)" + std::to_string(index) +
                                                      R"(,"delta":")" + std::string(text) + "\"");
  };
  const std::string one = R"(,"arguments":"{\"a\":1}")";
  const std::string two = R"(,"arguments":"{\"a\":2}")";
  constexpr std::string_view kTwo =
      R"(||{"name":"go","arguments":{"a":1}}{"name":"go","arguments":{"a":2}}|tool_calls 0/0/0)";
  EXPECT_EQ(read(events_of({item("added", 0, ""), item("added", 1, ""), piece(0, R"({\"a\":1})"),
                            piece(1, R"({\"a\":2})"), item("done", 0, one), item("done", 1, two),
                            completed()})),
            kTwo);
  EXPECT_EQ(read(events_of({item("done", 0, one), item("done", 1, two), completed()})), kTwo);
  // An index that is wrong at the end alone makes no other call.
  EXPECT_EQ(read(events_of({item("added", 0, ""), piece(0, R"({\"a\":1})"), item("done", 1, one),
                            item("done", 2, one), completed()})),
            R"(||{"name":"go","arguments":{"a":1}}|tool_calls 0/0/0)");
}

TEST_F(ResponsesDecoderTest, AnItemThatIsAddedTwiceIsOne) {
  const std::string added =
      call_item("added", R"("id":"f","call_id":"c","name":"add","arguments":"")");
  EXPECT_EQ(read(events_of({added, added, arguments("f", R"({\"a\":1})"), completed()})),
            R"(||{"name":"add","arguments":{"a":1}}|tool_calls 0/0/0)");
  EXPECT_EQ(
      read(events_of({added, arguments("f", "{}"), added, arguments("f", "{}"), completed()})),
      R"(||{"name":"add","arguments":"{}{}"}{"name":"add","arguments":{}}|tool_calls 0/0/0)");
}

TEST_F(ResponsesDecoderTest, APieceOfArgumentsMayBeAnObject) {
  EXPECT_EQ(
      read(events_of({call_item("added", R"("id":"f","call_id":"c","name":"add")"),
                      event("function_call_arguments.delta", R"("item_id":"f","delta":{"a":1})"),
                      completed()})),
      R"(||{"name":"add","arguments":{"a":1}}|tool_calls 0/0/0)");
}

TEST_F(ResponsesDecoderTest, EventsOutOfOrderBelongToTheItemTheyName) {
  EXPECT_EQ(
      read(events_of({arguments("f1", R"({\"a\":)"),
                      call_item("added", R"("id":"f2","call_id":"c2","name":"now")"),
                      arguments("f1", "1}"),
                      call_item("added", R"("id":"f1","call_id":"c1","name":"add")"),
                      arguments("f2", "{}"), completed()})),
      R"(||{"name":"add","arguments":{"a":1}}{"name":"now","arguments":{}}|tool_calls 0/0/0)");
  EXPECT_TRUE(repairs.has(Repair::call_item));
  // The end alone says everything, and pieces that come later say nothing.
  EXPECT_EQ(read(events_of({call_item("done", R"("id":"f1","call_id":"c1","name":"add",)"
                                              R"("arguments":{"a":1})"),
                            arguments("f1", "x"), completed(), text("late")})),
            R"(||{"name":"add","arguments":{"a":1}}|tool_calls 0/0/0)");
  EXPECT_TRUE(repairs.has(Repair::call_item));
}

TEST_F(ResponsesDecoderTest, TheEndOfACallHolds) {
  EXPECT_EQ(read(events_of(
                {call_item("added", R"("id":"f","call_id":"c","name":"add")"),
                 arguments("f", R"({\"a\":)"),
                 event("function_call_arguments.done", R"("item_id":"f","arguments":"{\"a\":2}")"),
                 completed()})),
            R"(||{"name":"add","arguments":{"a":2}}|tool_calls 0/0/0)");
}

TEST_F(ResponsesDecoderTest, WhatWasNotStreamedIsTakenFromTheEnd) {
  const std::string output =
      R"(,"output":[{"type":"reasoning","summary":[{"type":"summary_text","text":"Hm."}]},)"
      R"({"type":"message","content":[{"type":"output_text","text":"Yes"}]},)"
      R"({"type":"function_call","call_id":"c","name":"now","arguments":"{}"}])";
  const std::string expected = R"(Yes|Hm.|{"name":"now","arguments":{}}|tool_calls 0/0/0)";
  EXPECT_EQ(read(events_of({completed(output)})), expected);
  EXPECT_TRUE(repairs.has(Repair::text));
  // A reply that is no stream.
  ResponsesDecoder decoder;
  std::vector<Delta> deltas;
  ASSERT_TRUE(decoder.take(
      {}, R"({"object":"response","id":"r1","status":"completed","error":null)" + output + "}",
      deltas));
  EXPECT_TRUE(decoder.is_done());
  EXPECT_EQ(decoder.response_id(), "r1");
  const Result<Completion> end = decoder.end(deltas);
  EXPECT_EQ(shown(deltas, end), expected);
  // One that is still to be made is no answer.
  ResponsesDecoder queued;
  ASSERT_TRUE(queued.take({}, R"({"object":"response","id":"r1","status":"queued"})", deltas));
  EXPECT_FALSE(queued.end(deltas));
}

TEST_F(ResponsesDecoderTest, AnAnswerThatIsCutOffSaysWhy) {
  const auto incomplete = [](std::string_view reason) {
    return event("incomplete", R"("response":{"incomplete_details":{"reason":")" +
                                   std::string(reason) + R"("},"usage":{"output_tokens":1}})");
  };
  EXPECT_EQ(read(events_of({text("Ye"), incomplete("max_output_tokens")})), "Ye|||length 0/0/1");
  EXPECT_THAT(read(events_of({text("Ye"), incomplete("content_filter")})),
              HasSubstr("content filter"));
  EXPECT_THAT(read(events_of({text("Ye"), incomplete("steered")})),
              HasSubstr("before it was whole: steered"));
  EXPECT_THAT(read(events_of({text("Ye")})), HasSubstr("before it was whole"));
  EXPECT_THAT(read(events_of({call_item("added", R"("id":"f","call_id":"c","name":"add")"),
                              arguments("f", R"({\"a)"), incomplete("max_output_tokens")})),
              HasSubstr("cut off within a call"));
  EXPECT_EQ(read(events_of({text("Yes"), "[DONE]"})), "Yes|||stop 0/0/0");
  EXPECT_TRUE(repairs.has(Repair::finish_reason));
}

TEST_F(ResponsesDecoderTest, ErrorsInTheStreamAreTheServers) {
  for (const std::string& said :
       {std::string(R"({"type":"error","code":"x","message":"out\nof memory","param":null})"),
        std::string(R"({"type":"error","status":400,"error":{"message":"out of memory"}})"),
        std::string(R"({"error":{"code":500,"message":"out of memory","type":"server_error"}})"),
        event(
            "failed",
            R"("response":{"status":"failed","error":{"code":"x","message":"out of memory"}})")}) {
    EXPECT_EQ(read(events_of({text("Ye"), said})),
              "error: The model's server failed: out of memory");
  }
  EXPECT_THAT(read(events_of({event("failed", R"("response":{})")})), HasSubstr("failed"));
  EXPECT_THAT(read(events_of({R"({"type":"error"})"})), HasSubstr("without a message"));
  EXPECT_THAT(read(events_of({"{"})), HasSubstr("cannot be read"));
  EXPECT_THAT(read(events_of({"[]"})), HasSubstr("no JSON object"));
}

TEST_F(ResponsesDecoderTest, UnknownAndOddEventsAreIgnored) {
  EXPECT_EQ(
      read(events_of({R"({"type":"response.web_search_call.searching","item_id":"w"})",
                      R"({"type":"acme:trace_event","sequence_number":1})", R"({"type":7})",
                      R"({"a":1})", event("output_text.delta", R"("delta":7)"),
                      event("output_item.added", R"("item":{"type":"web_search_call","id":"w"})"),
                      event("output_item.added", R"("item":[])"), text("Yes"),
                      R"({"type":"response.completed"})"})),
      "Yes|||stop 0/0/0");
  // The name of the event, where its data has no type.
  EXPECT_EQ(read("event: response.output_text.delta\n" + events_of({R"({"delta":"Yes"})"}) +
                 "event: response.completed\n" + events_of({R"({"response":{}})"})),
            "Yes|||stop 0/0/0");
}

TEST_F(ResponsesDecoderTest, CallsAreBounded) {
  std::vector<Delta> deltas;
  ResponsesDecoder many;
  Result<void> taken;
  for (int i = 0; i < 1000 && taken; ++i) {
    taken = many.take({}, arguments(std::to_string(i), "{"), deltas);
  }
  ASSERT_FALSE(taken);
  EXPECT_EQ(taken.error().code, kLimitReached);
  ResponsesDecoder huge;
  taken = {};
  const std::string part = arguments("f", std::string(100'000, 'x'));
  for (int i = 0; i < 1000 && taken; ++i) taken = huge.take({}, part, deltas);
  ASSERT_FALSE(taken);
  EXPECT_EQ(taken.error().code, kLimitReached);
}

}  // namespace
}  // namespace sluice
