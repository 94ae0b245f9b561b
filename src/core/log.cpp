#include "core/log.hpp"

#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <unistd.h>

#include "core/json.hpp"

namespace sluice {
namespace {

std::atomic<LogLevel> threshold_level = LogLevel::info;
std::atomic<LogFormat> line_format = LogFormat::text;
std::atomic<bool> use_colour = false;

struct LevelName {
  std::string_view name;
  std::string_view colour;
};
constexpr std::array<LevelName, 4> kLevels = {
    {{"debug", "\x1b[2m"}, {"info", "\x1b[32m"}, {"warning", "\x1b[33m"}, {"error", "\x1b[31m"}}};

/// UTC, RFC 3339, milliseconds.
void append_time(std::string& out) {
  const auto now = std::chrono::system_clock::now();
  const std::time_t seconds = std::chrono::system_clock::to_time_t(now);
  const auto millis = static_cast<int>(
      std::chrono::duration_cast<std::chrono::milliseconds>(now.time_since_epoch()).count() % 1000);
  std::tm utc{};
  gmtime_r(&seconds, &utc);
  std::array<char, 40> text{};
  const std::size_t length = std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%S", &utc);
  out.append(text.data(), length);
  std::snprintf(text.data(), text.size(), ".%03dZ", millis);
  out.append(text.data());
}

void append_value(std::string& out, const LogField& field, bool quote_strings) {
  if (const auto* text = std::get_if<std::string_view>(&field.value)) {
    if (quote_strings) {
      append_json_string(out, *text);
    } else {
      append_json_escaped(out, *text);
    }
  } else if (const auto* integer = std::get_if<std::int64_t>(&field.value)) {
    append_number(out, *integer);
  } else if (const auto* number = std::get_if<double>(&field.value)) {
    std::array<char, 32> digits{};
    std::snprintf(digits.data(), digits.size(), "%.6g", *number);
    out.append(digits.data());
  } else {
    out.append(std::get<bool>(field.value) ? "true" : "false");
  }
}

}  // namespace

void set_logging(LogLevel threshold, LogFormat format, bool colour) {
  threshold_level.store(threshold, std::memory_order_relaxed);
  line_format.store(format, std::memory_order_relaxed);
  use_colour.store(colour, std::memory_order_relaxed);
}

bool log_enabled(LogLevel level) {
  return level != LogLevel::off && level >= threshold_level.load(std::memory_order_relaxed);
}

void log(LogLevel level, std::string_view message, std::initializer_list<LogField> fields) {
  if (!log_enabled(level)) return;
  const LevelName& name = kLevels[static_cast<std::size_t>(level)];
  std::string line;
  line.reserve(160);
  if (line_format.load(std::memory_order_relaxed) == LogFormat::json) {
    line.append(R"({"time":")");
    append_time(line);
    line.append(R"(","level":")").append(name.name).append(R"(","message":)");
    append_json_string(line, message);
    for (const LogField& field : fields) {
      line.push_back(',');
      append_json_string(line, field.key);
      line.push_back(':');
      append_value(line, field, true);
    }
    line.append("}\n");
  } else {
    const bool colour = use_colour.load(std::memory_order_relaxed);
    append_time(line);
    line.push_back(' ');
    if (colour) line.append(name.colour);
    line.append(name.name);
    if (colour) line.append("\x1b[0m");
    line.push_back(' ');
    append_json_escaped(line, message);
    for (const LogField& field : fields) {
      line.push_back(' ');
      line.append(field.key);
      line.push_back('=');
      append_value(line, field, false);
    }
    line.push_back('\n');
  }
  // Logging has nowhere to report its own failure.
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, line.data(), line.size());
}

}  // namespace sluice
