#include "core/text/shell_word.hpp"

#include <algorithm>

#include "core/text/text.hpp"

namespace sluice {

std::string shell_word(std::string_view text) {
  const auto is_plain = [](char c) {
    return is_letter(c) || is_digit(c) || std::string_view("-_./:@%+,").contains(c);
  };
  if (!text.empty() && std::ranges::all_of(text, is_plain)) return std::string(text);
  std::string out = "'";
  for (const char c : text) c == '\'' ? out.append("'\\''") : out.append(1, c);
  return out.append("'");
}

}  // namespace sluice
