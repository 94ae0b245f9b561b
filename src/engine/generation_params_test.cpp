#include "engine/generation_params.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "engine/chat/request_limits.hpp"
#include "json/json.hpp"
#include "json_schema/json_schema.hpp"

namespace sluice {
namespace {

using ::testing::HasSubstr;

Result<GenerationRequest> decoded(std::string_view name, const json::value& value) {
  json::object params;
  params["prompt"] = "x";
  params[name] = value;
  return decode_generation(params);
}

/// The decoder must accept what the schema allows, and refuse what it forbids.
TEST(GenerationParams, AreWhatTheSchemaAdvertises) {
  const auto schema = parse_json(generation_schema());
  ASSERT_TRUE(schema);
  std::size_t bounds = 0;
  for (const auto& [name, property] : schema->at("properties").as_object()) {
    for (const std::string_view end : {"minimum", "maximum"}) {
      const json::value* const bound = property.as_object().if_contains(end);
      if (bound == nullptr) continue;
      ++bounds;
      const auto request = decoded(name, *bound);
      EXPECT_TRUE(request) << name << ' ' << end;
      const double outside = bound->to_number<double>() + (end == "minimum" ? -1 : 1);
      EXPECT_FALSE(decoded(name, outside)) << name << ' ' << end;
      if (request) EXPECT_TRUE(check_sampling(request->sampling)) << name << ' ' << end;
    }
  }
  EXPECT_GT(bounds, 20U);
  const auto longest =
      static_cast<std::size_t>(schema->at("properties").at("stop").at("maxLength").as_int64());
  EXPECT_TRUE(decoded("stop", json::string(std::string(longest, 'x'))));
  EXPECT_TRUE(decoded("stop", json::array{json::string(std::string(longest, 'x'))}));
  std::string wide;
  for (std::size_t i = 0; i < longest; ++i) wide += "\U0001F600";
  EXPECT_TRUE(decoded("stop", json::string(wide)));
  EXPECT_FALSE(decoded("stop", json::string(std::string(longest + 1, 'x'))));
}

/// The decoder and the schema must agree on every value.
TEST(GenerationParams, AreTakenExactlyWhereTheSchemaTakesThem) {
  const json::value schema = parse_json(generation_schema()).value();
  const JsonSchema compiled = JsonSchema::compile(schema).value();
  const json::array message = {{{"role", "user"}, {"content", "x"}}};
  const std::vector<json::value> values = {nullptr,
                                           true,
                                           0,
                                           1,
                                           -1,
                                           1.0,
                                           2.0,
                                           1.5,
                                           1e300,
                                           -1e300,
                                           "",
                                           "x",
                                           "1",
                                           json::array(),
                                           json::object(),
                                           json::array{"x"},
                                           json::array{1},
                                           json::array{""},
                                           json::array(17, "x"),
                                           message,
                                           json::array{nullptr},
                                           json::array{json::object{}},
                                           {{"type", "string"}}};
  for (const auto& [name, property] : schema.at("properties").as_object()) {
    if (name == "stream_id") continue;  // starts a different kind of call
    for (const json::value& value : values) {
      json::object params;
      params[name] = value;
      EXPECT_EQ(decode_generation(params).has_value(), compiled.validate(params).has_value())
          << to_json(params);
    }
  }
}

TEST(GenerationParams, NullIsAsGoodAsNothing) {
  json::object params = {{"messages", {{{"role", "user"}, {"content", "x"}}}}};
  const json::value schema = parse_json(generation_schema()).value();
  for (const auto& [name, property] : schema.at("properties").as_object()) {
    if (name != "messages" && name != "stream_id") params[name] = nullptr;
  }
  const auto request = decode_generation(params);
  ASSERT_TRUE(request) << request.error().message;
  EXPECT_EQ(request->messages.size(), 1U);
  EXPECT_EQ(request->sampling.temperature, GenerationRequest().sampling.temperature);
  EXPECT_TRUE(decoded("messages", nullptr));
}

TEST(GenerationParams, IntegersMayBeWrittenAsFractions) {
  EXPECT_EQ(decoded("max_tokens", 16.0).value().max_tokens, 16);
  EXPECT_EQ(decoded("count", parse_json("1e2").value()).value().count, 100);
  EXPECT_FALSE(decoded("max_tokens", 16.5));
}

TEST(GenerationParams, MessagesHaveCallsAndResults) {
  const auto read = [](std::string_view messages) {
    json::object params;
    params["messages"] = parse_json(messages).value();
    return decode_generation(params);
  };
  const auto request = read(R"([{"role":"user","content":"Two cities"},
    {"role":"assistant","content":null,"tool_calls":[
      {"id":"a","type":"function","function":{"name":"get","arguments":"{\"city\":\"Paris\"}"}},
      {"id":"b","name":"find","arguments":{"city":"Rome"}},
      {"name":"now"},
      {"name":"raw","arguments":"[ 1"}]},
    {"role":"tool","tool_call_id":"b","content":"12"},
    {"role":"tool","content":"13"},
    {"role":"tool","tool_call_id":"unknown","content":"14"},
    {"role":"user","content":"Thanks","tool_calls":7}])");
  ASSERT_TRUE(request) << request.error().message;
  const ChatMessage& asked = request->messages[1];
  EXPECT_EQ(asked.content, "");
  ASSERT_EQ(asked.tool_calls.size(), 4U);
  EXPECT_EQ(asked.tool_calls[0].id, "a");
  EXPECT_EQ(asked.tool_calls[0].name, "get");
  EXPECT_EQ(asked.tool_calls[0].arguments, R"({"city":"Paris"})");
  EXPECT_EQ(asked.tool_calls[3].arguments, "[ 1") << "text is left to the engine";
  EXPECT_EQ(asked.tool_calls[1].arguments, R"({"city":"Rome"})");
  EXPECT_EQ(asked.tool_calls[2].arguments, "{}");
  EXPECT_EQ(request->messages[2].tool_call_id, "b");
  EXPECT_EQ(request->messages[2].tool_name, "find");
  EXPECT_EQ(request->messages[3].tool_name, "");
  EXPECT_EQ(request->messages[4].tool_name, "");

