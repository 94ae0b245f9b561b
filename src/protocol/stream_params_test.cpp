#include "protocol/stream_params.hpp"

#include <gtest/gtest.h>
#include <string>
#include <string_view>
#include <vector>

#include "rpc/error_codes.hpp"

namespace sluice {
namespace {

json::object object(std::string_view members) {
  Result<json::value> value = parse_json("{" + std::string(members) + "}");
  EXPECT_TRUE(value) << members;
  return value ? value->as_object() : json::object();
}

/// Expects `decode` to refuse with -32602 and a message that begins with the parameter's name.
template <class Decode>
void expect_refused(Decode decode, std::string_view name,
                    const std::vector<std::string_view>& cases) {
  for (const std::string_view members : cases) {
    const auto decoded = decode(object(members));
    ASSERT_FALSE(decoded) << members;
    EXPECT_EQ(decoded.error().code, kInvalidParams) << members;
    EXPECT_TRUE(
        decoded.error().message.starts_with("Invalid params: " + std::string(name) + " must be "))
        << decoded.error().message;
  }
}

TEST(RunStart, HasDefaults) {
  const auto start = decode_run_start(object(R"("prompt":"a")"));
  ASSERT_TRUE(start);
  EXPECT_FALSE(start->stream);
  EXPECT_EQ(start->priority, 0);
  EXPECT_EQ(start->window, 0U);
}

TEST(RunStart, TakesValuesUpToTheLimits) {
  auto start = decode_run_start(object(R"("stream":true,"priority":-10,"window":1)"));
  ASSERT_TRUE(start);
  EXPECT_TRUE(start->stream);
  EXPECT_EQ(start->priority, -10);
  EXPECT_EQ(start->window, 1U);
  start = decode_run_start(object(R"("stream":false,"priority":10,"window":1048576)"));
  ASSERT_TRUE(start);
  EXPECT_EQ(start->priority, 10);
  EXPECT_EQ(start->window, kMaxWindow);
}

TEST(RunStart, RefusesTheRest) {
  expect_refused(decode_run_start, "stream", {R"("stream":1)", R"("stream":"true")"});
  expect_refused(decode_run_start, "priority",
                 {R"("priority":11)", R"("priority":-11)", R"("priority":1.5)", R"("priority":"1")",
                  R"("priority":18446744073709551615)", R"("priority":true)"});
  expect_refused(decode_run_start, "window",
                 {R"("window":0)", R"("window":-1)", R"("window":1048577)", R"("window":1e-3)",
                  R"("window":"16")"});
}

TEST(RunStart, NullIsAsGoodAsNothingAndFractionsMayBeIntegers) {
  auto start = decode_run_start(object(R"("stream":null,"priority":null,"window":null)"));
  ASSERT_TRUE(start);
  EXPECT_FALSE(start->stream);
  start = decode_run_start(object(R"("priority":2.0,"window":1e3)"));
  ASSERT_TRUE(start);
  EXPECT_EQ(start->priority, 2);
  EXPECT_EQ(start->window, 1000U);
  const auto poll = decode_run_poll(object(R"("stream_id":"a","from_seq":null,"wait_ms":null)"));
  ASSERT_TRUE(poll);
  EXPECT_EQ(poll->from, std::nullopt);
  // A stream_id of null must not start another stream.
  EXPECT_TRUE(is_poll(object(R"("stream_id":null)")));
}

TEST(RunPoll, IsARunWithAStreamId) {
  EXPECT_TRUE(is_poll(object(R"("stream_id":"a")")));
  EXPECT_FALSE(is_poll(object(R"("prompt":"a")")));

  auto poll = decode_run_poll(object(R"("stream_id":"0123456789abcdef")"));
  ASSERT_TRUE(poll);
  EXPECT_EQ(poll->stream_id, "0123456789abcdef");
  EXPECT_EQ(poll->from, std::nullopt);
  EXPECT_EQ(poll->wait.count(), 0);
  EXPECT_EQ(poll->max_chunks, kMaxWindow);

  poll = decode_run_poll(object(R"("stream_id":"a","from_seq":0,"wait_ms":60000,"max_chunks":1)"));
  ASSERT_TRUE(poll);
  EXPECT_EQ(poll->from, Seq{0});
  EXPECT_EQ(poll->wait, kMaxPollWait);
  EXPECT_EQ(poll->max_chunks, 1U);

  poll = decode_run_poll(object(R"("stream_id":"a","from_seq":9223372036854775807)"));
  ASSERT_TRUE(poll);
  EXPECT_EQ(poll->from, Seq{9223372036854775807U});
}

TEST(RunPoll, RefusesTheRest) {
  expect_refused(decode_run_poll, "stream_id",
                 {"", R"("stream_id":1)", R"("stream_id":null)", R"("stream_id":["a"])"});
  expect_refused(
      decode_run_poll, "from_seq",
      {R"("stream_id":"a","from_seq":-1)", R"("stream_id":"a","from_seq":1.5)",
       R"("stream_id":"a","from_seq":"0")", R"("stream_id":"a","from_seq":9223372036854775808)",
       R"("stream_id":"a","from_seq":1e30)"});
  expect_refused(decode_run_poll, "wait_ms",
                 {R"("stream_id":"a","wait_ms":-1)", R"("stream_id":"a","wait_ms":60001)",
                  R"("stream_id":"a","wait_ms":true)"});
  expect_refused(decode_run_poll, "max_chunks",
                 {R"("stream_id":"a","max_chunks":0)", R"("stream_id":"a","max_chunks":1048577)",
                  R"("stream_id":"a","max_chunks":"1")"});
}

TEST(Subscribe, IsDecoded) {
  auto subscribe = decode_subscribe(object(R"("stream_id":"a")"));
  ASSERT_TRUE(subscribe);
  EXPECT_EQ(subscribe->stream_id, "a");
  EXPECT_EQ(subscribe->from, std::nullopt);
  EXPECT_EQ(subscribe->window, 0U);
  subscribe = decode_subscribe(object(R"("stream_id":"a","from_seq":5,"window":2)"));
  ASSERT_TRUE(subscribe);
  EXPECT_EQ(subscribe->from, Seq{5});
  EXPECT_EQ(subscribe->window, 2U);
  expect_refused(decode_subscribe, "stream_id", {"", R"("stream_id":{})"});
  expect_refused(decode_subscribe, "from_seq", {R"("stream_id":"a","from_seq":-1)"});
  expect_refused(decode_subscribe, "window",
                 {R"("stream_id":"a","window":0)", R"("stream_id":"a","window":1048577)"});
}

TEST(Acknowledge, NeedsASequenceNumber) {
  const auto ack = decode_ack(object(R"("stream_id":"a","seq":0)"));
  ASSERT_TRUE(ack);
  EXPECT_EQ(ack->stream_id, "a");
  EXPECT_EQ(ack->seq, 0U);
  expect_refused(decode_ack, "stream_id", {R"("seq":0)"});
  expect_refused(decode_ack, "seq",
                 {R"("stream_id":"a")", R"("stream_id":"a","seq":-1)",
                  R"("stream_id":"a","seq":"1")", R"("stream_id":"a","seq":9223372036854775808)"});
}

TEST(ParseSeq, TakesDigitsOnly) {
  EXPECT_EQ(parse_seq("0"), Seq{0});
  EXPECT_EQ(parse_seq("42"), Seq{42});
  EXPECT_EQ(parse_seq("9223372036854775807"), Seq{9223372036854775807U});
  for (const std::string_view text : {"", " ", "-1", "+1", " 1", "1 ", "1.0", "0x1", "a", "1,2",
                                      "9223372036854775808", "99999999999999999999999999"}) {
    EXPECT_EQ(parse_seq(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace sluice
