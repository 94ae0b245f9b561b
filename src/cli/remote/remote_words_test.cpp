#include "cli/remote/remote_words.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/options/exit_code.hpp"

namespace sluice {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr WordForm kToolWords = {.name = "the name of a tool", .takes_assignments = true};
constexpr WordForm kUriWord = {.name = "a URI"};

std::string refusal(const std::vector<std::string>& words, const std::vector<std::string>& command,
                    const WordForm& form) {
  const auto split = split_words(words, command, form);
  if (split) return {};
  EXPECT_EQ(split.error().code, kExitUsage);
  return split.error().message;
}

TEST(RemoteWords, TheFirstIsTheTarget) {
  const auto split =
      split_words({"notes", "search", "query=cheap flights", "n:=1"}, {}, kToolWords);
  ASSERT_TRUE(split);
  EXPECT_EQ(split->target.word, "notes");
  EXPECT_EQ(split->name, "search");
  EXPECT_THAT(split->assignments, ElementsAre("query=cheap flights", "n:=1"));
}

TEST(RemoteWords, TheToolAndItsArgumentsStandAtTheEndOfACommand) {
  const auto split =
      split_words({}, {"npx", "-y", "some-server", "search", "query=cheap flights"}, kToolWords);
  ASSERT_TRUE(split);
  EXPECT_THAT(split->target.command, ElementsAre("npx", "-y", "some-server"));
  EXPECT_EQ(split->name, "search");
  EXPECT_THAT(split->assignments, ElementsAre("query=cheap flights"));
}

TEST(RemoteWords, OrBeforeTheCommandWhichIsThenWhole) {
  const auto split = split_words({"search", "q=1"}, {"env", "A=1", "server", "b=2"}, kToolWords);
  ASSERT_TRUE(split);
  EXPECT_THAT(split->target.command, ElementsAre("env", "A=1", "server", "b=2"));
  EXPECT_EQ(split->name, "search");
  EXPECT_THAT(split->assignments, ElementsAre("q=1"));
}

TEST(RemoteWords, ACommandWithoutAToolIsWhole) {
  const auto split = split_words({}, {"server", "a=1"}, {});
  ASSERT_TRUE(split);
  EXPECT_THAT(split->target.command, ElementsAre("server", "a=1"));
  EXPECT_THAT(split->assignments, IsEmpty());
}

TEST(RemoteWords, AUriIsTheLastWordOfACommand) {
  const auto split = split_words({}, {"server", "note://a?b=1"}, kUriWord);
  ASSERT_TRUE(split);
  EXPECT_THAT(split->target.command, ElementsAre("server"));
  EXPECT_EQ(split->name, "note://a?b=1");
}

TEST(RemoteWords, SayWhatIsMissing) {
  EXPECT_THAT(refusal({"notes"}, {}, kToolWords), HasSubstr("give the name of a tool"));
  EXPECT_THAT(refusal({}, {"search", "q=1"}, kToolWords),
              HasSubstr("behind the command that starts the server"));
  EXPECT_THAT(refusal({"notes", "search", "flights"}, {}, kToolWords),
              HasSubstr("\"flights\" is no argument: give NAME=VALUE"));
  EXPECT_THAT(refusal({"notes", "a:b", "more"}, {}, kUriWord), HasSubstr("no use for \"more\""));
}

TEST(RemoteWords, AnAssignmentIsNoUrlAndNoOption) {
  EXPECT_TRUE(is_assignment("query="));
  EXPECT_TRUE(is_assignment("a.b=1"));
  EXPECT_TRUE(is_assignment("a:={}"));
  EXPECT_FALSE(is_assignment("--port=1"));
  EXPECT_FALSE(is_assignment("http://a/?b=c"));
  EXPECT_FALSE(is_assignment("=a"));
  EXPECT_FALSE(is_assignment(":=a"));
  EXPECT_FALSE(is_assignment("query"));
}

}  // namespace
}  // namespace sluice
