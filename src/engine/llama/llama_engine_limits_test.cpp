#include <atomic>
#include <cmath>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <latch>
#include <string>
#include <thread>
#include <vector>

#include "engine/llama/llama_engine_test_support.hpp"

namespace sluice {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using Reason = Completion::Reason;
using Phase = GenerationStatus::Phase;
using test::built_in_options;
using test::greedy;
using test::Running;

/// Tests what the engine refuses, how clients share it, and how it stops.
class LlamaEngineLimits : public test::LlamaEngineFixture {};

TEST_F(LlamaEngineLimits, HigherPriorityIsAdmittedFirst) {
  LlamaOptions options = built_in_options();
  options.slots = 1;
  options.pause_grace = 1h;
  load(std::move(options));
  const Running busy = start(greedy("Hello"), 1);
  busy.sink->wait_for_deltas(1);
  GenerationRequest low = greedy("low");
  GenerationRequest high = greedy("high");
  high.priority = 10;
  const Running later = start(low, 1);
  const Running sooner = start(high, 1);
  eventually([&] { return later.generation->status().queue_position == 1; });
  busy.generation->cancel();
  sooner.sink->wait_for_deltas(1);
  EXPECT_EQ(later.sink->deltas(), 0U);
  EXPECT_EQ(later.generation->status().phase, Phase::queued);
}

TEST_F(LlamaEngineLimits, RefusesWhenTheQueueIsFull) {
  LlamaOptions options = built_in_options();
  options.slots = 1;
  options.max_queue = 2;
  options.pause_grace = 1h;
  load(std::move(options));
  const Running busy = start(greedy("Hello"), 1);
  const Running second = start(greedy("Hello"), 1);
  const auto too_many = try_start(greedy("Hello"));
  ASSERT_FALSE(too_many);
  EXPECT_EQ(too_many.error().code, kBusy);
  EXPECT_THAT(too_many.error().message, HasSubstr("your share"));
  GenerationRequest another = greedy("Hello");
  another.principal = "another";
  const Running third = start(another, 1);
  const auto refused = try_start(another);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, kBusy);
  busy.generation->cancel();
  busy.sink->wait();
  eventually([&] { return try_start(greedy("Hello")).has_value(); });
}

TEST_F(LlamaEngineLimits, OneClientLeavesAnotherTheOnlyPlaceOfAQueue) {
  LlamaOptions options = built_in_options();
  options.slots = 1;
  options.max_queue = 1;
  options.pause_grace = 1h;
  load(std::move(options));
  const Running busy = start(greedy("Hello"), 1);
  EXPECT_THAT(try_start(greedy("Hello")).error().message, HasSubstr("your share"));
  GenerationRequest another = greedy("Hello");
  another.principal = "another";
  const Running second = start(another, 1);
  EXPECT_THAT(try_start(another).error().message, HasSubstr("queue is full"));
}

TEST_F(LlamaEngineLimits, ANetworkOfIpv6HasOneShareOfTheQueue) {
  LlamaOptions options = built_in_options();
  options.slots = 1;
  options.max_queue = 2;
  options.pause_grace = 1h;
  load(std::move(options));
  GenerationRequest request = greedy("Hello");
  request.principal = "2001:db8::1";
  const Running busy = start(request, 1);
  const Running second = start(request, 1);
  request.principal = "2001:db8::2";
  EXPECT_THAT(try_start(request).error().message, HasSubstr("your share"));
  request.principal = "2001:db8:0:1::1";
  const Running elsewhere = start(request, 1);
  for (const Running* running : {&busy, &second, &elsewhere}) running->generation->cancel();
  for (const Running* running : {&busy, &second, &elsewhere}) running->sink->wait();
}

