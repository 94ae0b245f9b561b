#include "engine/answer/utf8_assembler.hpp"

#include <gtest/gtest.h>

#include "core/text/utf8.hpp"

namespace sluice {
namespace {

TEST(Utf8Assembler, PassesWholeCharactersAtOnce) {
  Utf8Assembler assembler;
  EXPECT_EQ(assembler.push("Hello, Wörld 😀"), "Hello, Wörld 😀");
  EXPECT_EQ(assembler.finish(), "");
}

TEST(Utf8Assembler, HoldsAnUnfinishedCharacter) {
  Utf8Assembler assembler;
  EXPECT_EQ(assembler.push("a\xF0"), "a");
  EXPECT_EQ(assembler.push("\x9F"), "");
  EXPECT_EQ(assembler.push("\x98"), "");
  EXPECT_EQ(assembler.push("\x80z"), "😀z");
}

TEST(Utf8Assembler, ReplacesWhatCanNeverBecomeACharacter) {
  Utf8Assembler assembler;
  EXPECT_EQ(assembler.push("a\xFFz"), "a\uFFFDz");
  EXPECT_EQ(assembler.push("\x80"), "\uFFFD");
  EXPECT_EQ(assembler.push("\xC0\xAF"), "\uFFFD\uFFFD");            // overlong
  EXPECT_EQ(assembler.push("\xED\xA0\x80"), "\uFFFD\uFFFD\uFFFD");  // surrogate
}

TEST(Utf8Assembler, ReplacesATruncatedCharacterOnceAndKeepsWhatFollows) {
  Utf8Assembler assembler;
  EXPECT_EQ(assembler.push("\xF0\x9F"), "");
  EXPECT_EQ(assembler.push("b"), "\uFFFDb");
  EXPECT_EQ(assembler.push("\xE2\x82\xE2\x82\xAC"), "\uFFFD€");
}

TEST(Utf8Assembler, ReplacesWhatIsUnfinishedAtTheEnd) {
  Utf8Assembler assembler;
  EXPECT_EQ(assembler.push("\xE2\x82"), "");
  EXPECT_EQ(assembler.finish(), "\uFFFD");
  EXPECT_EQ(assembler.finish(), "");
}

TEST(Utf8Assembler, EveryPairOfBytesComesOutWellFormed) {
  for (int first = 0; first < 256; ++first) {
    for (int second = 0; second < 256; ++second) {
      Utf8Assembler assembler;
      std::string out = assembler.push(std::string(1, static_cast<char>(first)));
      out += assembler.push(std::string(1, static_cast<char>(second)));
      out += assembler.finish();
      EXPECT_TRUE(is_valid_utf8(out)) << first << ' ' << second;
      EXPECT_FALSE(out.empty());
    }
  }
}

}  // namespace
}  // namespace sluice
