// What a call takes of the memory of its client.

#include "server/calls/pending_request_test_support.hpp"

namespace sluice {
namespace {

using ::testing::HasSubstr;

TEST_F(PendingRequestTest, WhatIsLongOfARequestIsOnItsClientsMemory) {
  const std::size_t before = bench.policy.budget.used();
  const std::string text(std::size_t{4} << 20U, 'x');
  const std::string parameters = R"("name":"later","arguments":{"text":")" + text + R"("})";
  bench.request("tools/call", R"("name":"later","arguments":{"text":"short"})", caller);
  EXPECT_EQ(bench.policy.budget.used(), before);
  std::string refused;
  for (int i = 0; i < 20 && refused.empty(); ++i) {
    refused = bench.request("tools/call", parameters, caller);
  }
  EXPECT_EQ(error_code(refused), kLimitReached) << refused.substr(0, 300);
  EXPECT_THAT(refused, HasSubstr("streams.max_total_bytes"));
  const std::size_t held = bench.policy.budget.used();
  EXPECT_GT(held, before + (std::size_t{24} << 20U));
  EXPECT_LT(held, bench.policy.budget.limit() / 2 + 8192);
  // Other clients still find memory, and calls that are over release theirs.
  RecordingCaller bob("bob");
  EXPECT_EQ(bench.request("tools/call", parameters, bob), "");
  for (const auto& each : bench.calls) each->complete({.text = "done"});
  EXPECT_EQ(bench.policy.budget.used(), before);
  EXPECT_EQ(bench.request("tools/call", parameters, caller), "");
  call().cancel();
  EXPECT_EQ(bench.policy.budget.used(), before);
}

TEST_F(PendingRequestTest, ManyShortValuesTakeMoreMemoryThanTheirText) {
  const std::size_t before = bench.policy.budget.used();
  std::string list;
  for (int i = 0; i < 10'000; ++i) list.append("[],");
  list.back() = ']';
  bench.request("tools/call", R"("name":"later","arguments":{},"_meta":{"z":[)" + list + "}",
                caller);
  EXPECT_GE(bench.policy.budget.used(), before + list.size() + 10'000 * sizeof(json::value));
  call().cancel();
  EXPECT_EQ(bench.policy.budget.used(), before);
}

TEST_F(PendingRequestTest, LongAnswersAreOnTheMemoryOfTheirClientUntilTheCallIsOver) {
  call_in_session(R"({"elicitation":{}})");
  const std::size_t before = bench.policy.budget.used();
  const std::string text(std::size_t{1} << 20U, 'x');
  const auto ask = [&] {
    std::string outcome;
    call().ask({{"name", "elicitation/create", parse_json(kAsksForName)->get_object()}},
               [&](const Result<std::vector<json::value>>& answers) {
                 outcome = answers ? "answered" : answers.error().message;
               });
    bench.run_all();
    respond(asked_id("elicitation/create"),
            R"("result":{"action":"accept","content":{"name":")" + text + R"("}})");
    return outcome;
  };
  EXPECT_EQ(ask(), "answered");
  EXPECT_GE(bench.policy.budget.used(), before + text.size());
  EXPECT_EQ(ask(), "answered");
  EXPECT_GE(bench.policy.budget.used(), before + 2 * text.size());
  EXPECT_LT(bench.policy.budget.used(), before + 3 * text.size());
  // Others hold all the rest of the memory.
  const std::size_t rest = bench.policy.budget.limit() - bench.policy.budget.used();
  ASSERT_TRUE(bench.policy.budget.try_acquire(rest));
  EXPECT_THAT(ask(), HasSubstr("streams.max_total_bytes"));
  bench.policy.budget.release(rest);
  call().complete({.text = "done"});
  EXPECT_LT(bench.policy.budget.used(), before + 4096);
}

TEST_F(PendingRequestTest, LongQuestionsAreOnTheMemoryOfTheirClient) {
  call_in_session(R"({"elicitation":{}})");
  const std::size_t before = bench.policy.budget.used();
  json::object params = parse_json(kAsksForName)->get_object();
  params["message"] = std::string(std::size_t{4} << 20U, 'x');
  std::optional<Error> refused;
  std::vector<PendingRequest::Withdraw> asked;
  for (int i = 0; i < 20 && !refused; ++i) {
    asked.push_back(call().ask({{"name", "elicitation/create", params}},
                               [&](const Result<std::vector<json::value>>& answers) {
                                 if (!answers) refused = answers.error();
                               }));
  }
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->code, kLimitReached);
  EXPECT_THAT(refused->message, HasSubstr("streams.max_total_bytes"));
  EXPECT_GT(bench.policy.budget.used(), before + (std::size_t{24} << 20U));
  EXPECT_FALSE(call().over()) << "its handler decides what becomes of it";
  for (PendingRequest::Withdraw& withdraw : asked) {
    if (withdraw) withdraw();
  }
  EXPECT_LT(bench.policy.budget.used(), before + 4096);
}

}  // namespace
}  // namespace sluice
