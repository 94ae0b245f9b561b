#include "json/exact_numbers.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstddef>
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

/// The size of a number: its digits from the first to the last that is not 0, and which power of
/// ten the last one counts. 0 has no digits.
struct Decimal {
  std::string digits = {};
  std::int64_t power = 0;
  bool operator==(const Decimal&) const = default;
};

/// Of a finite number, or one that is too near to 0.
Decimal decimal_of(std::string_view number) {
  const std::size_t exponent = number.find_first_of("eE");
  Decimal out;
  bool is_fraction = false;
  for (const char c : number.substr(0, exponent)) {
    if (c == '.') is_fraction = true;
    if (c < '0' || c > '9') continue;
    if (is_fraction) --out.power;
    if (c != '0' || !out.digits.empty()) out.digits += c;
  }
  const std::size_t length = out.digits.find_last_not_of('0') + 1;
  if (length == 0) return {};
  out.power += static_cast<std::int64_t>(out.digits.size() - length);
  out.digits.resize(length);
  if (exponent == std::string_view::npos) return out;
  std::string_view power = number.substr(exponent + 1);
  if (power.starts_with('+')) power.remove_prefix(1);
  std::int64_t more = 0;
  std::from_chars(power.data(), power.data() + power.size(), more);
  out.power += more;
  return out;
}

/// Whether `number`, with as many digits as are given, is what is given. All digits of a double are
/// fewer than kMostDigits.
bool is_written_as(double number, const Decimal& given) {
  constexpr std::size_t kMostDigits = 800;
  if (given.digits.size() > kMostDigits) return false;
  std::array<char, kMostDigits + 16> room{};
  const int behind_point = std::max(static_cast<int>(given.digits.size()) - 1, 0);
  const auto written = std::to_chars(room.data(), room.data() + room.size(), number,
                                     std::chars_format::scientific, behind_point);
  return decimal_of({room.data(), written.ptr}) == given;
}

/// Why a number of JSON would be sent as another, or as none; empty: it is not.
std::string_view change_of(std::string_view number) {
  if (number.find_first_of(".eE") == std::string_view::npos) {
    return holds<std::int64_t>(number) || holds<std::uint64_t>(number)
               ? ""
               : "an integer has more than 64 bits, so it would be rounded; give it as a text";
  }
  const double sent = std::strtod(std::string(number).c_str(), nullptr);
  if (std::isinf(sent)) return "a number is larger than any that can be sent";
  if (is_written_as(sent, decimal_of(number))) return "";
  return sent == 0 ? "a number is nearer to 0 than any that can be sent; give it as a text"
                   : "a number has more digits than can be sent, so it would be rounded; give it "
                     "as a text";
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
