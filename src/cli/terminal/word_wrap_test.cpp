#include "cli/terminal/word_wrap.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "cli/terminal/terminal.hpp"
#include "core/text/utf8.hpp"

namespace sluice {
namespace {

using ::testing::ElementsAre;

/// The lines that a terminal shows, as characters.
std::vector<std::string> shown(std::string_view written) {
  std::vector<std::vector<std::string>> lines(1);
  std::size_t column = 0;
  while (!written.empty()) {
    if (written.starts_with("\x1b[K")) {
      lines.back().resize(column);
      written.remove_prefix(3);
    } else if (written.starts_with("\x1b[")) {
      const auto end = written.find('G');
      column = std::stoul(std::string(written.substr(2, end - 2))) - 1;
      written.remove_prefix(end + 1);
    } else {
      const std::size_t length = first_utf8_part(written).length;
      if (written.front() == '\n') {
        lines.emplace_back();
        column = 0;
      } else {
        lines.back().emplace_back(written.substr(0, length));
        ++column;
        while (written.front() == '\t' && column % 8 != 0) {
          lines.back().emplace_back();
          ++column;
        }
      }
      written.remove_prefix(length);
    }
  }
  std::vector<std::string> out;
  for (const auto& line : lines) {
    out.emplace_back();
    for (const std::string& character : line) out.back() += character;
  }
  return out;
}

class WordWrapTest : public ::testing::Test {
 protected:
  WordWrapTest() { use_utf8(); }

  /// What a terminal of `width` columns shows of `text`, which arrives in pieces of `piece` bytes.
  static std::vector<std::string> wrapped(std::string_view text, std::size_t width,
                                          std::size_t piece = 1000) {
    WordWrap wrap;
    std::string written;
    for (; !text.empty(); text.remove_prefix(std::min(piece, text.size()))) {
      written += wrap.wrap(text.substr(0, piece), width);
    }
    return shown(written);
  }
};

TEST_F(WordWrapTest, BreaksLinesBetweenWords) {
  for (const std::size_t piece : {1U, 2U, 3U, 1000U}) {
    EXPECT_THAT(wrapped("one two three\nfour five sixty", 8, piece),
                ElementsAre("one two ", "three", "four ", "five ", "sixty"));
    EXPECT_THAT(wrapped("12345678 12345678 1", 8, piece), ElementsAre("12345678", "12345678", "1"));
  }
}

TEST_F(WordWrapTest, BreaksAWordThatIsLongerThanALine) {
  for (const std::size_t piece : {1U, 1000U}) {
    EXPECT_THAT(wrapped("a 1234567890123456", 8, piece), ElementsAre("a ", "12345678", "90123456"));
  }
}

TEST_F(WordWrapTest, BreaksAroundWideCharacters) {
  EXPECT_THAT(wrapped("日本語日本", 5), ElementsAre("日本", "語日", "本"));
  EXPECT_THAT(wrapped("ab日本", 5), ElementsAre("ab日", "本"));
  // A combining accent takes no room.
  EXPECT_THAT(wrapped("cafe\u0301 au lait", 4), ElementsAre("cafe\u0301", "au ", "lait"));
}

TEST_F(WordWrapTest, KeepsWhatFits) {
  EXPECT_THAT(wrapped("one two\n\n  indented", 80), ElementsAre("one two", "", "  indented"));
  EXPECT_THAT(wrapped("one two three four", 0), ElementsAre("one two three four"));
}

TEST_F(WordWrapTest, GoesOnWhenTheTerminalBecomesNarrower) {
  WordWrap wrap;
  std::string written = wrap.wrap("one two thr", 80);
  written += wrap.wrap("ee four", 8);
  EXPECT_THAT(shown(written), ElementsAre("one two ", "three ", "four"));
}

TEST_F(WordWrapTest, ATabEndsAWord) {
  EXPECT_THAT(wrapped("a\tbc def", 12), ElementsAre("a\tbc ", "def"));
}

}  // namespace
}  // namespace sluice
