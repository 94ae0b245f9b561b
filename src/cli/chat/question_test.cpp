#include "cli/chat/question.hpp"

#include <gtest/gtest.h>

namespace sluice {
namespace {

TEST(Question, JoinsThePromptAndTheInput) {
  EXPECT_EQ(join_question("Write a commit message", "- old\n+ new\n"),
            "Write a commit message\n\n- old\n+ new");
  EXPECT_EQ(join_question("Hello", ""), "Hello");
  EXPECT_EQ(join_question("Hello", " \n"), "Hello");
  EXPECT_EQ(join_question("", "  indented\n"), "  indented");
  EXPECT_EQ(join_question(" ", " \t\r\n"), "");
}

}  // namespace
}  // namespace sluice