  const auto refusal = [&](std::string_view assistant) {
    const auto refused = read(R"([{"role":"assistant",)" + std::string(assistant) + "}]");
    return refused ? "none" : refused.error().message;
  };
  EXPECT_THAT(refusal(R"("content":null)"), HasSubstr("messages[0].content must be a string"));
  EXPECT_THAT(refusal(R"("tool_calls":[])"), HasSubstr("messages[0].content must be a string"));
  EXPECT_THAT(refusal(R"("tool_calls":{})"), HasSubstr("messages[0].tool_calls must be an array"));
  EXPECT_THAT(refusal(R"("tool_calls":[7])"), HasSubstr("messages[0].tool_calls[0] must be an"));
  EXPECT_THAT(refusal(R"("tool_calls":[{"function":7}])"), HasSubstr("tool_calls[0] must be an"));
  EXPECT_THAT(refusal(R"("tool_calls":[{"name":""}])"), HasSubstr("tool_calls[0].name must be"));
  EXPECT_THAT(refusal(R"("tool_calls":[{"name":"a","arguments":[1]}])"),
              HasSubstr("tool_calls[0].arguments must be an object, or the JSON text of one"));
  EXPECT_THAT(refusal(R"("tool_calls":[{"name":"a","id":1}])"), HasSubstr("tool_calls[0].id must"));
  EXPECT_THAT(read(R"([{"role":"tool","content":"1","tool_call_id":1}])").error().message,
              HasSubstr("messages[0].tool_call_id must be a string"));
  const std::string longest(256, 'i');
  const std::string call = R"("tool_calls":[{"name":"a","id":")" + longest;
  EXPECT_EQ(refusal(call + R"("}])"), "none");
  EXPECT_THAT(refusal(call + R"(i"}])"), HasSubstr("tool_calls[0].id must be a string of at most"));
  const std::string result = R"([{"role":"tool","content":"1","tool_call_id":")" + longest;
  EXPECT_TRUE(read(result + R"("}])"));
  EXPECT_THAT(read(result + R"(i"}])").error().message, HasSubstr("at most 256 bytes"));
}

TEST(GenerationParams, AResultBelongsToTheLastMessageWithCalls) {
  const auto request = decode_generation(parse_json(R"({"messages":[
        {"role":"assistant","tool_calls":[{"id":"a","name":"old"},{"id":"b","name":"other"}]},
        {"role":"tool","tool_call_id":"b","content":"1"},
        {"role":"assistant","tool_calls":[{"id":"a","name":"new"},{"name":"nameless"}]},
        {"role":"tool","tool_call_id":"a","content":"2"},
        {"role":"tool","tool_call_id":"b","content":"3"},
        {"role":"tool","tool_call_id":"","content":"4"}]})")
                                             .value()
                                             .as_object());
  ASSERT_TRUE(request) << request.error().message;
  EXPECT_EQ(request->messages[1].tool_name, "other");
  EXPECT_EQ(request->messages[3].tool_name, "new");
  EXPECT_EQ(request->messages[4].tool_name, "");
  EXPECT_EQ(request->messages[5].tool_name, "");
}

TEST(GenerationParams, CallsCountLikeMessages) {
  const auto refusal = [](std::size_t calls_of_last) {
    json::array messages;
    const auto add = [&](std::size_t calls) {
      json::array list(calls, {{"name", "a"}});
      messages.push_back({{"role", "assistant"}, {"tool_calls", std::move(list)}});
    };
    for (int i = 0; i < 31; ++i) add(128);  // 3999 with the messages
    add(calls_of_last);
    const auto request = decode_generation({{"messages", std::move(messages)}});
    return request ? "none" : request.error().message;
  };
  EXPECT_EQ(refusal(96), "none");
  EXPECT_THAT(refusal(97), HasSubstr("at most 4096 messages, their tool_calls included"));
}

}  // namespace
}  // namespace sluice
