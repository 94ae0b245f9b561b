// Handlers that block their event loop are named in the log.

#include <chrono>
#include <functional>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>

#include "server/api/server_state.hpp"
#include "server/dispatch/server_test_support.hpp"
#include "sluice/server.hpp"
#include "sluice/stream.hpp"
#include "sluice/testing.hpp"

namespace sluice {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class BlockedLoopTest : public ::testing::Test {
 protected:
  /// What is logged while the server answers.
  std::string logged(const std::string& method, const std::string& params) {
    const ServerDefinition made = server.state()->definition();
    bench.definition.tools = made.tools;
    bench.definition.resources = made.resources;
    bench.definition.prompts = made.prompts;
    bench.definition.middleware = made.middleware;
    bench.serve();
    ::testing::internal::CaptureStderr();
    bench.request(method,
                  R"("_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",)"
                  R"("io.modelcontextprotocol/clientCapabilities":{}},)" +
                      params,
                  caller);
    bench.run_all();
    bench.executors[0].advance(1s);
    return ::testing::internal::GetCapturedStderr();
  }
  std::string called(const std::string& tool) {
    return logged("tools/call", R"("name":")" + tool + R"(","arguments":{})");
  }
  std::string block() {
    bench.executors[0].stall(TurnWatch::kLong);
    return "done";
  }

  Server server{"test", "1"};
  ServerBench bench;
  RecordingCaller caller;
};

TEST_F(BlockedLoopTest, AToolThatBlocksIsNamed) {
  server.tool("slow", "", [this] { return block(); });
  EXPECT_THAT(called("slow"), HasSubstr("wrap a handler in blocking(), or await in_background(); "
                                        "other code must not wait tool=slow ms=100"));
}

/// A tool sends more than it may in a turn, in each of the ways that there are.
constexpr int kMuch = 1000;

class LongOutputTest : public ::testing::TestWithParam<std::function<Task<>(Call&, int&)>> {};

TEST_P(LongOutputTest, LetsOthersRunAlsoIfNobodyWantsIt) {
  int sent = 0;
  Server server("test", "1");
  server.tool("quick", "", [] { return "done"; });
  server.tool("long", "", [&sent](Call& call) -> Task<std::string> {
    co_await GetParam()(call, sent);
    co_return "all";
  });
  testing::Client client(server);
  // Without a progress token, nothing that it sends goes anywhere.
  testing::PendingReply all = client.begin_call("long");
  EXPECT_GT(sent, 0);
  EXPECT_EQ(client.call("quick").text(), "done");
  EXPECT_LT(sent, kMuch);
  EXPECT_EQ(all.get().text(), "all");
  EXPECT_EQ(sent, kMuch);
}

Stream<void> much(int& sent) {
  for (; sent < kMuch; ++sent) co_yield text("x");
}

INSTANTIATE_TEST_SUITE_P(
    Ways, LongOutputTest,
    ::testing::Values([](Call& call, int& sent) -> Task<> { co_await much(sent).to(call); },
                      [](Call& call, int& sent) -> Task<> {
                        for (; sent < kMuch; ++sent) {
                          if (!call.text("x")) co_await call.room();
                        }
                      },
                      [](Call& call, int& sent) -> Task<> {
                        for (; sent < kMuch; ++sent) {
                          if (!call.progress(sent)) co_await call.room();
                        }
                      },
                      [](Call& call, int& sent) -> Task<> {
                        for (; sent < kMuch; ++sent) {
                          if (!call.log(LoggingLevel::debug, sent)) co_await call.room();
                        }
                      }));

TEST_F(BlockedLoopTest, ACoroutineThatWaitsBlocksNothing) {
  server.tool("patient", "", [](Call& call) -> Task<std::string> {
    co_await call.sleep(900ms);
    co_return "done";
  });
  EXPECT_THAT(called("patient"), IsEmpty());
}

TEST_F(BlockedLoopTest, ACoroutineThatBlocksLaterIsNamed) {
  server.tool("later", "", [this](Call& call) -> Task<std::string> {
    co_await call.sleep(500ms);
    co_return block();
  });
  EXPECT_THAT(called("later"), HasSubstr("tool=later ms=100"));
}

TEST_F(BlockedLoopTest, SoIsWhatHidesATool) {
  server.tool("hidden", "", [] { return std::string("done"); },
              {.visible_to = [this](const Principal&) { return block() == "done"; }});
  EXPECT_THAT(called("hidden"), HasSubstr("visible_to=hidden ms=100"));
  EXPECT_THAT(logged("tools/list", R"("cursor":null)"), IsEmpty());  // has been said just now
}

TEST_F(BlockedLoopTest, SoAreResourcesPromptsAndMiddleware) {
  server.resource("note://a", "a", [this] { return block(); });
  server.prompt("tell", "", [this] { return block(); });
  EXPECT_THAT(logged("resources/read", R"("uri":"note://a")"), HasSubstr("resource=note://a"));
  EXPECT_THAT(logged("prompts/get", R"("name":"tell")"), HasSubstr("prompt=tell"));
  server.use([this](Request& request) -> Task<> {
    block();
    co_await request.next();
  });
  EXPECT_THAT(logged("tools/list", R"("cursor":null)"), HasSubstr("middleware=tools/list"));
}

}  // namespace
}  // namespace sluice
