#include "json_schema/value.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <functional>
#include <limits>
#include <string_view>
#include <vector>

#include <boost/json/object.hpp>
#include <boost/json/string.hpp>

namespace sluice {
namespace {

__extension__ using Wide128 = unsigned __int128;

constexpr double kTwoTo63 = 0x1p63;
constexpr double kTwoTo64 = 0x1p64;

std::partial_ordering compare_fraction(double whole, double number) {
  return whole <=> number;  // the whole parts are equal, so the fraction decides
}

/// Compares `a` with `b` without rounding either.
std::partial_ordering compare(std::int64_t a, double b) {
  if (std::isnan(b)) return std::partial_ordering::unordered;
  if (b >= kTwoTo63) return std::partial_ordering::less;
  if (b < -kTwoTo63) return std::partial_ordering::greater;
  const double whole = std::trunc(b);
  const auto integer = static_cast<std::int64_t>(whole);
  return a != integer ? std::partial_ordering(a <=> integer) : compare_fraction(whole, b);
}

std::partial_ordering compare(std::uint64_t a, double b) {
  if (std::isnan(b)) return std::partial_ordering::unordered;
  if (b >= kTwoTo64) return std::partial_ordering::less;
  if (b < 0) return std::partial_ordering::greater;
  const double whole = std::trunc(b);
  const auto integer = static_cast<std::uint64_t>(whole);
  return a != integer ? std::partial_ordering(a <=> integer) : compare_fraction(whole, b);
}

std::partial_ordering compare(std::int64_t a, std::uint64_t b) {
  if (a < 0) return std::partial_ordering::less;
  return static_cast<std::uint64_t>(a) <=> b;
}

std::partial_ordering reversed(std::partial_ordering order) {
  return 0 <=> order;
}

std::partial_ordering compare_to_double(const json::value& a, double b) {
  if (a.is_int64()) return compare(a.get_int64(), b);
  if (a.is_uint64()) return compare(a.get_uint64(), b);
  return a.get_double() <=> b;
}

/// digits * 10^exponent. Has no trailing zeros if it was made from a double.
struct Decimal {
  std::uint64_t digits = 0;
  int exponent = 0;
};

Decimal to_decimal(const json::value& number) {
  if (number.is_uint64()) return {number.get_uint64(), 0};
  if (number.is_int64()) {
    const std::int64_t value = number.get_int64();
    const auto bits = static_cast<std::uint64_t>(value);
    return {value < 0 ? 0 - bits : bits, 0};
  }
  // The shortest text that reads back as the same double has at most 17 digits.
  std::array<char, 32> text;
  const double value = std::fabs(number.get_double());
  const char* const end =
      std::to_chars(text.data(), text.data() + text.size(), value, std::chars_format::scientific)
          .ptr;
  Decimal decimal;
  int fraction_digits = 0;
  bool in_fraction = false;
  const char* at = text.data();
  for (; at != end && *at != 'e'; ++at) {
    if (*at == '.') {
      in_fraction = true;
      continue;
    }
    decimal.digits = decimal.digits * 10 + static_cast<std::uint64_t>(*at - '0');
    if (in_fraction) ++fraction_digits;
  }
  if (at != end) {
    ++at;
    if (at != end && *at == '+') ++at;
    std::from_chars(at, end, decimal.exponent);
  }
  decimal.exponent -= fraction_digits;
  return decimal;
}

/// 10^exponent modulo `modulus`.
std::uint64_t power_of_ten(int exponent, std::uint64_t modulus) {
  Wide128 result = 1 % modulus;
  Wide128 base = 10 % modulus;
  for (auto left = static_cast<unsigned>(exponent); left != 0; left >>= 1U) {
    if ((left & 1U) != 0) result = result * base % modulus;
    base = base * base % modulus;
  }
  return static_cast<std::uint64_t>(result);
}

bool is_multiple_of(Decimal number, Decimal divisor) {
  if (number.digits == 0) return true;
  const int shift = number.exponent - divisor.exponent;
  if (shift >= 0) {
    const Wide128 remainder = Wide128{number.digits % divisor.digits} *
                              power_of_ten(shift, divisor.digits) % divisor.digits;
    return remainder == 0;
  }
  // Divides `number` by `divisor` * 10^-shift. From 10^20 on, the divisor is larger than the
  // number.
  constexpr int kDigitsOfUint64 = 20;
  if (-shift > kDigitsOfUint64) return false;
  Wide128 scaled = divisor.digits;
  for (int i = 0; i < -shift; ++i) {
    scaled *= 10;
    if (scaled > std::numeric_limits<std::uint64_t>::max()) return false;
  }
  return number.digits % static_cast<std::uint64_t>(scaled) == 0;
}

std::uint64_t mix(std::uint64_t hash) {
  hash ^= hash >> 32U;
  hash *= 0x9E3779B97F4A7C15U;
  hash ^= hash >> 29U;
  return hash;
}

std::uint64_t hash_number(const json::value& number) {
  if (number.is_int64()) return mix(static_cast<std::uint64_t>(number.get_int64()));
  if (number.is_uint64()) return mix(number.get_uint64());
  const double value = number.get_double();
  // A double that equals an integer must have the same hash as the integer.
  if (value == std::trunc(value)) {
    if (value >= -kTwoTo63 && value < kTwoTo63) {
      return mix(static_cast<std::uint64_t>(static_cast<std::int64_t>(value)));
    }
    if (value >= 0 && value < kTwoTo64) return mix(static_cast<std::uint64_t>(value));
  }
  return mix(std::bit_cast<std::uint64_t>(value) + 1);
}

std::uint64_t hash_text(std::string_view text) {
  return std::hash<std::string_view>{}(text);
}

std::uint64_t hash_value(const json::value& value, WorkBudget& work);

std::uint64_t hash_container(const json::value& value, WorkBudget& work) {
  if (!work.enter()) return 0;
  std::uint64_t hash = 0;
  if (const json::array* const array = value.if_array()) {
    hash = 3;
    for (const json::value& element : *array) hash = mix(hash) + hash_value(element, work);
  } else {
    // A sum, because the order of members does not matter.
    for (const auto& [key, member] : value.get_object()) {
      hash += mix(hash_text(key) + mix(hash_value(member, work)));
    }
    hash = mix(hash + 5);
  }
  work.leave();
  return hash;
}

std::uint64_t hash_value(const json::value& value, WorkBudget& work) {
  if (!work.spend()) return 0;
  switch (value.kind()) {
    case json::kind::null:
      return 0x5A5A;
    case json::kind::bool_:
      return value.get_bool() ? 0xA5A5 : 0xA5A6;
    case json::kind::int64:
    case json::kind::uint64:
    case json::kind::double_:
      return hash_number(value);
    case json::kind::string:
      work.spend(value.get_string().size() / kBytesPerStep);
      return hash_text(value.get_string());
    case json::kind::array:
    case json::kind::object:
      return hash_container(value, work);
  }
  return 0;
}

bool equal_arrays(const json::array& a, const json::array& b, WorkBudget& work) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (!equal_values(a[i], b[i], work)) return false;
  }
  return true;
}

