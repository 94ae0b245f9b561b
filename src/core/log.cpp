#include "core/log.hpp"

#include <array>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <unistd.h>

#include "core/json.hpp"
#include "core/utf8.hpp"

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

/// A value that a peer sent may be of any length.
constexpr std::size_t kLongestText = 1024;

void append_code_point(std::string& out, unsigned value) {
  std::array<char, 8> text{};
  std::snprintf(text.data(), text.size(), "\\u%04x", value);
  out.append(text.data());
}

/// Text as the inside of a JSON string that also a terminal takes for nothing but text: beside what
/// JSON escapes, U+007F, the C1 controls and the line separators U+2028 and U+2029. Of what is not
/// UTF-8, each byte above 0x7F stands as the code point of its number.
void append_text(std::string& out, std::string_view text) {
  const bool cut = text.size() > kLongestText;
  if (cut) text = text.substr(0, complete_utf8_prefix(text.substr(0, kLongestText)));
  const bool utf8 = is_valid_utf8(text);
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if (byte == 0x7F || (byte > 0x7F && !utf8)) {
      append_code_point(out, byte);
    } else if (byte == 0xC2 && static_cast<unsigned char>(text[i + 1]) < 0xA0) {
      append_code_point(out, static_cast<unsigned char>(text[++i]));
    } else if (const std::string_view three = text.substr(i, 3);
               three == "\u2028" || three == "\u2029") {
      append_code_point(out, three == "\u2028" ? 0x2028 : 0x2029);
      i += 2;
    } else {
      append_json_escaped(out, text.substr(i, 1));
    }
  }
  if (cut) out.append("...");
}

void append_quoted(std::string& out, std::string_view text) {
  out.push_back('"');
  append_text(out, text);
  out.push_back('"');
}

void append_value(std::string& out, const LogField& field, bool as_json) {
  if (const auto* text = std::get_if<std::string_view>(&field.value)) {
    // Quoted where it could be taken for more fields.
    if (as_json || text->empty() || text->find_first_of(" =\"") != std::string_view::npos) {
      append_quoted(out, *text);
    } else {
      append_text(out, *text);
    }
  } else if (const auto* integer = std::get_if<std::int64_t>(&field.value)) {
    append_number(out, *integer);
  } else if (const auto* number = std::get_if<double>(&field.value)) {
    if (!std::isfinite(*number)) {
      out.append("null");
      return;
    }
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
    append_quoted(line, message);
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
    append_text(line, message);
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
