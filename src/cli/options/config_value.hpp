#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/clock.hpp"

namespace sluice {

// Values as people write them on the command line and in files. A parser returns nothing if the
// text as a whole is not a value, is negative, or does not fit. Only parse_integer() accepts
// negative numbers.

/// A decimal number, optionally with a leading '-'.
std::optional<std::int64_t> parse_integer(std::string_view text);

/// A non-negative decimal number, with or without a fraction: "12", "0.5".
std::optional<double> parse_decimal(std::string_view text);

/// A duration such as "500ms", "30s", "5m" or "1h30m": whole numbers, each with a unit (us, ms, s,
/// m, h), in any order. "0" alone needs no unit.
std::optional<Duration> parse_duration(std::string_view text);

/// A time that a setting or an option may have: from 1ms to 168h, as kTimes says.
std::optional<Duration> parse_time(std::string_view text);
inline constexpr std::string_view kTimes = "a time from 1ms to 168h, such as 500ms, 30s or 5m";

/// A number of bytes: "4096", "64KiB", "4MiB", "1GiB", or with the decimal units kB, MB and GB.
std::optional<std::size_t> parse_size(std::string_view text);

/// The shortest text that parse_duration() reads back as `value`, rounded down to microseconds.
std::string format_duration(Duration value);

/// The shortest text in binary units that parse_size() reads back as `bytes`.
std::string format_size(std::size_t bytes);

}  // namespace sluice
