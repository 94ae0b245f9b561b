#include "core/log/log.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <climits>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <fcntl.h>
#include <memory>
#include <mutex>
#include <optional>
#include <poll.h>
#include <span>
#include <unistd.h>
#include <utility>

#include "core/error.hpp"
#include "core/log/log_limit.hpp"
#include "core/text/json_escape.hpp"
#include "core/text/utf8.hpp"

namespace sluice {
namespace {

std::atomic<LogLevel> threshold_level = LogLevel::info;
std::atomic<std::string (*)(std::string)> log_mask = nullptr;
std::atomic<LogFormat> line_format = LogFormat::text;
std::atomic<bool> use_colour = false;

struct LevelName {
  std::string_view name;
  std::string_view colour;
};
constexpr std::array<LevelName, 6> kLevels = {{{"trace", "\x1b[2m"},
                                               {"debug", "\x1b[2m"},
                                               {"info", "\x1b[32m"},
                                               {"warning", "\x1b[33m"},
                                               {"error", "\x1b[31m"},
                                               {"off", ""}}};

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

/// The longest text that is logged of one value: a value from a peer may have any length.
constexpr std::size_t kLongestText = 1024;
/// So much of a text is looked at for secrets. The rest is not logged.
constexpr std::size_t kLongestMasked = std::size_t{32} << 10U;
/// Where a line is cut off, so that it has at most PIPE_BUF bytes: a pipe that is ready takes that
/// much at once and in one piece (pipe(7)).
constexpr std::size_t kLongestLine = PIPE_BUF - 512;

void append_code_point(std::string& out, unsigned value) {
  std::array<char, 8> text{};
  std::snprintf(text.data(), text.size(), "\\u%04x", value);
  out.append(text.data());
}

/// Appends text as the contents of a JSON string that is also safe to show on a terminal. Besides
/// what JSON requires, escapes all other control characters (is_control()). Each byte that is not
/// UTF-8 is escaped as the code point of its value.
void append_text(std::string& out, std::string_view text) {
  const std::size_t end = std::min(out.size() + kLongestText, std::max(out.size(), kLongestLine));
  while (!text.empty()) {
    const Utf8Part part = first_utf8_part(text);
    if (out.size() + part.length > end) {
      out.append("...");
      return;
    }
    const std::string_view bytes = text.substr(0, part.length);
    if (!part.valid) {
      for (const char byte : bytes) append_code_point(out, static_cast<unsigned char>(byte));
    } else if (const char32_t code = code_point_of(bytes); code > 0x1F && is_control(code)) {
      append_code_point(out, code);
    } else {
      append_json_escaped(out, bytes);
    }
    text.remove_prefix(part.length);
  }
}

void append_quoted(std::string& out, std::string_view text) {
  out.push_back('"');
  append_text(out, text);
  out.push_back('"');
}

void append_value(std::string& out, const LogField& field, bool as_json) {
  if (const auto* text = std::get_if<std::string_view>(&field.value)) {
    // Quoted if it could be taken for several fields.
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

/// Whether a line has room for another field. Each character of a key may become an escape of six.
bool has_room(const std::string& line, const LogField& field) {
  return line.size() + 6 * field.key.size() <= kLongestLine;
}

void append_event(std::string& line, std::string_view message, std::span<const LogField> fields) {
  append_text(line, message);
  for (const LogField& field : fields) {
    if (!has_room(line, field)) continue;
    line.push_back(' ');
    line.append(field.key);
    line.push_back('=');
    append_value(line, field, false);
  }
}

std::string format_line(LogLevel level, std::string_view message,
                        std::span<const LogField> fields) {
  const LevelName& name = kLevels[static_cast<std::size_t>(level)];
  std::string line;
  line.reserve(160);
  if (line_format.load(std::memory_order_relaxed) == LogFormat::json) {
    line.append(R"({"time":")");
    append_time(line);
    line.append(R"(","level":")").append(name.name).append(R"(","message":)");
    append_quoted(line, message);
    for (const LogField& field : fields) {
      if (!has_room(line, field)) continue;
      line.push_back(',');
      append_json_string(line, field.key);
      line.push_back(':');
      append_value(line, field, true);
    }
    line.append("}\n");
    return line;
  }
  const bool colour = use_colour.load(std::memory_order_relaxed);
  append_time(line);
  line.push_back(' ');
  if (colour) line.append(name.colour);
  line.append(name.name);
  if (colour) line.append("\x1b[0m");
  line.push_back(' ');
  append_event(line, message, fields);
  line.push_back('\n');
  return line;
}

/// Where the log goes: standard error, or a file. Writing never waits for a reader.
class Output {
 public:
  Result<void> open(const std::string& path) {
    constexpr mode_t kMode = 0640;
    const int opened = ::open(
        path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, kMode);
    if (opened < 0) return fail(1, "Cannot log to " + path + ": " + std::strerror(errno));
    const std::lock_guard lock(mutex_);
    if (descriptor_ != STDERR_FILENO) ::close(descriptor_);
    descriptor_ = opened;
    is_torn_ = false;
    return {};
  }
  void write(std::string_view line) {
    const std::lock_guard lock(mutex_);
    const LogField lines{"lines", left_out_};
    if (left_out_ > 0 && try_to_write(format_line(LogLevel::warning, "log lines were left out",
                                                  std::span(&lines, 1)))) {
      left_out_ = 0;
    }
    if (left_out_ > 0 || !try_to_write(line)) ++left_out_;
  }

 private:
  /// Returns false if it would have to wait, or if not all of the line could be written.
  [[nodiscard]] bool try_to_write(std::string_view line) {
    pollfd ready{.fd = descriptor_, .events = POLLOUT, .revents = 0};
    if (::poll(&ready, 1, 0) == 0) return false;
    const std::string mended = is_torn_ ? std::string("\n").append(line) : std::string();
    const std::string_view text = is_torn_ ? mended : line;
    const ssize_t written = ::write(descriptor_, text.data(), text.size());
    if (written > 0) is_torn_ = text[static_cast<std::size_t>(written) - 1] != '\n';
    return written == static_cast<ssize_t>(text.size());
  }

  std::mutex mutex_;
  int descriptor_ = STDERR_FILENO;
  std::int64_t left_out_ = 0;
  bool is_torn_ = false;  // only the beginning of the last line could be written
};

Output& output() {
  static Output log;
  return log;
}

/// The program's own sink.
class Sink {
 public:
  void set(LogSink sink) {
    auto made = sink ? std::make_shared<const LogSink>(std::move(sink)) : nullptr;
    // The sink before is destroyed after the lock, as it may be code of the user.
    const std::lock_guard lock(mutex_);
    sink_.swap(made);
    is_set_.store(sink_ != nullptr, std::memory_order_relaxed);
  }

  /// Returns false if there is no sink.
  bool take(const LogEvent& event) {
    if (!is_set_.load(std::memory_order_relaxed)) return false;
    std::shared_ptr<const LogSink> sink;
    {
      const std::lock_guard lock(mutex_);
      sink = sink_;
    }
    if (sink == nullptr) return false;
    thread_local bool is_inside = false;
    if (is_inside) return true;
    is_inside = true;
    try {
      (*sink)(event);
    } catch (...) {  // NOLINT(bugprone-empty-catch): there is no other log
    }
    is_inside = false;
    return true;
  }

 private:
  std::atomic<bool> is_set_ = false;
  std::mutex mutex_;
  std::shared_ptr<const LogSink> sink_;
};

/// The fields of an event, without what is secret in their texts.
class MaskedFields {
 public:
  explicit MaskedFields(std::span<const LogField> fields) : fields_(fields) {
    const auto mask = log_mask.load(std::memory_order_relaxed);
    if (mask == nullptr) return;
    texts_.reserve(fields.size());
    masked_.assign(fields.begin(), fields.end());
    for (LogField& each : masked_) {
      const auto* const text = std::get_if<std::string_view>(&each.value);
      if (text == nullptr) continue;
      each.value = texts_.emplace_back(mask(std::string(text->substr(0, kLongestMasked))));
    }
    fields_ = masked_;
  }
  MaskedFields(const MaskedFields&) = delete;
  MaskedFields& operator=(const MaskedFields&) = delete;

  [[nodiscard]] std::span<const LogField> fields() const { return fields_; }

 private:
  std::vector<std::string> texts_;
  std::vector<LogField> masked_;
  std::span<const LogField> fields_;
};

/// Never destroyed, as threads may log until the process has ended.
Sink& program_sink() {
  static Sink* const sink = new Sink;
  return *sink;
}

}  // namespace

void set_log_level(LogLevel level) {
  threshold_level.store(level, std::memory_order_relaxed);
}

std::string_view to_string(LogLevel level) {
  return kLevels[static_cast<std::size_t>(level)].name;
}

std::string LogEvent::text() const {
  std::string line;
  append_event(line, message, fields);
  return line;
}

void set_log_sink(LogSink sink) {
  program_sink().set(std::move(sink));
}

void set_logging(LogLevel threshold, LogFormat format, bool colour) {
  set_log_level(threshold);
  line_format.store(format, std::memory_order_relaxed);
  use_colour.store(colour, std::memory_order_relaxed);
}

void set_log_mask(std::string (*mask)(std::string text)) {
  log_mask.store(mask, std::memory_order_relaxed);
}

Result<void> log_to_file(const std::string& path) {
  return output().open(path);
}

bool log_enabled(LogLevel level) {
  return level != LogLevel::off && level >= threshold_level.load(std::memory_order_relaxed);
}

void log(LogLevel level, std::string_view message, std::initializer_list<LogField> fields) {
  if (!log_enabled(level)) return;
  const MaskedFields masked(fields);
  const std::span<const LogField> values = masked.fields();
  if (program_sink().take({.level = level, .message = message, .fields = values})) return;
  output().write(format_line(level, message, values));
}

void log_exception(LogLimit& limit, std::string_view message,
                   std::optional<LogField> where) noexcept {
  try {
    const std::optional<std::int64_t> left_out = limit.take();
    if (!left_out) return;
    LogField what{"exception", std::string_view("unknown type")};
    try {
      throw;
    } catch (const std::exception& error) {
      what.value = what_of(error);
    } catch (...) {  // NOLINT(bugprone-empty-catch)
    }
    if (where) {
      log_error(message, {*where, what, {"left_out", *left_out}});
    } else {
      log_error(message, {what, {"left_out", *left_out}});
    }
  } catch (...) {  // NOLINT(bugprone-empty-catch)
  }
}

}  // namespace sluice
