#include "agent/spans/run_spans.hpp"

#include <algorithm>
#include <chrono>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "agent/run/agent_run_test_support.hpp"
#include "json/members.hpp"

namespace sluice {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

constexpr std::string_view kTraceId = "0af7651916cd43dd8448eb211c80319c";
constexpr std::string_view kSampled = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
constexpr std::string_view kNotSampled = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00";

class CollectedSpans final : public SpanExporter {
 public:
  void take(Span span) override { spans.push_back(std::move(span)); }
  [[nodiscard]] const Span& named(std::string_view name) const {
    const auto found = std::ranges::find(spans, name, &Span::name);
    if (found == spans.end()) throw std::out_of_range(std::string(name));
    return *found;
  }
  [[nodiscard]] std::vector<std::string> names() const {
    std::vector<std::string> out;
    for (const Span& span : spans) out.push_back(span.name);
    return out;
  }
  std::vector<Span> spans;
};

/// A run whose spans are collected.
struct TracedBench : RunBench {
  explicit TracedBench(AgentOptions options = {}, const TraceContext& parent = {},
                       bool is_recorded = true)
      : RunBench(std::move(options)) {
    spans.emplace(is_recorded ? collected : nullptr, parent, "run-1", loop.clock(),
                  std::chrono::system_clock::time_point(std::chrono::hours(1)));
    run->trace_with(*spans);
    events.watch([this](const AgentEvent& event) { spans->on_event(event); });
  }
  /// Calls `stream`, which writes one thing, reacts to it, and ends.
  void run_with_reaction() {
    start();
    model.call("stream", {{"secret", "s3cret"}});
    model.end();
    loop.run();
    loop.advance(std::chrono::seconds(2));
    tools.write(0, "half s3cret");
    loop.run();
    model.say("I see.");
    model.end();
    loop.run();
    tools.end(0, "whole s3cret");
    loop.run();
    model.say("Done.");
    model.end();
    loop.run();
  }

