#include "engine/answer/reasoning_splitter.hpp"

#include <gtest/gtest.h>

namespace sluice {
namespace {

struct Split {
  std::string reasoning;
  std::string text;
};

Split join(const std::vector<Delta>& deltas) {
  Split split;
  for (const Delta& delta : deltas) {
    EXPECT_FALSE(delta.text.empty());
    (delta.kind == Delta::Kind::reasoning ? split.reasoning : split.text) += delta.text;
  }
  return split;
}

Split split(const std::vector<std::string>& pieces, bool open = false) {
  ReasoningSplitter splitter({}, open);
  std::vector<Delta> out;
  for (const std::string& piece : pieces) splitter.push(piece, out);
  splitter.finish(out);
  return join(out);
}

TEST(ReasoningSplitter, SeparatesReasoningHoweverTheTextIsCut) {
  const std::string text = "\n<think>\nTwo and two.</think>\n\nFour.";
  for (std::size_t cut = 0; cut <= text.size(); ++cut) {
    for (std::size_t next = cut; next <= text.size(); ++next) {
      const auto [reasoning, answer] =
          split({text.substr(0, cut), text.substr(cut, next - cut), text.substr(next)});
      EXPECT_EQ(reasoning, "Two and two.");
      EXPECT_EQ(answer, "Four.");
    }
  }
}

TEST(ReasoningSplitter, BeginsInsideWhenThePromptOpenedIt) {
  const auto [reasoning, answer] = split({"Hm.", "</thi", "nk>Yes."}, true);
  EXPECT_EQ(reasoning, "Hm.");
  EXPECT_EQ(answer, "Yes.");
}

TEST(ReasoningSplitter, LeavesMarksInsideTheAnswerAlone) {
  const auto [reasoning, answer] = split({"The tag <think>", " ends with </think>."});
  EXPECT_EQ(reasoning, "");
  EXPECT_EQ(answer, "The tag <think> ends with </think>.");
}

TEST(ReasoningSplitter, GivesBackWhatLookedLikeAMark) {
  EXPECT_EQ(split({" <thi"}).text, " <thi");
  EXPECT_EQ(split({"  "}).text, "  ");
  EXPECT_EQ(split({"<think>so </thi"}).reasoning, "so </thi");
}

TEST(ReasoningSplitter, PassesTheAnswerWithoutDelay) {
  ReasoningSplitter splitter({}, false);
  std::vector<Delta> out;
  splitter.push("He", out);
  ASSERT_EQ(out.size(), 1U);
  EXPECT_EQ(out[0].text, "He");
}

TEST(ReasoningSplitter, WithoutMarksEverythingIsAnswer) {
  ReasoningSplitter splitter({.start = "", .ends = {}}, false);
  std::vector<Delta> out;
  splitter.push("<think>x</think>", out);
  EXPECT_EQ(join(out).text, "<think>x</think>");
}

TEST(ReasoningSplitter, TakesAnyOfSeveralEndMarks) {
  ReasoningSplitter splitter({.start = "[R]", .ends = {"[/R]", "[END]"}}, false);
  std::vector<Delta> out;
  splitter.push("[R]why[END]because", out);
  EXPECT_EQ(join(out).reasoning, "why");
  EXPECT_EQ(join(out).text, "because");
}

}  // namespace
}  // namespace sluice
