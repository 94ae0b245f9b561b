#include "cli/agent/trace_stepper.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>
#include <vector>

namespace sluice {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

TracedEvent said(std::string_view text) {
  return {.event = {{"type", "response.output_text.delta"}, {"delta", text}}};
}

TEST(TraceStepper, GoesForwardAndBack) {
  const std::vector<TracedEvent> events = {said("one "), said("two "), said("three")};
  TraceStepper stepper(events, Style::plain());
  EXPECT_THAT(stepper.screen(),
              AllOf(StartsWith("one"), HasSubstr("\n1 of 3"), Not(HasSubstr("two"))));
  for (const char* key : {" ", "n"}) stepper.press(key);
  EXPECT_THAT(stepper.screen(), AllOf(StartsWith("one two three"), HasSubstr("3 of 3")));
  stepper.press("\x1b[C");
  EXPECT_THAT(stepper.screen(), HasSubstr("3 of 3")) << "there is no more";
  stepper.press("\x1b[D");
  EXPECT_THAT(stepper.screen(), AllOf(StartsWith("one two"), HasSubstr("2 of 3  response.output")));
  stepper.press("b");
  const std::string first = stepper.screen();
  stepper.press("b");
  EXPECT_EQ(stepper.screen(), first);
  stepper.press("G");
  EXPECT_THAT(stepper.screen(), HasSubstr("3 of 3"));
  stepper.press("g");
  stepper.press("x");
  stepper.press("\x1b[A");
  EXPECT_EQ(stepper.screen(), first);
  EXPECT_FALSE(stepper.is_over());
  stepper.press("q");
  EXPECT_TRUE(stepper.is_over());
}

TEST(TraceStepper, KeysMayComeTogether) {
  const std::vector<TracedEvent> events = {said("one "), said("two "), said("three")};
  TraceStepper stepper(events, Style::plain());
  stepper.press("\x1b[C\x1b[Cb");
  EXPECT_THAT(stepper.screen(), HasSubstr("2 of 3"));
}

TEST(TraceStepper, ThereMayBeNothing) {
  TraceStepper stepper({}, Style::plain());
  stepper.press("n");
  stepper.press("b");
  EXPECT_THAT(stepper.screen(), HasSubstr("0 of 0"));
}

}  // namespace
}  // namespace sluice
