#include "cli/agent/agent_trace.hpp"

#include <cstdio>
#include <fstream>
#include <gtest/gtest.h>
#include <string>
#include <string_view>
#include <unistd.h>

#include "core/clock.hpp"

namespace sluice {
namespace {

class AgentTraceTest : public ::testing::Test {
 protected:
  ~AgentTraceTest() override { std::remove(path_.c_str()); }
  auto read(std::string_view text) {
    std::ofstream(path_) << text;
    return read_trace(path_);
  }

 private:
  std::string path_ = ::testing::TempDir() + "trace_" + std::to_string(::getpid()) + ".jsonl";
};

TEST_F(AgentTraceTest, ALastLineThatIsCutIsLeftOut) {
  constexpr std::string_view kLine = "{\"at_us\":5,\"event\":{\"type\":\"any\"}}";
  const std::string line(kLine);
  const auto events = read(line + "\n" + line + "\n" + line.substr(0, 9));
  ASSERT_TRUE(events) << events.error().message;
  EXPECT_EQ(events->size(), 2U);
  EXPECT_EQ(read(line + "\n" + line)->size(), 2U);
  EXPECT_FALSE(read(line.substr(0, 9))) << "there is nothing else";
  EXPECT_FALSE(read(line.substr(0, 9) + "\n" + line));
}

TEST_F(AgentTraceTest, TimesDoNotOverflow) {
  const auto events = read("{\"at_us\":9223372036854775807,\"event\":{}}");
  ASSERT_TRUE(events) << events.error().message;
  EXPECT_EQ(events->front().at, kForever);
}

}  // namespace
}  // namespace sluice
