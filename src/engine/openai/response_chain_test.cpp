#include "engine/openai/response_chain.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <memory>
#include <string>

namespace sluice {
namespace {

using ::testing::ElementsAre;

ChatMessage user(std::string text) {
  return {.role = "user", .content = std::move(text)};
}
ChatMessage assistant(std::string text, std::vector<ChatToolCall> calls = {}) {
  return {.role = "assistant", .content = std::move(text), .tool_calls = std::move(calls)};
}
ChatMessage tool_result(std::string text, std::string id = {}) {
  return {.role = "tool", .content = std::move(text), .tool_call_id = std::move(id)};
}
Delta call_delta(std::string id, std::string name, const std::string& arguments) {
  return {.kind = Delta::Kind::tool_call,
          .text = R"({"name":")" + name + R"(","arguments":)" + arguments + "}",
          .call = std::make_shared<const CallHead>(CallHead{std::move(id), std::move(name)})};
}

class ResponseChainTest : public ::testing::Test {
 protected:
  /// An answer to "Hello": a text and two calls.
  void answer() {
    GenerationRequest request;
    request.prompt = "Hello";
    request.principal = "me";
    chain.begin(request);
    EXPECT_FALSE(chain.is_set());
    chain.note({.kind = Delta::Kind::reasoning, .text = "Hm."});
    chain.note({.kind = Delta::Kind::text, .text = "Let me "});
    chain.note({.kind = Delta::Kind::text, .text = "see"});
    chain.note(call_delta("c1", "add", R"({"a":1})"));
    chain.note(call_delta("c2", "now", "{}"));
    chain.finish("r1");
    EXPECT_TRUE(chain.is_set());
  }
  static GenerationRequest next(std::vector<ChatToolCall> calls, std::vector<ChatMessage> rest) {
    GenerationRequest request;
    request.principal = "me";
    request.messages = {user("Hello"), assistant("Let me see", std::move(calls))};
    for (ChatMessage& message : rest) request.messages.push_back(std::move(message));
    return request;
  }
  ResponseChain chain;
};

TEST_F(ResponseChainTest, OnlyNewMessagesAreLeft) {
  answer();
  const auto rest = chain.continuation(next({{"c1", "add", R"({ "a": 1 })"}, {"c2", "now", "{}"}},
                                            {tool_result("1", "c1"), tool_result("2", "c2")}));
  ASSERT_TRUE(rest);
  EXPECT_THAT(*rest, ElementsAre(tool_result("1", "c1"), tool_result("2", "c2")));
  EXPECT_EQ(chain.response_id(), "r1");
}

TEST_F(ResponseChainTest, IdsOfTheClientBecomeThoseOfTheServer) {
  answer();
  // Without ids, results answer the calls in order.
  auto rest = chain.continuation(next({{"", "add", R"({"a":1})"}, {"", "now", "{}"}},
                                      {tool_result("1"), tool_result("2"), user("?")}));
  ASSERT_TRUE(rest);
  EXPECT_THAT(*rest, ElementsAre(tool_result("1", "c1"), tool_result("2", "c2"), user("?")));
  // With ids of its own, as it says.
  rest = chain.continuation(next({{"x", "add", R"({"a":1})"}, {"y", "now", "{}"}},
                                 {tool_result("2", "y"), tool_result("1", "x")}));
  ASSERT_TRUE(rest);
  EXPECT_THAT(*rest, ElementsAre(tool_result("2", "c2"), tool_result("1", "c1")));
}

TEST_F(ResponseChainTest, AnotherConversationIsNoContinuation) {
  answer();
  const std::vector<ChatToolCall> calls = {{"c1", "add", R"({"a":1})"}, {"c2", "now", "{}"}};
  GenerationRequest request = next(calls, {tool_result("1", "c1")});
  EXPECT_TRUE(chain.continuation(request));
  request.principal = "other";
  EXPECT_FALSE(chain.continuation(request));
  request.principal = "me";
  request.messages[0].content = "Bye";
  EXPECT_FALSE(chain.continuation(request));
  EXPECT_FALSE(chain.continuation(
      next({{"c1", "add", R"({"a":2})"}, {"c2", "now", "{}"}}, {tool_result("1", "c1")})));
  EXPECT_FALSE(chain.continuation(next({{"c1", "add", R"({"a":1})"}}, {tool_result("1", "c1")})));
  EXPECT_FALSE(chain.continuation(next(calls, {})));  // nothing is new
  GenerationRequest prompt;
  prompt.principal = "me";
  prompt.prompt = "Hello";
  EXPECT_FALSE(chain.continuation(prompt));
  request = next(calls, {tool_result("1", "c1")});
  chain.forget();
  EXPECT_FALSE(chain.continuation(request));
}

TEST_F(ResponseChainTest, WhatIsTooLongIsNotRemembered) {
  GenerationRequest request;
  request.prompt = "Hello";
  chain.begin(request);
  for (int i = 0; i < 20; ++i) {
    chain.note({.kind = Delta::Kind::text, .text = std::string(100'000, 'x')});
  }
  chain.finish("r1");
  EXPECT_FALSE(chain.is_set());
  request.prompt = std::string(ResponseChain::kMaxBytes + 1, 'x');
  chain.begin(request);
  chain.note({.kind = Delta::Kind::text, .text = "y"});
  chain.finish("r2");
  EXPECT_FALSE(chain.is_set());
}

}  // namespace
}  // namespace sluice
