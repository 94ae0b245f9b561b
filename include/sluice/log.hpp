#pragma once

// The library's log: one line for each event that an operator should know of. It goes to standard
// error, from level `info` on, until a program decides otherwise. The settings are those of the
// whole process.

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <variant>

namespace sluice {

/// How much an event matters. `trace` is for messages of libraries that Sluice uses, such as
/// llama.cpp. `debug` logs each request, without its parameters.
enum class LogLevel : std::uint8_t { trace, debug, info, warning, error, off };

/// Logs events of this level and above from now on; `off` logs none. Thread-safe.
void set_log_level(LogLevel level);

/// The name of a level, such as "warning". It lives as long as the program.
std::string_view to_string(LogLevel level);

/// One named value of an event. Secrets are never among them.
struct LogField {
  std::string_view key;
  std::variant<std::string_view, std::int64_t, double, bool> value;
};

/// One event. What it refers to lives until the sink returns.
struct LogEvent {
  LogLevel level;
  /// What has happened, in a few words that are the same for all events of this kind.
  std::string_view message;
  /// Texts are neither escaped nor cut. If they come from a peer, they may be long, and may contain
  /// line breaks, controls and malformed UTF-8.
  std::span<const LogField> fields;

  /// The message and all fields as `message key=value ...`, in one line of at most 4 KiB without a
  /// line feed. What could forge lines or fields is escaped, texts are cut after 1 KiB, and
  /// fields for which there is no room are left out. So the line is safe to write to a terminal or
  /// a file.
  std::string text() const;
};

/// Receives each event that is logged, on the thread on which it happens. That may be an event loop
/// and several threads at once. So a sink is thread-safe, and does not wait. What it throws is
/// ignored. Events that happen while a sink runs, on its thread, are not logged.
using LogSink = std::function<void(const LogEvent&)>;

/// Gives events to `sink` instead of writing them to standard error. An empty sink ends that.
/// Thread-safe. Other threads may still be running the previous sink; it is destroyed when the last
/// of them returns.
void set_log_sink(LogSink sink);

}  // namespace sluice
