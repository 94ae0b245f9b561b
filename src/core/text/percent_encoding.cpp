#include "core/text/percent_encoding.hpp"

#include <algorithm>
#include <charconv>

#include "core/text/text.hpp"

namespace sluice {
namespace {

/// Encodes every character that is neither a letter, nor a digit, nor one of `marks`.
void append_encoded(std::string& out, std::string_view text, std::string_view marks) {
  static constexpr std::string_view kDigits = "0123456789ABCDEF";
  for (const char c : text) {
    if (is_letter(c) || is_digit(c) || marks.find(c) != std::string_view::npos) {
      out.push_back(c);
      continue;
    }
    const auto byte = static_cast<unsigned char>(c);
    out.append({'%', kDigits[byte >> 4U], kDigits[byte & 0xFU]});
  }
}

}  // namespace

std::optional<std::string> percent_decode(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out.push_back(text[i]);
      continue;
    }
    const std::string_view digits = text.substr(i + 1, 2);
    unsigned value = 0;
    const char* const end = digits.data() + digits.size();
    if (digits.size() != 2 || std::from_chars(digits.data(), end, value, 16).ptr != end) {
      return std::nullopt;
    }
    out.push_back(static_cast<char>(value));
    i += 2;
  }
  return out;
}

void append_percent_encoded(std::string& out, std::string_view text) {
  append_encoded(out, text, "-._~!$&'()*+,;=");
}

void append_query_encoded(std::string& out, std::string_view text) {
  append_encoded(out, text, "-._~");
}

std::optional<std::string> form_decode(std::string_view text) {
  std::string spaced(text);
  std::ranges::replace(spaced, '+', ' ');
  return percent_decode(spaced);
}

}  // namespace sluice
