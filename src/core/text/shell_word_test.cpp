#include "core/text/shell_word.hpp"

#include <gtest/gtest.h>

namespace sluice {
namespace {

TEST(ShellWord, QuotesWhatAShellWouldRead) {
  EXPECT_EQ(shell_word("https://mcp.example:8080/mcp"), "https://mcp.example:8080/mcp");
  EXPECT_EQ(shell_word("files:read"), "files:read");
  EXPECT_EQ(shell_word(""), "''");
  EXPECT_EQ(shell_word("a b"), "'a b'");
  EXPECT_EQ(shell_word("$(id)`id`\"\\;~"), "'$(id)`id`\"\\;~'");
  EXPECT_EQ(shell_word("it's"), "'it'\\''s'");
}

}  // namespace
}  // namespace sluice
