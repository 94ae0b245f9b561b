#include "protocol/task.hpp"

#include <chrono>
#include <gtest/gtest.h>
#include <string>

#include "protocol/client_capabilities.hpp"
#include "rpc/error_codes.hpp"

namespace sluice {
namespace {

using namespace std::chrono_literals;

json::object parsed_object(std::string_view text) {
  return parse_json(text).value().get_object();
}

TEST(TaskTest, TimestampsAreOfRfc3339InUtc) {
  std::string out;
  append_timestamp(out, TaskState::Time(1764066600s + 7ms));
  EXPECT_EQ(out, "2025-11-25T10:30:00.007Z");
  out.clear();
  append_timestamp(out, TaskState::Time(951826154s + 999ms + 999us));
  EXPECT_EQ(out, "2000-02-29T12:09:14.999Z");
}

TEST(TaskTest, AStateHasTheFormOfItsRevision) {
  const TaskState state{.id = "t\"1",
                        .status = TaskStatus::input_required,
                        .message = "Why",
                        .created = TaskState::Time(0s),
                        .updated = TaskState::Time(1s),
                        .ttl = 60s,
                        .poll_interval = 500ms};
  std::string out;
  append_task(out, state, *find_revision("2025-11-25"));
  EXPECT_EQ(out, R"("taskId":"t\"1","status":"input_required","statusMessage":"Why",)"
                 R"("createdAt":"1970-01-01T00:00:00.000Z",)"
                 R"("lastUpdatedAt":"1970-01-01T00:00:01.000Z","ttl":60000,"pollInterval":500)");
  out.clear();
  append_task(out, state, *find_revision("2026-07-28"));
  EXPECT_TRUE(out.ends_with(R"("ttlMs":60000,"pollIntervalMs":500)")) << out;
}

TEST(TaskTest, ARequestMayNameATtl) {
  EXPECT_FALSE(decode_task_request(parsed_object("{}")).value().has_value());
  EXPECT_FALSE(decode_task_request(parsed_object(R"({"task":{}})")).value()->ttl.has_value());
  EXPECT_EQ(decode_task_request(parsed_object(R"({"task":{"ttl":1500}})")).value()->ttl, 1500ms);
  EXPECT_EQ(decode_task_request(parsed_object(R"({"task":{"ttl":1.9}})")).value()->ttl, 1ms);
  // A ttl that is too large to represent is clamped.
  for (const char* const ttl : {"1e300", "18446744073709551615", "9223372036854775807"}) {
    const auto decoded =
        decode_task_request(parsed_object(R"({"task":{"ttl":)" + std::string(ttl) + "}}"));
    EXPECT_EQ(decoded.value()->ttl, 876000h) << ttl;
  }
  for (const char* const wrong :
       {R"({"task":1})", R"({"task":null})", R"({"task":{"ttl":"1"}})", R"({"task":{"ttl":-1}})",
        R"({"task":{"ttl":null}})", R"({"task":{"ttl":-0.5}})"}) {
    const auto decoded = decode_task_request(parsed_object(wrong));
    ASSERT_FALSE(decoded.has_value()) << wrong;
    EXPECT_EQ(decoded.error().code, kInvalidParams) << wrong;
  }
}

TEST(TaskTest, IdsResponsesAndCursorsAreChecked) {
  EXPECT_EQ(decode_task_id(parsed_object(R"({"taskId":"a"})")).value(), "a");
  EXPECT_TRUE(decode_task_id({{"taskId", std::string(kMaxTaskId, 'a')}}).has_value());
  EXPECT_FALSE(decode_task_id({{"taskId", std::string(kMaxTaskId + 1, 'a')}}).has_value());
  for (const char* const wrong : {"{}", R"({"taskId":1})", R"({"taskId":""})"}) {
    EXPECT_FALSE(decode_task_id(parsed_object(wrong)).has_value()) << wrong;
  }
  const json::object responses = parsed_object(R"({"inputResponses":{"a":{}}})");
  EXPECT_EQ(decode_input_responses(responses).value()->size(), 1U);
  for (const char* const wrong : {"{}", R"({"inputResponses":[]})"}) {
    EXPECT_FALSE(decode_input_responses(parsed_object(wrong)).has_value()) << wrong;
  }
  EXPECT_FALSE(decode_cursor(parsed_object("{}")).value().has_value());
  EXPECT_EQ(decode_cursor(parsed_object(R"({"cursor":"c"})")).value(), "c");
  EXPECT_FALSE(decode_cursor(parsed_object(R"({"cursor":1})")).has_value());
}

TEST(TaskTest, AClientDeclaresTheExtensionAsAnObject) {
  const auto declares = [](std::string_view text) {
    return decode_client_capabilities(parsed_object(text), newest_revision(Era::modern)).tasks;
  };
  EXPECT_TRUE(declares(R"({"extensions":{"io.modelcontextprotocol/tasks":{}}})"));
  EXPECT_FALSE(declares(R"({"extensions":{"io.modelcontextprotocol/tasks":true}})"));
  EXPECT_FALSE(declares(R"({"extensions":{}})"));
  EXPECT_FALSE(declares(R"({"tasks":{}})"));
}

}  // namespace
}  // namespace sluice
