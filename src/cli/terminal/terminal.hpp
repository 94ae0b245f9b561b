#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "core/clock.hpp"
#include "core/error.hpp"

namespace sluice {

class KnownSecrets;

/// Colour sequences for one output stream. They are empty when the stream is not a terminal, TERM
/// is "dumb", or NO_COLOR is set and not empty (no-color.org).
class Style {
 public:
  static Style of(int fd);
  static Style plain() { return Style(false); }

  [[nodiscard]] std::string_view bold() const { return code("\x1b[1m"); }
  [[nodiscard]] std::string_view dim() const { return code("\x1b[2m"); }
  [[nodiscard]] std::string_view red() const { return code("\x1b[31m"); }
  [[nodiscard]] std::string_view green() const { return code("\x1b[32m"); }
  [[nodiscard]] std::string_view yellow() const { return code("\x1b[33m"); }
  [[nodiscard]] std::string_view cyan() const { return code("\x1b[36m"); }
  [[nodiscard]] std::string_view reset() const { return code("\x1b[0m"); }
  [[nodiscard]] bool coloured() const { return coloured_; }

 private:
  explicit Style(bool coloured) : coloured_(coloured) {}
  [[nodiscard]] std::string_view code(std::string_view sequence) const {
    return coloured_ ? sequence : std::string_view();
  }
  bool coloured_;
};

bool is_terminal(int fd);

/// Whether the terminal does not know the sequences that move its cursor (TERM is "dumb").
bool is_dumb_terminal();

/// The number of columns of the terminal at `fd`; 0 if `fd` is no terminal or does not know.
std::size_t terminal_width(int fd);

/// Makes the C library take text for UTF-8, whatever the locale, so that it knows how wide
/// characters are.
void use_utf8();

/// Writes all of `text` to `fd` without buffering. If the reader is slow, waits for it, also in
/// non-blocking mode, until there is an interrupt to take; not at all if the process is terminating
/// (Interrupts). A terminal that is nearly full may need a second interrupt: it has room, but not
/// for all that is written. Fails with kExitInterrupted after an interrupt, and with kExitFailure
/// if `fd` takes no more. The message is empty if the user needs no explanation: they interrupted,
/// or the reader has gone.
Result<void> write_all(int fd, std::string_view text);

/// Writes "sluice: <message>" to standard error, on one line; nothing if `message` is empty.
void complain(std::string_view message);
/// From now on, complain() and the log mask these secrets too: a server may repeat them.
/// Thread-safe.
void mask_in_complaints(std::shared_ptr<const KnownSecrets> secrets);
/// `text` as complain() would show it, with these secrets masked.
std::string without_secrets(std::string text);

/// Prints the output of a command on standard output. Returns the program's exit code: kExitOk, or
/// the error of write_all() after complaining about it.
int print(std::string_view text);

/// How long a reader has for all lines that are still printed once the program is to end.
inline constexpr Duration kLastOutput = std::chrono::seconds(10);
/// The same for lines that a program reads: an interrupt does not cut them while the reader takes
/// some of them each second, until kLastOutput has passed. `until` is when that will be; what has
/// none gets it with the interrupt. kExitInterrupted: the reader has not taken them.
int print_lines(std::string_view lines, std::optional<TimePoint>& until);

/// `text` from a peer, made safe to show. Control characters (is_control()) other than line feed
/// and tab are removed, so that the text cannot move the cursor, change the terminal or appear out
/// of order. Malformed UTF-8 becomes U+FFFD.
std::string printable(std::string_view text);

/// The same on one line, so that a message of a server does not look like several of this program.
std::string one_line(std::string_view text);

/// `json` text with the characters that printable() removes as \u escapes: the same JSON.
std::string printable_json(std::string_view json);

/// The same, and with escapes for characters that cannot be seen, such as a zero width space or the
/// joiner of emoji, and for spaces other than U+0020. For what a user is to judge.
std::string visible_json(std::string_view json);

/// What standard output or standard error, `fd`, gets of a peer's text: printable() if it is a
/// terminal. A pipe or a file gets the text as it is.
std::string text_for(int fd, std::string_view text);

/// `text` cut to at most `bytes`, between characters, with "..." at its end if it was longer.
std::string shortened(std::string_view text, std::size_t bytes);

}  // namespace sluice
