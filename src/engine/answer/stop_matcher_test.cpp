#include "engine/answer/stop_matcher.hpp"

#include <gtest/gtest.h>

namespace sluice {
namespace {

TEST(StopMatcher, PassesEverythingWithoutStops) {
  StopMatcher matcher({""});
  EXPECT_EQ(matcher.push("anything").text, "anything");
  EXPECT_EQ(matcher.finish(), "");
}

TEST(StopMatcher, StopsBeforeTheString) {
  StopMatcher matcher({"END"});
  const auto result = matcher.push("the ENDing");
  EXPECT_TRUE(result.found);
  EXPECT_EQ(result.text, "the ");
  EXPECT_EQ(result.rest, "ing");
}

TEST(StopMatcher, FindsAStringAcrossPieces) {
  StopMatcher matcher({"\n\nUser:"});
  EXPECT_EQ(matcher.push("answer\n").text, "answer");
  EXPECT_EQ(matcher.push("\nUs").text, "");
  const auto result = matcher.push("er: hi");
  EXPECT_TRUE(result.found);
  EXPECT_EQ(result.text, "");
}

TEST(StopMatcher, ReleasesWhatTurnsOutNotToMatch) {
  StopMatcher matcher({"aab"});
  EXPECT_EQ(matcher.push("a").text, "");
  EXPECT_EQ(matcher.push("a").text, "");
  EXPECT_EQ(matcher.push("a").text, "a");  // "aa" may still begin it
  const auto result = matcher.push("b");
  EXPECT_TRUE(result.found);
}

TEST(StopMatcher, TakesTheOneThatBeginsFirst) {
  StopMatcher matcher({"cd", "bcd"});
  const auto result = matcher.push("abcde");
  EXPECT_TRUE(result.found);
  EXPECT_EQ(result.text, "a");
  EXPECT_EQ(result.rest, "e");
}

TEST(StopMatcher, GivesBackWhatItHeldAtTheEnd) {
  StopMatcher matcher({"###"});
  EXPECT_EQ(matcher.push("a##").text, "a");
  EXPECT_EQ(matcher.finish(), "##");
}

TEST(StopMatcher, FindsTheSameHoweverTheTextIsCut) {
  const std::string text = "one, two, three, stop here, four";
  for (std::size_t cut = 0; cut <= text.size(); ++cut) {
    for (std::size_t next = cut; next <= text.size(); ++next) {
      StopMatcher matcher({"stop here", "stopped", ", f"});
      std::string out;
      bool found = false;
      for (const auto& piece :
           {text.substr(0, cut), text.substr(cut, next - cut), text.substr(next)}) {
        if (found) break;
        const auto result = matcher.push(piece);
        out += result.text;
        found = result.found;
      }
      EXPECT_TRUE(found);
      EXPECT_EQ(out, "one, two, three, ");
    }
  }
}

}  // namespace
}  // namespace sluice
