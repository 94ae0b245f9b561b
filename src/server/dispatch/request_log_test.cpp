#include "server/dispatch/request_log.hpp"

#include <algorithm>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>

#include "core/log/log.hpp"
#include "server/dispatch/server_test_support.hpp"

namespace sluice {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::Not;

class RequestLogTest : public ::testing::Test {
 protected:
  RequestLogTest() {
    bench.definition.middleware.push_back(request_log(bench.executors[0].clock()));
    bench.serve();
    set_logging(LogLevel::debug, LogFormat::text, false);
    ::testing::internal::CaptureStderr();
  }
  ~RequestLogTest() override { set_logging(LogLevel::info, LogFormat::text, false); }

  std::string call(std::string_view name, std::string_view arguments) {
    return bench.request("tools/call",
                         R"("_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",)"
                         R"("io.modelcontextprotocol/clientCapabilities":{}},"name":")" +
                             std::string(name) + R"(","arguments":{)" + std::string(arguments) +
                             "}",
                         caller);
  }
  static std::string logged() { return ::testing::internal::GetCapturedStderr(); }

  ServerBench bench;
  RecordingCaller caller;
};

TEST_F(RequestLogTest, SaysWhatWasAskedByWhomAndHowItEnded) {
  call("later", R"("text":"private")");
  bench.executors[0].advance(1500ms);
  ASSERT_EQ(bench.calls.size(), 1U);
  bench.calls.front()->complete({.text = "done"});
  bench.run_all();
  const std::string line = logged();
  EXPECT_THAT(line, HasSubstr("debug request method=tools/call name=later client=" +
                              caller.principal().id + " ms=1500 outcome=answered left_out=0"));
  EXPECT_THAT(line, Not(HasSubstr("private")));
}

TEST_F(RequestLogTest, SaysWhichErrorItWas) {
  call("nothing", "");
  EXPECT_THAT(logged(), HasSubstr(R"(name=nothing client=)" + caller.principal().id +
                                  R"( ms=0 outcome="error -32602")"));
}

TEST_F(RequestLogTest, IsSilentAboutWhatMayBeSecret) {
  bench.request("resources/read",
                R"("_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",)"
                R"("io.modelcontextprotocol/clientCapabilities":{}},"uri":"test://token")",
                caller);
  const std::string line = logged();
  EXPECT_THAT(line, HasSubstr("method=resources/read name=- "));
  EXPECT_THAT(line, Not(HasSubstr("token")));
}

TEST_F(RequestLogTest, HasALimit) {
  for (int i = 0; i < kRequestLines + 5; ++i) call("nothing", "");
  bench.executors[0].advance(1s);
  call("nothing", "");
  const std::string lines = logged();
  EXPECT_EQ(std::ranges::count(lines, '\n'), kRequestLines + 1);
  EXPECT_THAT(lines, HasSubstr("left_out=5"));
}

}  // namespace
}  // namespace sluice
