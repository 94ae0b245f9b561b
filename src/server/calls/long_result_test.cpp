#include "server/calls/long_result.hpp"

#include "server/calls/pending_request_test_support.hpp"

namespace sluice {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

/// With a worker that checks and writes long results.
class LongResultTest : public PendingRequestTest {
 protected:
  LongResultTest() {
    for (Tool& tool : bench.definition.tools) {
      tool.output_schema = R"({"type":"object","required":["n"]})";
    }
    bench.definition.tools.push_back(
        {.name = "long",
         .description = "",
         .input_schema = R"({"type":"object"})",
         .handler = Tool::Immediate([](const json::object&) -> Result<ToolResult> {
           return ToolResult{.structured_text = long_json(true)};
         })});
    bench.serve();
    bench.dispatcher.emplace(bench.catalog, *bench.services[0], bench.sessions, bench.quota,
                             *bench.changes, *bench.tasks, bench.long_messages, bench.checks,
                             &workers);
    occupy_worker();
  }
  ~LongResultTest() override {
    if (!is_free) free_worker();
    bench.calls.clear();
    bench.dispatcher.reset();
  }

  static std::string long_json(bool fits) {
    return R"({"text":")" + std::string(LongResult::kLong, 'x') + (fits ? R"(","n":1})" : "\"}");
  }
  /// Keeps the worker busy until free_worker(). Returns once it is busy.
  void occupy_worker() {
    is_free = false;
    go_on = {};
    std::promise<void> begun;
    workers.run(workers.new_id(), "other", [&begun, until = go_on.get_future().share()] {
      begun.set_value();
      until.wait();
    });
    begun.get_future().wait();
  }
  void free_worker() {
    is_free = true;
    go_on.set_value();
    std::promise<void> done;
    // This runs after the job of alice.
    workers.run(workers.new_id(), "bob", [&] { done.set_value(); });
    done.get_future().wait();
    bench.run_all();
  }

  std::promise<void> go_on;
  bool is_free = false;
  WorkerPool workers{1, SIZE_MAX};
};