bool equal_objects(const json::object& a, const json::object& b, WorkBudget& work) {
  if (a.size() != b.size()) return false;
  for (const auto& [key, member] : a) {
    const json::value* const other = b.if_contains(key);
    if (other == nullptr || !equal_values(member, *other, work)) return false;
  }
  return true;
}

}  // namespace

std::partial_ordering compare_numbers(const json::value& a, const json::value& b) {
  if (a.is_int64() && b.is_int64()) return a.get_int64() <=> b.get_int64();
  if (b.is_double()) return compare_to_double(a, b.get_double());
  if (a.is_double()) return reversed(compare_to_double(b, a.get_double()));
  if (a.is_int64()) return compare(a.get_int64(), b.get_uint64());
  if (b.is_int64()) return reversed(compare(b.get_int64(), a.get_uint64()));
  return a.get_uint64() <=> b.get_uint64();
}

bool is_integer(const json::value& number) {
  if (!number.is_double()) return true;
  const double value = number.get_double();
  return std::isfinite(value) && value == std::trunc(value);
}

bool is_multiple_of(const json::value& number, const json::value& divisor) {
  if (number.is_int64() && divisor.is_int64()) {
    return number.get_int64() % divisor.get_int64() == 0;
  }
  if (number.is_double() && !std::isfinite(number.get_double())) return false;
  return is_multiple_of(to_decimal(number), to_decimal(divisor));
}

bool equal_values(const json::value& a, const json::value& b, WorkBudget& work) {
  if (!work.spend()) return false;
  if (a.is_number() && b.is_number()) return compare_numbers(a, b) == 0;
  if (a.kind() != b.kind()) return false;
  switch (a.kind()) {
    case json::kind::bool_:
      return a.get_bool() == b.get_bool();
    case json::kind::string: {
      const std::string_view text = a.get_string();
      const std::string_view other = b.get_string();
      return text.size() == other.size() && work.spend(text.size() / kBytesPerStep) &&
             text == other;
    }
    case json::kind::array:
    case json::kind::object: {
      if (!work.enter()) return false;
      const bool equal = a.is_array() ? equal_arrays(a.get_array(), b.get_array(), work)
                                      : equal_objects(a.get_object(), b.get_object(), work);
      work.leave();
      return equal;
    }
    default:
      return true;  // null; numbers were compared above
  }
}

std::optional<std::pair<std::size_t, std::size_t>> find_duplicate(const json::array& array,
                                                                  WorkBudget& work) {
  constexpr std::size_t kFewItems = 8;  // comparing all pairs is faster than sorting so few
  if (array.size() <= kFewItems) {
    for (std::size_t i = 1; i < array.size(); ++i) {
      for (std::size_t j = 0; j < i; ++j) {
        if (equal_values(array[j], array[i], work)) return std::pair(j, i);
      }
    }
    return std::nullopt;
  }
  std::vector<std::pair<std::uint64_t, std::size_t>> hashes;
  hashes.reserve(array.size());
  for (std::size_t i = 0; i < array.size(); ++i) {
    hashes.emplace_back(hash_value(array[i], work), i);
    if (work.exhausted) return std::nullopt;
  }
  std::ranges::sort(hashes);
  for (std::size_t i = 1; i < hashes.size(); ++i) {
    for (std::size_t j = i; j-- > 0 && hashes[j].first == hashes[i].first;) {
      if (equal_values(array[hashes[j].second], array[hashes[i].second], work)) {
        return std::pair(hashes[j].second, hashes[i].second);
      }
      if (work.exhausted) return std::nullopt;
    }
  }
  return std::nullopt;
}

}  // namespace sluice
