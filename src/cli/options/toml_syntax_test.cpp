#include "cli/options/toml_syntax.hpp"

#include <gtest/gtest.h>
#include <string_view>

namespace sluice {
namespace {

TEST(TomlSyntax, StringsAndCommentsMayHaveAnyCharacter) {
  for (const std::string_view text :
       {"", "a = 1",
        "\xEF\xBB\xBF"
        "a = 1",
        "# über\na = 1 # ü", "a = \"ü\"", "a = \"\\\"ü\"", "a = \"\\\\\" # ü", "\"ü\".'ü' = 1",
        "a = '\\' # ü", "a = '''\nü ' '' \nü''' # ü", "a = \"\"\"\nü \\\"\"\" ü\"\"\"",
        "a = \"\"\"ü\"\"\"\"\" # ü", "a = \"\" # ü", "a = ['ü', \"ü\"] # ü"}) {
    EXPECT_EQ(line_of_foreign_character(text), std::nullopt) << text;
  }
}

TEST(TomlSyntax, NothingElseMay) {
  EXPECT_EQ(line_of_foreign_character("ü = 1"), 1U);
  EXPECT_EQ(line_of_foreign_character("a = 1\nb = \"\" ü"), 2U);
  EXPECT_EQ(line_of_foreign_character("a = '\\' ü"), 1U);
  EXPECT_EQ(line_of_foreign_character("a = \"\"\"\n\"\"\"\"\"ü"), 2U);
  EXPECT_EQ(line_of_foreign_character("a = \"\"\"\"\"\"\nü"), 2U);
  EXPECT_EQ(line_of_foreign_character("# a\n[a.ü]"), 2U);
}

TEST(TomlSyntax, AnEndThatIsTooEarlyIsNoPlaceBeyondTheText) {
  for (const std::string_view text :
       {"\"", "\"\\", "'", "\"\"\"", "\"\"\"\\", "'''a", "\"\"", "#"}) {
    EXPECT_EQ(line_of_foreign_character(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace sluice