TEST_F(LongResultTest, AreCheckedAndWrittenByAWorker) {
  for (const bool fits : {true, false}) {
    call_modern();
    call().complete({.structured_text = long_json(fits)});
    call().complete({.text = "again"});
    call().fail({kInternalError, "again", {}});
    bench.calls.clear();
    bench.run_all();
    EXPECT_TRUE(channel().replies.empty()) << "the loop has not done it";
    free_worker();
    ASSERT_EQ(channel().replies.size(), 1U);
    if (fits) {
      EXPECT_THAT(channel().replies.front(),
                  HasSubstr(R"("structuredContent":)" + long_json(true)));
      EXPECT_THAT(channel().replies.front(), HasSubstr(R"("text":"{\"text\":\"xxx)"));
    } else {
      EXPECT_EQ(error_code(channel().replies.front()), kInternalError);
    }
    occupy_worker();
  }
}

TEST(LongResultWithoutAWorker, IsAnError) {
  std::promise<void> begun;
  std::promise<void> go_on;
  WorkerPool pool(1, 0);
  pool.run(pool.new_id(), "other", [&] {
    begun.set_value();
    go_on.get_future().wait();
  });
  begun.get_future().wait();
  ManualExecutor loop;
  bool is_done = false;
  LongResult refused([]() -> Result<std::string> { return "written"; }, pool, "alice", loop,
                     MemoryHold(), [&] { is_done = true; });
  EXPECT_FALSE(is_done);
  loop.run();
  EXPECT_TRUE(is_done);
  ASSERT_FALSE(refused.response());
  EXPECT_EQ(refused.response().error().code, kBusy);
  go_on.set_value();
}

TEST_F(LongResultTest, MayBeNoTextYet) {
  call_modern();
  call().complete(
      {.value = std::make_shared<const json::value>(parse_json(long_json(true)).value())});
  bench.run_all();
  EXPECT_TRUE(channel().replies.empty());
  free_worker();
  ASSERT_EQ(channel().replies.size(), 1U);
  EXPECT_THAT(channel().replies.front(), HasSubstr(R"("structuredContent":)" + long_json(true)));
  EXPECT_THAT(channel().replies.front(), HasSubstr(R"("text":"{\"text\":\"xxx)"));
  // The same goes for a short result.
  for (const bool fits : {true, false}) {
    call_modern();
    call().complete(
        {.value = std::make_shared<const json::value>(json::object{{fits ? "n" : "m", 1}})});
    EXPECT_EQ(error_code(channel().replies.back()), fits ? 0 : kInternalError);
  }
}

TEST_F(LongResultTest, HaveASizeThatIsKnownFromAPart) {
  json::array texts;
  while (texts.size() < 100'000) texts.emplace_back(std::string(100, 'x'));
  const std::size_t bytes = texts.size() * (sizeof(json::value) + 100);
  const ToolResult result{.value = std::make_shared<const json::value>(std::move(texts))};
  EXPECT_TRUE(LongResult::is_long(result));
  EXPECT_GT(LongResult::size_of(result), bytes * 9 / 10);
  EXPECT_LT(LongResult::size_of(result), bytes * 11 / 10);
  const ToolResult blocks{.content = {Content::text(std::string(LongResult::kLong + 1, 'x'))}};
  EXPECT_TRUE(LongResult::is_long(blocks));
}

TEST_F(LongResultTest, AreKnownToBeJsonByAWorker) {
  for (const bool fits : {true, false}) {
    call_modern();
    call().complete({.structured_text = "{\n" + long_json(true).substr(1) + (fits ? "" : "}")});
    bench.run_all();
    EXPECT_TRUE(channel().replies.empty());
    ::testing::internal::CaptureStderr();
    free_worker();
    const std::string logged = ::testing::internal::GetCapturedStderr();
    ASSERT_EQ(channel().replies.size(), 1U);
    EXPECT_EQ(error_code(channel().replies[0]), fits ? 0 : kInternalError);
    EXPECT_THAT(channel().replies[0], Not(HasSubstr("\n")));
    EXPECT_EQ(logged.contains("no JSON"), !fits) << logged;
    occupy_worker();
  }
}

TEST_F(LongResultTest, MayBeResourcesAndPrompts) {
  const auto contents = [] {
    return ResourceResult{
        .contents = {{.uri = "note://long", .data = std::string(LongResult::kLong + 1, 'x')}}};
  };
  const auto messages = [] {
    return PromptResult{.messages = {{.content = Content::text(long_json(true))}}};
  };
  using Read = Resource::Read;
  using Get = Prompt::Get;
  // What answers later does so at once here.
  const auto later = [](auto make) {
    return [make](const auto& /*in*/, std::shared_ptr<PendingRequest> request,
                  const auto& then) -> Result<void> {
      then(*request, make());
      return {};
    };
  };
  for (const bool at_once : {true, false}) {
    bench.definition.resources = {resource_at("note://long")};
    bench.definition.prompts = {
        {.name = "long", .description = "", .arguments = {}, .get = Get::Immediate()}};
    if (at_once) {
      bench.definition.resources[0].read = [=](const std::string&) { return contents(); };
      bench.definition.prompts[0].get = [=](const UriTemplate::Variables&) { return messages(); };
    } else {
      bench.definition.resources[0].read = Read(Read::Deferred(later(contents)));
      bench.definition.prompts[0].get = Get(Get::Deferred(later(messages)));
    }
    bench.serve();
    bench.dispatcher.emplace(bench.catalog, *bench.services[0], bench.sessions, bench.quota,
                             *bench.changes, *bench.tasks, bench.long_messages, bench.checks,
                             &workers);
    call_in_session();
    for (const bool is_resource : {true, false}) {
      EXPECT_EQ(is_resource ? bench.request("resources/read", R"("uri":"note://long")", caller)
                            : bench.request("prompts/get", R"("name":"long")", caller),
                "");
      bench.run_all();
      EXPECT_TRUE(channel().replies.empty()) << "the loop has not done it";
      free_worker();
      ASSERT_EQ(channel().replies.size(), 1U);
      EXPECT_THAT(channel().replies[0],
                  HasSubstr(is_resource ? R"("text":"xxx)" : R"("text":"{\"text\":\"xxx)"));
      occupy_worker();
    }
    caller.full = true;
    const std::string now = bench.request("resources/read", R"("uri":"note://long")", caller);
    caller.full = false;
    if (at_once) {
      EXPECT_THAT(now, HasSubstr("xxx")) << "who may have no more calls";
    }
  }
}

TEST_F(LongResultTest, OfAToolThatAnswersAtOnceAreTheSame) {
  call_in_session();
  EXPECT_EQ(bench.request("tools/call", R"("name":"long")", caller), "");
  EXPECT_EQ(bench.outcome.kind, Outcome::Kind::pending);
  bench.run_all();
  EXPECT_TRUE(channel().replies.empty());
  free_worker();
  ASSERT_EQ(channel().replies.size(), 1U);
  EXPECT_THAT(channel().replies.front(), HasSubstr(R"(,"n":1})"));
}

TEST_F(LongResultTest, AreAnsweredAtOnceByWhoMayHaveNoMoreCalls) {
  call_in_session();
  caller.full = true;
  EXPECT_THAT(bench.request("tools/call", R"("name":"long")", caller), HasSubstr(R"(,"n":1})"));
}

TEST_F(LongResultTest, GoWithACallThatIsOverMeanwhile) {
  std::weak_ptr<PendingRequest> left;
  for (const bool is_cancelled : {true, false}) {
    call_modern();
    left = bench.calls.back();
    call().complete({.structured_text = long_json(true)});
    bench.calls.clear();
    bench.run_all();
    EXPECT_FALSE(left.expired());
    if (is_cancelled) {
      channel().close();
    } else {
      bench.dispatcher->end_calls({kBusy, "The server is shutting down", {}});
    }
    bench.run_all();
    EXPECT_TRUE(left.expired());
    EXPECT_EQ(channel().replies.size(), is_cancelled ? 0U : 1U);
  }
  free_worker();
  EXPECT_EQ(channel().replies.size(), 1U);
}

}  // namespace
}  // namespace sluice
