#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace sluice {

/// Breaks lines between words in a text that is shown on a terminal while it arrives. Text is shown
/// at once; a word that turns out not to fit is moved to the next line.
class WordWrap {
 public:
  /// Returns what to write for `text`, on a terminal with `width` columns; 0 breaks no lines.
  /// `text` is well-formed UTF-8 without control characters other than line feed and tab.
  std::string wrap(std::string_view text, std::size_t width);
  /// The cursor is at the beginning of a line.
  void begin_line();

 private:
  void append_character(std::string& out, std::string_view character, std::size_t width);

  std::size_t column_ = 0;      // where the cursor is
  std::string word_;            // the word before the cursor, which may go on
  std::size_t word_width_ = 0;  // its columns
};

}  // namespace sluice
