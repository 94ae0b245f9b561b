#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <variant>

namespace sluice {

class LogLimit;

enum class LogLevel : std::uint8_t { debug, info, warning, error, off };
enum class LogFormat : std::uint8_t { text, json };

/// One named value of a log line. Secrets are never passed here.
struct LogField {
  std::string_view key;
  std::variant<std::string_view, std::int64_t, double, bool> value;
};

/// Sets what is logged and how, for the whole process. Thread-safe; done once at the start.
void set_logging(LogLevel threshold, LogFormat format, bool colour);
bool log_enabled(LogLevel level);

/// Writes one line to standard error: time, level, message, fields. Text, or one JSON object a
/// line. Control characters and invalid UTF-8 in message and values are escaped, and values that
/// look like several are quoted, so a peer can forge neither lines nor fields. Each is cut after
/// 1 KiB. Thread-safe; a line is one write(2), which is not waited for: while nobody reads standard
/// error lines are left out, and the next one that is written says how many.
void log(LogLevel level, std::string_view message, std::initializer_list<LogField> fields = {});

inline void log_debug(std::string_view m, std::initializer_list<LogField> f = {}) {
  log(LogLevel::debug, m, f);
}
inline void log_info(std::string_view m, std::initializer_list<LogField> f = {}) {
  log(LogLevel::info, m, f);
}
inline void log_warning(std::string_view m, std::initializer_list<LogField> f = {}) {
  log(LogLevel::warning, m, f);
}
inline void log_error(std::string_view m, std::initializer_list<LogField> f = {}) {
  log(LogLevel::error, m, f);
}

/// Logs, as an error, the exception that is being handled, as often as `limit` says. Throws
/// nothing: a lack of memory leaves the line out.
void log_exception(LogLimit& limit, std::string_view message) noexcept;

}  // namespace sluice