TEST_F(LlamaEngineLimits, LoadingCanBeWaitedForAWhileAndGivenUp) {
  std::latch begun(1);
  std::latch go_on(1);
  std::atomic<bool> first = true;
  LlamaOptions options = built_in_options();
  options.on_model_state = [&](const ModelState& state) {
    if (state.phase != ModelState::Phase::loading || !first.exchange(false)) return;
    begun.count_down();
    go_on.wait();
  };
  engine_ = make_llama_engine(std::move(options));
  begun.wait();
  EXPECT_EQ(engine_->wait_until_loaded(1ms).phase, ModelState::Phase::loading);
  std::thread stopping([this] { engine_->shutdown(); });
  eventually([&] {
    const auto refused = try_start(greedy("Hello"));
    return !refused && refused.error().message == "the engine is shutting down";
  });
  go_on.count_down();
  stopping.join();
  EXPECT_EQ(engine_->wait_until_loaded().phase, ModelState::Phase::failed);
}

TEST_F(LlamaEngineLimits, RefusesWhatCanNeverBeServed) {
  load();
  const auto refused = [&](const GenerationRequest& request) -> std::string {
    const auto generation = try_start(request);
    EXPECT_FALSE(generation);
    if (generation) return "accepted";
    EXPECT_EQ(generation.error().code, -32602);
    return generation.error().message;
  };
  // Errors that take long to find are reported with on_complete.
  const auto refused_later = [&](const GenerationRequest& request) -> std::string {
    const Running running = start(request);
    const Completion end = running.sink->wait();
    EXPECT_EQ(end.reason, Reason::error);
    if (!end.error) return "accepted";
    EXPECT_EQ(end.error->code, -32602);
    return end.error->message;
  };
  const auto changed = [](auto change) {
    GenerationRequest request = greedy("Hello");
    change(request);
    return request;
  };
  using R = GenerationRequest;
  EXPECT_THAT(refused({}), HasSubstr("messages or a prompt"));
  EXPECT_THAT(refused(changed([](R& r) { r.messages = {{.role = "user", .content = "x"}}; })),
              HasSubstr("messages or a prompt"));
  EXPECT_THAT(refused(changed([](R& r) { r.sampling.temperature = -1; })), HasSubstr("temperat"));
  EXPECT_THAT(refused(changed([](R& r) { r.sampling.top_p = 1.5F; })), HasSubstr("top_p"));
  EXPECT_THAT(refused(changed([](R& r) { r.sampling.min_p = NAN; })), HasSubstr("min_p"));
  EXPECT_THAT(refused(changed([](R& r) { r.sampling.top_k = -1; })), HasSubstr("top_k"));
  EXPECT_THAT(refused(changed([](R& r) { r.sampling.repeat_penalty = 0; })), HasSubstr("repeat"));
  EXPECT_THAT(refused(changed([](R& r) { r.max_tokens = 0; })), HasSubstr("max_tokens"));
  EXPECT_THAT(refused(changed([](R& r) { r.stop = {""}; })), HasSubstr("stop"));
  EXPECT_THAT(refused(changed([](R& r) { r.stop.assign(17, "x"); })), HasSubstr("stop"));
  EXPECT_THAT(refused_later(changed([](R& r) { r.json_schema = "{"; })), HasSubstr("json_schema"));
  EXPECT_THAT(refused_later(changed([](R& r) { r.json_schema = "7"; })), HasSubstr("json_schema"));
  EXPECT_THAT(refused_later(changed([](R& r) { r.json_schema = R"({"$ref":"#/nowhere"})"; })),
              HasSubstr("json_schema"));
  EXPECT_THAT(refused_later(changed([](R& r) { r.grammar = "root = \"x\""; })),
              HasSubstr("grammar"));
  EXPECT_THAT(refused_later(changed([](R& r) { r.grammar = "branch ::= \"x\""; })),
              HasSubstr("root"));
  EXPECT_THAT(refused_later(changed([](R& r) { r.grammar = "root ::= root \"x\""; })),
              HasSubstr("left-recursive"));
  EXPECT_THAT(refused_later(changed([](R& r) {
                r.grammar =
                    "root ::= " + std::string(10000, '(') + "\"x\"" + std::string(10000, ')');
              })),
              HasSubstr("deep"));
  EXPECT_THAT(refused(changed([](R& r) { r.grammar = std::string(65537, 'x'); })),
              HasSubstr("64 KiB"));
  EXPECT_THAT(refused(changed([](R& r) {
                r.grammar = "root ::= \"x\"";
                r.json_schema = "{}";
              })),
              HasSubstr("not both"));
  EXPECT_THAT(refused_later(changed([](R& r) { r.tools = "{}"; })), HasSubstr("tools"));
  // Even a short prompt is tokenized elsewhere: many of them would hold up the event loop.
  EXPECT_THAT(refused_later(changed([](R& r) { r.prompt = std::string(4000, 'x'); })),
              HasSubstr("the prompt is too long: it has "));
  EXPECT_THAT(refused(changed([](R& r) { r.prompt = std::string(4'000'000, 'x'); })),
              HasSubstr("the prompt is too long: it has at least "));
  R empty;
  empty.messages.assign(engine_->info().context_tokens, {.role = "user", .content = ""});
  EXPECT_THAT(refused(empty), HasSubstr("messages must have fewer elements"));
  const auto calls = [](std::size_t count, std::string arguments) {
    R request;
    request.messages = {{.role = "assistant", .content = ""}};
    request.messages[0].tool_calls.assign(
        count, {.id = "", .name = "f", .arguments = std::move(arguments)});
    return request;
  };
  EXPECT_THAT(refused(calls(engine_->info().context_tokens - 1, "{}")),
              HasSubstr("their tool_calls included"));
  for (const char* const arguments : {"", "[1]", "{", "{}{}"}) {
    EXPECT_THAT(refused_later(calls(1, arguments)),
                AllOf(HasSubstr("messages[0].tool_calls[0]"),
                      HasSubstr("must be an object, or the JSON text of one")));
  }
  EXPECT_THAT(
      refused_later(calls(1, R"({"a":)" + std::string(128, '[') + std::string(128, ']') + "}")),
      AllOf(HasSubstr("messages[0].tool_calls[0]"), HasSubstr("at most 128 levels")));
  EXPECT_THAT(refused(changed([](R& r) { r.tools = std::string(300'000, ' '); })),
              HasSubstr("256 KiB"));
}

TEST_F(LlamaEngineLimits, ManyValuesInTheArgumentsOfAllCallsAreRefused) {
  LlamaOptions options = built_in_options();
  options.context_tokens = 16384;
  load(std::move(options));
  std::string text = R"({"a":[0)";  // 1024 values and names
  for (int i = 1; i < 1021; ++i) text += ",0";
  const auto error = [&](std::size_t calls) {
    GenerationRequest request;
    request.messages = {{.role = "assistant", .content = ""}};
    request.messages[0].tool_calls.assign(calls, {.id = "", .name = "f", .arguments = text + "]}"});
    return start(request).sink->wait().error.value_or(Error{}).message;
  };
  EXPECT_THAT(error(64), HasSubstr("the prompt is too long"));
  EXPECT_THAT(error(65), AllOf(HasSubstr("messages[0].tool_calls[64]"),
                               HasSubstr("may have 65536 values and names")));
}

/// A template takes time for them that grows with the square of an object's size.
TEST_F(LlamaEngineLimits, ManyMembersInToolsAndArgumentsTogetherAreRefused) {
  LlamaOptions options = built_in_options();
  options.context_tokens = 16384;
  load(std::move(options));
  const auto object = [](std::size_t members) {
    std::string text;
    for (std::size_t i = 0; i < members; ++i) text += ",\"" + std::to_string(i) + "\":1";
    return "{" + text.substr(1) + "}";
  };
  const auto error = [&](const std::string& arguments, const std::string& extra) {
    GenerationRequest request;
    request.messages = {{.role = "assistant", .content = ""}};
    request.messages[0].tool_calls = {{.id = "", .name = "f", .arguments = arguments}};
    request.tools =
        R"([{"name":"good"},{"name":"large","inputSchema":{"type":"object","x":[)" + extra + "]}}]";
    request.max_tokens = 1;
    return start(request).sink->wait().error.value_or(Error{}).message;
  };
  EXPECT_THAT(error(object(5000), object(1)),
              AllOf(HasSubstr("messages[0].tool_calls[0]"), HasSubstr("too many members")));
  EXPECT_THAT(
      error("{}", object(5000)),
      AllOf(HasSubstr("the tool \"large\" have too many members"), HasSubstr("smaller objects")));
  EXPECT_THAT(error(object(2900), object(2900)), HasSubstr("\"large\" have too many members"));
  EXPECT_THAT(error(object(2900), object(1)), Not(HasSubstr("too many members")));
  EXPECT_THAT(error("{}", object(2900)), Not(HasSubstr("too many members")));
}

/// Requests that could keep the caller's or the engine's thread busy for very long.
TEST_F(LlamaEngineLimits, NoGrammarHoldsUpTheLoopOrTheModel) {
  load();
  std::string doubled = "root ::= r0\n";
  for (int i = 0; i < 40; ++i) {
    const std::string next = "r" + std::to_string(i + 1);
    doubled += "r" + std::to_string(i) + " ::= " + next + " | " + next + "\n";
  }
  doubled += "r40 ::= [a-z]+";
  std::string optional = "root ::= ";
  for (int i = 0; i < 1000; ++i) optional += "[a-z]? ";
  const std::string ambiguous = R"(root ::= "a" root "b" | "a" root "c" | "a" root)";
  std::string properties;
  for (int i = 0; i < 1500; ++i) properties += ",\"p" + std::to_string(i) + "\":{}";
  const std::string schema = R"({"properties":{)" + properties.substr(1) + "}}";

  std::vector<Running> all;
  for (const std::string& grammar : {doubled, optional, ambiguous}) {
    GenerationRequest request = greedy("Hello");
    request.grammar = grammar;
    request.max_tokens = 50;
    all.push_back(start(request));
  }
  GenerationRequest request = greedy("Hello");
  request.json_schema = schema;
  all.push_back(start(request));
  EXPECT_FALSE(all[0].sink->wait().error);
  EXPECT_FALSE(all[1].sink->wait().error);
  EXPECT_THAT(all[2].sink->wait().error.value_or(Error{}).message, HasSubstr("too ambiguous"));
  EXPECT_THAT(all[3].sink->wait().error.value_or(Error{}).message,
              HasSubstr("fewer optional properties"));
}

TEST_F(LlamaEngineLimits, CancelAndShutdownWorkWhileRequestsArePrepared) {
  LlamaOptions options = built_in_options();
  options.slots = 40;
  load(std::move(options));
  std::string grammar = "root ::= ";
  for (int i = 0; i < 800; ++i) grammar += "[a-z]? ";
  std::vector<Running> all;
  for (int i = 0; i < 40; ++i) {
    GenerationRequest request = greedy("Hello");
    request.grammar = grammar;
    all.push_back(start(request));
  }
  EXPECT_GT(engine_->stats().requests_queued, 20U) << "those that wait to be prepared count too";
  for (std::size_t i = 20; i < all.size(); ++i) all[i].generation->cancel();
  for (std::size_t i = 20; i < all.size(); ++i) {
    EXPECT_EQ(all[i].sink->wait().reason, Reason::cancelled);
  }
  engine_->shutdown();
  for (const Running& running : all) EXPECT_TRUE(running.sink->completed());
}

TEST_F(LlamaEngineLimits, PrincipalsAreAdmittedInTurn) {
  LlamaOptions options = built_in_options();
  options.slots = 1;
  options.pause_grace = 1h;
  load(std::move(options));
  const auto asked_by = [](std::string principal, int priority) {
    GenerationRequest request = greedy("Hello");
    request.principal = std::move(principal);
    request.priority = priority;
    request.max_tokens = 20;
    return request;
  };
  const Running busy = start(asked_by("many", 0), 1);
  busy.sink->wait_for_deltas(1);
  std::vector<Running> many;
  for (int i = 0; i < 10; ++i) many.push_back(start(asked_by("many", 10)));
  const Running few = start(asked_by("few", -10));
  eventually([&] { return few.generation->status().queue_position == 1; });
  busy.generation->cancel();
  few.sink->wait();
  EXPECT_FALSE(many[2].sink->completed());
  for (const Running& running : many) running.sink->wait();
}

/// While another client waits, no client keeps two slots more than it.
TEST_F(LlamaEngineLimits, NobodyKeepsAllSlotsWhileAnotherWaits) {
  LlamaOptions options = built_in_options();
  options.slots = 2;
  options.pause_grace = 10ms;
  options.context_tokens = 1024;
  load(std::move(options));
  // The model may stop by itself; these generations cannot.
  const auto endless = [](std::string principal) {
    GenerationRequest request = greedy("Hello");
    request.principal = std::move(principal);
    request.grammar = "root ::= \"x\"+ \"y\"{2000}";
    return request;
  };
  const Running first = start(endless("hoarder"));
  const Running second = start(endless("hoarder"));
  first.sink->wait_for_deltas(1);
  second.sink->wait_for_deltas(1);
  GenerationRequest request = greedy("Hi");
  request.principal = "other";
  request.max_tokens = 5;
  const Running other = start(request);
  EXPECT_EQ(other.sink->wait().reason, Reason::length);
  EXPECT_FALSE(first.sink->completed() && second.sink->completed());
  // Both continue to their end.
  for (const Running* running : {&first, &second}) {
    EXPECT_EQ(running->sink->wait().reason, Reason::length);
    EXPECT_THAT(running->sink->text(), testing::Not(HasSubstr("yx")));
  }
}

TEST_F(LlamaEngineLimits, PrefixesAreSharedWithinOnePrincipal) {
  const auto cached = [this](std::string principal) {
    GenerationRequest request = greedy("A prompt about the water of the river, and its stones.");
    request.principal = std::move(principal);
    request.max_tokens = 1;
    Completion end;
    answer(request, &end);
    return end.usage.cached_tokens;
  };
  load();
  EXPECT_EQ(cached("alice"), 0U);
  EXPECT_EQ(cached("bob"), 0U);
  EXPECT_GT(cached("alice"), 0U);
  EXPECT_EQ(cached("2001:db8::1"), 0U);
  EXPECT_EQ(cached("2001:db8::2"), 0U);
  LlamaOptions options = built_in_options();
  options.share_prefixes = true;
  load(std::move(options));
  EXPECT_EQ(cached("alice"), 0U);
  EXPECT_GT(cached("bob"), 0U);
}

TEST_F(LlamaEngineLimits, APromptTooLongToReadAtOnceIsRefusedOnTheWay) {
  load();
  const Running running = start(greedy(std::string(6000, 'x')));
  const Completion end = running.sink->wait();
  EXPECT_EQ(end.reason, Reason::error);
  ASSERT_TRUE(end.error);
  EXPECT_EQ(end.error->code, -32602);
  EXPECT_THAT(end.error->message, HasSubstr("too long"));
}

TEST_F(LlamaEngineLimits, LeavesAnswersWithoutAnEnd) {
  load();
  const Running running = start(greedy("Count to nine"), 1);
  running.sink->wait_for_deltas(1);
  const Running waits = start(greedy("Hello"), 1);
  engine_->leave();
  EXPECT_FALSE(running.sink->completed());
  EXPECT_EQ(running.sink->deltas(), 1U);
  EXPECT_FALSE(waits.sink->completed());
  const Running late = start(greedy("Hello"));
  EXPECT_FALSE(late.sink->completed());
}

}  // namespace
}  // namespace sluice
