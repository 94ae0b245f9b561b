#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

#include "core/error.hpp"
#include "sluice/log.hpp"

namespace sluice {

class LogLimit;

enum class LogFormat : std::uint8_t { text, json };

/// Sets what is logged and how, for the whole process. Thread-safe.
void set_logging(LogLevel threshold, LogFormat format, bool colour);

/// Appends the log to a file from now on, which is created if it is not there, instead of writing
/// it to standard error. A path that was given before is opened again, for when the file has been
/// moved away. Thread-safe. The error names the file and says why; the log then stays where it is.
Result<void> log_to_file(const std::string& path);
/// Masks secrets of this process in the texts of all events from now on. `mask` is called by any
/// thread, and logs nothing itself. Thread-safe.
void set_log_mask(std::string (*mask)(std::string text));
bool log_enabled(LogLevel level);

/// Gives the event to the program's sink (sluice/log.hpp). Without one, writes one line to the log
/// with time, level, message and fields, as text or as one JSON object. Never pass secrets in
/// `fields`. Control characters and invalid UTF-8 in the message and the values are escaped, and
/// values that could be taken for several are quoted, so that a peer can forge neither lines nor
/// fields. The message and each value are cut off after 1 KiB. Thread-safe. A line is one write(2)
/// that does not wait for a reader. While nobody reads standard error, or the disk is full, lines
/// are left out, and the next line that is written says how many.
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

/// Logs the exception that is being handled as an error, unless `limit` suppresses it. Does not
/// throw: if memory runs out, the line is left out. `where` says what failed.
void log_exception(LogLimit& limit, std::string_view message,
                   std::optional<LogField> where = {}) noexcept;

}  // namespace sluice
