#include "core/text/field_value.hpp"

#include <gtest/gtest.h>
#include <string>

namespace sluice {
namespace {

TEST(FieldValue, HasNoControlCharactersButTabs) {
  for (int c = 0; c < 0x100; ++c) {
    const bool is_good = c == '\t' || (c >= ' ' && c != 0x7F);
    for (std::size_t size = 1; size <= 20; ++size) {
      for (std::size_t at = 0; at < size; ++at) {
        std::string text(size, 'x');
        text[at] = static_cast<char>(c);
        ASSERT_EQ(is_field_value(text), is_good) << c << " at " << at << " of " << size;
      }
    }
  }
  EXPECT_TRUE(is_field_value(""));
}

TEST(FieldValue, ItsControlCharactersAreFoundInTurn) {
  const std::string text = "a\tbcdefghij\x7Fklm\ropq\n";
  EXPECT_EQ(find_control(text, 0), 1U);
  EXPECT_EQ(find_control(text, 2), 11U);
  EXPECT_EQ(find_control(text, 12), 15U);
  EXPECT_EQ(find_control(text, 16), 19U);
  EXPECT_EQ(find_control(text, 20), 20U);
  EXPECT_EQ(find_control("abcdefghij", 1), 10U);
}

}  // namespace
}  // namespace sluice
