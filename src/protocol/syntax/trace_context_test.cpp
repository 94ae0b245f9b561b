#include "protocol/syntax/trace_context.hpp"

#include <gtest/gtest.h>
#include <string>
#include <string_view>

namespace sluice {
namespace {

constexpr std::string_view kParent = "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01";

TEST(TraceContext, IsTakenAsItCame) {
  const auto trace =
      decode_trace_context({{"traceparent", kParent},
                            {"tracestate", "rojo=00f067aa0ba902b7, congo=t61 x"},
                            {"baggage", "userId=alice;private,serverNode = DF%2028"}});
  ASSERT_NE(trace, nullptr);
  EXPECT_EQ(trace->traceparent, kParent);
  EXPECT_EQ(trace->tracestate, "rojo=00f067aa0ba902b7, congo=t61 x");
  EXPECT_EQ(trace->baggage, "userId=alice;private,serverNode = DF%2028");
  EXPECT_EQ(trace->trace_id(), "0af7651916cd43dd8448eb211c80319c");
  EXPECT_EQ(trace->parent_id(), "00f067aa0ba902b7");
  EXPECT_TRUE(trace->sampled());
}

TEST(TraceContext, NothingIsMadeUp) {
  EXPECT_EQ(decode_trace_context({}), nullptr);
  EXPECT_EQ(decode_trace_context({{"traceparent", 1}, {"baggage", json::array()}}), nullptr);
  EXPECT_EQ(decode_trace_context({{"tracestate", "a=1"}}), nullptr);
  const auto baggage = decode_trace_context({{"baggage", "a=1"}, {"tracestate", "a=1"}});
  ASSERT_NE(baggage, nullptr);
  EXPECT_EQ(baggage->traceparent, "");
  EXPECT_EQ(baggage->tracestate, "");
  EXPECT_EQ(baggage->trace_id(), "");
  EXPECT_EQ(baggage->parent_id(), "");
  EXPECT_FALSE(baggage->sampled());
}

TEST(TraceContext, ATraceparentHasItsForm) {
  const std::string valid(kParent);
  const auto with = [&](std::size_t at, std::string_view text) {
    return std::string(valid).replace(at, text.size(), text);
  };
  for (const std::string& parent :
       {valid, with(53, "00"), with(0, "01"), with(0, "cc") + "-what-comes-later"}) {
    EXPECT_NE(decode_trace_context({{"traceparent", parent}}), nullptr) << parent;
  }
  for (const std::string& parent :
       {std::string(), valid.substr(1), valid + "-", valid + "0", with(0, "ff"), with(0, "0G"),
        with(0, "01") + "x", with(2, "_"), with(3, "A"), with(35, "_"), with(52, "_"),
        with(53, "0A"), with(3, std::string(32, '0')), with(36, std::string(16, '0')),
        with(0, "01") + "-" + std::string(300, 'a')}) {
    EXPECT_EQ(decode_trace_context({{"traceparent", parent}}), nullptr) << parent;
  }
  EXPECT_FALSE(decode_trace_context({{"traceparent", with(53, "f2")}})->sampled());
  EXPECT_TRUE(decode_trace_context({{"traceparent", with(53, "0b")}})->sampled());
}

TEST(TraceContext, ABrokenStateLeavesTheParent) {
  std::string members;
  for (int i = 0; i < 33; ++i)
    members.append(i == 0 ? "" : ",").append("k").append(std::to_string(i)).append("=v");
  const auto state = [](std::string_view text) {
    const auto trace = decode_trace_context({{"traceparent", kParent}, {"tracestate", text}});
    EXPECT_EQ(trace->traceparent, kParent);
    return trace->tracestate;
  };
  for (const std::string_view taken : {"a=1", "1a=1", "t@v=1,,b= x", " a=1 "}) {
    EXPECT_EQ(state(taken), taken);
  }
  for (const std::string& broken :
       {std::string(), std::string(","), std::string("a"), std::string("A=1"), std::string("=1"),
        std::string("a="), std::string("a=b=c"), std::string("a=1,a=2"), std::string("a=\x01"),
        std::string("a=\xC3\xA9"), "a=" + std::string(257, 'v'), std::string(257, 'a') + "=1",
        members, "a=1," + std::string(600, ' ')}) {
    EXPECT_EQ(state(broken), "") << broken;
  }
}

TEST(TraceContext, BaggageHasItsForm) {
  const auto baggage = [](std::string_view text) {
    return decode_trace_context({{"baggage", text}}) != nullptr;
  };
  for (const std::string_view taken : {"a=", "a = 1 ; p ; q = 2 , b=3", "a==", "A!=x%20y"}) {
    EXPECT_TRUE(baggage(taken)) << taken;
  }
  std::string many = "a=1";
  for (int i = 0; i < 64; ++i) many.append(",a=1");
  for (const std::string& broken :
       {std::string("a"), std::string("=1"), std::string("a=1,"), std::string("a=1;"),
        std::string("a=1;=2"), std::string("a b=1"), std::string("a=\"1\""), std::string("a=\\"),
        std::string("a=\xC3\xA9"), std::string("a=1\r\nx: y"), many,
        "a=" + std::string(8192, 'v')}) {
    EXPECT_FALSE(baggage(broken)) << broken;
  }
}

}  // namespace
}  // namespace sluice
