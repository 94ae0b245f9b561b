#include "cli/options/toml_syntax.hpp"

#include <algorithm>
#include <string>

namespace sluice {
namespace {

constexpr bool is_quote(char c) {
  return c == '"' || c == '\'';
}

/// Skips the escape sequence or the character at `at`.
std::size_t after_character(std::string_view text, std::size_t at, char quote) {
  return at + (quote == '"' && text[at] == '\\' ? 2 : 1);
}

/// The place behind the string that starts at `at` with a quote, or the end of the text or the line
/// that ends it too early.
std::size_t after_string(std::string_view text, std::size_t at) {
  const char quote = text[at];
  const std::string fence(3, quote);
  if (!text.substr(at).starts_with(fence)) {
    ++at;
    while (at < text.size() && text[at] != quote && text[at] != '\n') {
      at = after_character(text, at, quote);
    }
    return at < text.size() && text[at] == quote ? at + 1 : at;
  }
  at += fence.size();
  while (at < text.size() && !text.substr(at).starts_with(fence)) {
    at = after_character(text, at, quote);
  }
  // One or two quotes before the fence belong to the string.
  const std::size_t longest = at + fence.size() + 2;
  while (at < std::min(longest, text.size()) && text[at] == quote) ++at;
  return at;
}

}  // namespace

std::optional<std::size_t> line_of_foreign_character(std::string_view toml) {
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  std::size_t at = toml.starts_with(kByteOrderMark) ? kByteOrderMark.size() : 0;
  while (at < toml.size()) {
    if (is_quote(toml[at])) {
      at = after_string(toml, at);
    } else if (toml[at] == '#') {
      at = std::min(toml.find('\n', at), toml.size());
    } else if (static_cast<unsigned char>(toml[at]) >= 0x80) {
      return 1 + static_cast<std::size_t>(std::ranges::count(toml.substr(0, at), '\n'));
    } else {
      ++at;
    }
  }
  return std::nullopt;
}

}  // namespace sluice