  std::shared_ptr<CollectedSpans> collected = std::make_shared<CollectedSpans>();
  std::optional<RunSpans> spans;
};

TEST(RunSpans, ARunHasSpansOfItsAnswersCallsAndReactions) {
  TracedBench bench(reacting(ReactionPolicy::When::every_chunk));
  bench.run_with_reaction();
  const CollectedSpans& all = *bench.collected;
  ASSERT_THAT(all.names(), ElementsAre("chat fake", "chat fake", "react_to_tool stream",
                                       "execute_tool stream", "chat fake", "invoke_agent agent"));
  const Span& run = all.named("invoke_agent agent");
  const Span& call = all.named("execute_tool stream");
  const Span& reaction = all.named("react_to_tool stream");
  EXPECT_EQ(run.parent_id, "");
  EXPECT_EQ(run.attributes.at("gen_ai.conversation.id"), "run-1");
  EXPECT_EQ(run.attributes.at("sluice.run.status"), "completed");
  EXPECT_EQ(run.attributes.at("gen_ai.usage.input_tokens"), 30);
  EXPECT_EQ(call.parent_id, run.span_id);
  EXPECT_EQ(call.attributes.at("gen_ai.tool.name"), "stream");
  EXPECT_EQ(call.attributes.at("sluice.tool.chunks"), 1);
  EXPECT_EQ(reaction.parent_id, call.span_id);
  EXPECT_THAT(reaction.links, ElementsAre(all.spans[1].span_id));
  EXPECT_EQ(all.spans[1].kind, Span::Kind::client);
  EXPECT_EQ(all.spans[1].attributes.at("gen_ai.response.id"), "resp_2");
  EXPECT_EQ(all.spans[1].attributes.at("gen_ai.usage.output_tokens"), 1);
  for (const Span& span : all.spans) {
    EXPECT_EQ(span.trace_id, run.trace_id);
    EXPECT_THAT(span.trace_id, SizeIs(32));
    EXPECT_THAT(span.span_id, SizeIs(16));
    EXPECT_GE(span.began, run.began);
    EXPECT_LE(span.ended, run.ended);
    EXPECT_FALSE(span.error);
    EXPECT_THAT(to_json(span.attributes), Not(HasSubstr("s3cret")));
  }
  EXPECT_EQ(run.began, std::chrono::system_clock::time_point(std::chrono::hours(1)));
  EXPECT_GE(call.ended - call.began, std::chrono::seconds(2));
}

TEST(RunSpans, ACallSendsItsContext) {
  TracedBench bench;
  bench.run_with_reaction();
  const Span& call = bench.collected->named("execute_tool stream");
  EXPECT_EQ(bench.tools.started[0]->meta.at("traceparent"),
            json::value("00-" + call.trace_id + "-" + call.span_id + "-01"));
  EXPECT_FALSE(bench.tools.started[0]->meta.contains("tracestate"));
}

TEST(RunSpans, ARunGoesOnWithItsParentsTrace) {
  TracedBench bench(
      {}, {.traceparent = std::string(kSampled), .tracestate = "a=1", .baggage = "user=ann"});
  bench.run_with_reaction();
  const Span& run = bench.collected->named("invoke_agent agent");
  EXPECT_EQ(run.trace_id, kTraceId);
  EXPECT_EQ(run.parent_id, "b7ad6b7169203331");
  EXPECT_EQ(run.trace_state, "a=1");
  const json::object& meta = bench.tools.started[0]->meta;
  EXPECT_THAT(std::string(text_at(meta, "traceparent")), HasSubstr(kTraceId));
  EXPECT_EQ(text_at(meta, "tracestate"), "a=1");
  EXPECT_EQ(text_at(meta, "baggage"), "user=ann");
}

TEST(RunSpans, WhatIsNotSampledIsPassedOnAndNotRecorded) {
  for (const bool has_exporter : {true, false}) {
    const std::string parent(has_exporter ? kNotSampled : kSampled);
    TracedBench bench({}, {.traceparent = parent}, has_exporter);
    bench.run_with_reaction();
    EXPECT_EQ(text_at(bench.tools.started[0]->meta, "traceparent"), parent);
    EXPECT_THAT(bench.collected->spans, IsEmpty());
  }
}

TEST(RunSpans, AnInvalidParentIsNone) {
  TracedBench bench({}, {.traceparent = "00-0-0-01", .tracestate = "a=1"});
  bench.run_with_reaction();
  EXPECT_EQ(bench.collected->named("invoke_agent agent").parent_id, "");
  EXPECT_FALSE(bench.tools.started[0]->meta.contains("tracestate"));
}

TEST(RunSpans, FailuresAreErrors) {
  TracedBench bench;
  bench.start();
  bench.model.call("stream");
  bench.model.end();
  bench.loop.run();
  bench.tools.end(0, "it broke", ToolEnd::Status::failed);
  bench.loop.run();
  bench.model.end(Completion::Reason::error);
  bench.loop.run();
  const CollectedSpans& all = *bench.collected;
  EXPECT_EQ(all.named("execute_tool stream").error, "");
  EXPECT_EQ(all.named("execute_tool stream").attributes.at("error.type"), "tool_error");
  EXPECT_EQ(all.spans[2].error, "") << "its text may quote the prompt";
  EXPECT_EQ(all.named("invoke_agent agent").error, "");
}

TEST(RunSpans, WhatHasNotEndedEndsWithTheRun) {
  TracedBench bench(reacting(ReactionPolicy::When::every_chunk));
  bench.start();
  bench.model.call("stream");
  bench.model.end();
  bench.loop.run();
  bench.tools.write(0, "half");
  bench.loop.run();
  bench.run.reset();
  bench.spans.reset();
  EXPECT_THAT(bench.collected->names(),
              ElementsAre("chat fake", "react_to_tool stream", "chat fake", "execute_tool stream",
                          "invoke_agent agent"));
  EXPECT_EQ(bench.collected->spans.back().attributes.at("sluice.run.status"), "cancelled");
}

TEST(RunSpans, ACallThatIsNotMadeHasNone) {
  AgentOptions asks;
  asks.approval = [](const AgentTool&, const json::object&) { return std::string("it writes"); };
  TracedBench bench(std::move(asks));
  bench.start();
  bench.model.call("stream");
  bench.model.end();
  bench.loop.run();
  ASSERT_TRUE(bench.run->reject("call_1"));
  bench.loop.run();
  bench.model.say("Well.");
  bench.model.end();
  bench.loop.run();
  EXPECT_THAT(bench.collected->names(),
              ElementsAre("chat fake", "chat fake", "invoke_agent agent"));
}

TEST(RunSpans, AnExporterThatThrowsDoesNotStopTheRun) {
  class Broken final : public SpanExporter {
   public:
    void take(Span /*span*/) override { throw std::runtime_error("the disk is full"); }
  };
  RunBench bench;
  RunSpans spans(std::make_shared<Broken>(), {}, "run-1", bench.loop.clock(), {});
  bench.events.watch([&](const AgentEvent& event) { spans.on_event(event); });
  bench.start();
  bench.model.say("Hello.");
  bench.model.end();
  EXPECT_EQ(text_at(bench.take().back().data, "status"), "completed");
}

}  // namespace
}  // namespace sluice
