#include "json/exact_numbers.hpp"

#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <system_error>

namespace sluice {
namespace {

template <class Number>
bool holds(std::string_view text) {
  Number number{};
  return std::from_chars(text.data(), text.data() + text.size(), number).ec == std::errc();
}

/// Why a number of JSON would be sent as another, or as none; empty: it is not.
std::string_view change_of(std::string_view number) {
  if (number.find_first_of(".eE") == std::string_view::npos) {
    return holds<std::int64_t>(number) || holds<std::uint64_t>(number)
               ? ""
               : "an integer has more than 64 bits, so it would be rounded; give it as a text";
  }
  const bool is_infinite = std::isinf(std::strtod(std::string(number).c_str(), nullptr));
  return is_infinite ? "a number is larger than any that can be sent" : "";
}

}  // namespace

std::string_view inexact_number_in(std::string_view text) {
  while (true) {
    const auto begin = text.find_first_of("\"-0123456789");
    if (begin == std::string_view::npos) return {};
    text.remove_prefix(begin);
    if (text.front() == '"') {
      std::size_t end = 1;
      while (text[end] != '"') end += text[end] == '\\' ? 2 : 1;
      text.remove_prefix(end + 1);
      continue;
    }
    const std::string_view number = text.substr(0, text.find_first_not_of("+-.0123456789eE"));
    if (const auto change = change_of(number); !change.empty()) return change;
    text.remove_prefix(number.size());
  }
}

}  // namespace sluice
