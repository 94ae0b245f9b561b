#include "cli/options/config_value.hpp"

#include <array>
#include <charconv>
#include <chrono>
#include <limits>

#include "json/json.hpp"

namespace sluice {
namespace {

struct Unit {
  std::string_view name;
  std::uint64_t factor;
};

constexpr std::array<Unit, 5> kTimeUnits = {{{"h", 3'600'000'000},
                                             {"m", 60'000'000},
                                             {"s", 1'000'000},
                                             {"ms", 1'000},
                                             {"us", 1}}};  // factors are in microseconds
constexpr std::array<Unit, 8> kSizeUnits = {{{"GiB", 1U << 30U},
                                             {"MiB", 1U << 20U},
                                             {"KiB", 1U << 10U},
                                             {"", 1},
                                             {"B", 1},
                                             {"kB", 1'000},
                                             {"MB", 1'000'000},
                                             {"GB", 1'000'000'000}}};

template <std::size_t N>
std::optional<std::uint64_t> factor_of(const std::array<Unit, N>& units, std::string_view name) {
  for (const Unit& unit : units) {
    if (unit.name == name) return unit.factor;
  }
  return std::nullopt;
}

/// Removes the digits at the start of `text` and returns their value.
std::optional<std::uint64_t> take_number(std::string_view& text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc()) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return value;
}

std::optional<std::uint64_t> multiply(std::uint64_t a, std::uint64_t b) {
  if (b != 0 && a > std::numeric_limits<std::uint64_t>::max() / b) return std::nullopt;
  return a * b;
}

}  // namespace

std::optional<std::int64_t> parse_integer(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<double> parse_decimal(std::string_view text) {
  if (text.empty() || text.find_first_not_of("0123456789.") != std::string_view::npos) {
    return std::nullopt;
  }
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<Duration> parse_duration(std::string_view text) {
  if (text == "0") return Duration::zero();
  constexpr auto kMax = static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::microseconds>(Duration::max()).count());
  std::uint64_t total = 0;
  if (text.empty()) return std::nullopt;
  while (!text.empty()) {
    const auto number = take_number(text);
    if (!number) return std::nullopt;
    const auto unit_length = std::min(text.find_first_of("0123456789"), text.size());
    const auto factor = factor_of(kTimeUnits, text.substr(0, unit_length));
    if (!factor) return std::nullopt;
    text.remove_prefix(unit_length);
    const auto part = multiply(*number, *factor);
    if (!part || *part > kMax || total > kMax - *part) return std::nullopt;
    total += *part;
  }
  return std::chrono::microseconds(static_cast<std::int64_t>(total));
}

std::optional<Duration> parse_time(std::string_view text) {
  constexpr Duration kMin = std::chrono::milliseconds(1);
  constexpr Duration kMax = std::chrono::hours(24 * 7);
  const auto value = parse_duration(text);
  return value && *value >= kMin && *value <= kMax ? value : std::nullopt;
}

std::optional<std::size_t> parse_size(std::string_view text) {
  const auto number = take_number(text);
  if (!number) return std::nullopt;
  const auto factor = factor_of(kSizeUnits, text);
  if (!factor) return std::nullopt;
  return multiply(*number, *factor);
}

std::string format_duration(Duration value) {
  auto rest = static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::microseconds>(value).count());
  if (rest == 0) return "0";
  std::string out;
  for (const Unit& unit : kTimeUnits) {
    if (rest < unit.factor) continue;
    append_number(out, rest / unit.factor);
    out.append(unit.name);
    rest %= unit.factor;
  }
  return out;
}

std::string format_size(std::size_t bytes) {
  std::string out;
  for (const Unit& unit : kSizeUnits) {
    if (bytes % unit.factor != 0 || (bytes == 0 && unit.factor != 1)) continue;
    append_number(out, bytes / unit.factor);
    out.append(unit.name);
    break;
  }
  return out;
}

}  // namespace sluice
