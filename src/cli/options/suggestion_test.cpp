#include "cli/options/suggestion.hpp"

#include <gtest/gtest.h>
#include <vector>

namespace sluice {
namespace {

TEST(Suggestion, CountsEdits) {
  EXPECT_EQ(edit_distance("", ""), 0U);
  EXPECT_EQ(edit_distance("", "abc"), 3U);
  EXPECT_EQ(edit_distance("port", "port"), 0U);
  EXPECT_EQ(edit_distance("prot", "port"), 1U);
  EXPECT_EQ(edit_distance("sevre", "serve"), 1U);
  EXPECT_EQ(edit_distance("chat", "char"), 1U);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3U);
}

TEST(Suggestion, FindsWhatWasMeant) {
  const std::vector<std::string> options = {"--port", "--host", "--max-body", "--max-connections",
                                            "--model"};
  EXPECT_EQ(suggestion("--prot", options), "--port");
  EXPECT_EQ(suggestion("--models", options), "--model");
  EXPECT_EQ(suggestion("--max-conn", options), "--max-connections");
  EXPECT_EQ(suggestion("--no-such-flag", options), "");
  EXPECT_EQ(suggestion("-x", options), "");
  EXPECT_EQ(suggestion("--port", {}), "");
}

TEST(Suggestion, TakesTheNearest) {
  const std::vector<std::string> commands = {"chat", "bench", "serve"};
  EXPECT_EQ(suggestion("caht", commands), "chat");
  EXPECT_EQ(suggestion("server", commands), "serve");
  EXPECT_EQ(suggestion("fly", commands), "");
}

}  // namespace
}  // namespace sluice
