#include "cli/terminal/word_wrap.hpp"

#include <algorithm>
#include <cwchar>

#include "core/text/utf8.hpp"

namespace sluice {
namespace {

constexpr std::size_t kTab = 8;

std::size_t columns_of(std::string_view character) {
  const int columns = ::wcwidth(static_cast<wchar_t>(code_point_of(character)));
  return columns < 0 ? 1 : static_cast<std::size_t>(columns);
}

}  // namespace

void WordWrap::begin_line() {
  column_ = 0;
  word_.clear();
  word_width_ = 0;
}

std::string WordWrap::wrap(std::string_view text, std::size_t width) {
  if (width == 0) return std::string(text);
  std::string out;
  while (!text.empty()) {
    const std::size_t length = first_utf8_part(text).length;
    append_character(out, text.substr(0, length), width);
    text.remove_prefix(length);
  }
  return out;
}

void WordWrap::append_character(std::string& out, std::string_view character, std::size_t width) {
  const auto break_line = [&] {
    out.push_back('\n');
    begin_line();
  };
  if (character == "\n") return break_line();
  const bool is_blank = character == " " || character == "\t";
  if (is_blank) {
    if (column_ >= width) return break_line();  // the line break stands for it
    column_ = character == " " ? column_ + 1 : std::min(width, (column_ / kTab + 1) * kTab);
    out.append(character);
    word_.clear();
    word_width_ = 0;
    return;
  }
  const std::size_t columns = columns_of(character);
  // Lines may break around wide characters, because their scripts put no spaces between words.
  const bool is_wide = columns > 1;
  if (column_ + columns > width) {
    if (is_wide || word_width_ == 0 || word_width_ >= column_) {
      break_line();
    } else {
      // Removes the word and writes it again on the next line.
      out.append("\x1b[").append(std::to_string(column_ - word_width_ + 1)).append("G\x1b[K\n");
      out.append(word_);
      column_ = word_width_;
    }
  }
  out.append(character);
  column_ += columns;
  if (is_wide) {
    word_.clear();
    word_width_ = 0;
  } else {
    word_.append(character);
    word_width_ += columns;
  }
}

}  // namespace sluice
