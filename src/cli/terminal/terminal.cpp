#include "cli/terminal/terminal.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <clocale>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <langinfo.h>
#include <mutex>
#include <poll.h>
#include <sys/ioctl.h>
#include <system_error>
#include <unistd.h>
#include <utility>

#include "cli/options/exit_code.hpp"
#include "cli/terminal/interrupts.hpp"
#include "core/log/log.hpp"
#include "core/text/secrets.hpp"
#include "core/text/utf8.hpp"

namespace sluice {
namespace {

std::mutex secrets_mutex;
std::vector<std::shared_ptr<const KnownSecrets>> secrets_to_mask;  // behind the mutex

/// Waits until `fd` takes bytes or has failed. Returns false if an interrupt ends the wait. If the
/// last write has `stalled`, an interrupt counts more than room: a terminal may have room for a few
/// bytes only, and then a write waits.
bool wait_for_room(int fd, bool stalled) {
  for (;;) {
    std::array<pollfd, 2> waits{{{fd, POLLOUT, 0}, {Interrupts::fd(), POLLIN, 0}}};
    const int patience = Interrupts::terminating() ? 0 : -1;
    if (::poll(waits.data(), waits.size(), patience) < 0) continue;  // a signal came
    return waits[0].revents != 0 && !(stalled && waits[1].revents != 0);
  }
}

/// How long a reader may take nothing once the program is to end.
constexpr Duration kStall = std::chrono::seconds(1);

/// Waits until `fd` has room. After an interrupt, until `until` or for kStall at most; gives it one
/// if it has none.
bool wait_for_reader(int fd, std::optional<TimePoint>& until) {
  const SteadyClock clock;
  std::optional<TimePoint> stalled_at;  // counts from the interrupt
  for (;;) {
    const TimePoint now = clock.now();
    if (!until && (Interrupts::terminating() || Interrupts::is_pending()))
      until = now + kLastOutput;
    int patience = -1;
    if (until) {
      if (!stalled_at) stalled_at = now + kStall;
      const Duration left = std::max(std::min(*stalled_at, *until) - now, Duration::zero());
      patience = static_cast<int>(std::chrono::ceil<std::chrono::milliseconds>(left).count());
    }
    // A descriptor of -1 is ignored.
    std::array<pollfd, 2> waits{{{fd, POLLOUT, 0}, {until ? -1 : Interrupts::fd(), POLLIN, 0}}};
    if (::poll(waits.data(), waits.size(), patience) < 0) continue;  // a signal came
    if (waits[0].revents != 0) return true;
    if (patience == 0) return false;
  }
}

/// Writes all of `text`, each piece when `has_room` returns true. As write_all().
template <class HasRoom>
Result<void> write_pieces(int fd, std::string_view text, HasRoom has_room) {
  bool stalled = false;
  while (!text.empty()) {
    if (!has_room(stalled)) return fail(kExitInterrupted, "");
    // No more than a pipe that has room takes at once: a longer write would wait for the reader.
    const auto piece = text.substr(0, PIPE_BUF);
    const ssize_t written = ::write(fd, piece.data(), piece.size());
    stalled = written != static_cast<ssize_t>(piece.size());
    if (written >= 0) {
      text.remove_prefix(static_cast<std::size_t>(written));
    } else if (errno == EPIPE) {
      return fail(kExitFailure, "");
    } else if (errno != EINTR && errno != EAGAIN) {
      return fail(kExitFailure, "cannot write: " + std::generic_category().message(errno));
    }
  }
  return {};
}

int code_of(const Result<void>& written) {
  if (written) return kExitOk;
  complain(written.error().message);
  return written.error().code;
}

}  // namespace

Style Style::of(int fd) {
  const char* no_color = std::getenv("NO_COLOR");
  const bool refused = (no_color != nullptr && *no_color != '\0') || is_dumb_terminal();
  return Style(!refused && is_terminal(fd));
}

bool is_dumb_terminal() {
  const char* term = std::getenv("TERM");
  return term != nullptr && std::string_view(term) == "dumb";
}

bool is_terminal(int fd) {
  return ::isatty(fd) == 1;
}

std::size_t terminal_width(int fd) {
  winsize size{};
  return is_terminal(fd) && ::ioctl(fd, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

void use_utf8() {
  std::setlocale(LC_CTYPE, "");
  if (std::strcmp(nl_langinfo(CODESET), "UTF-8") != 0) std::setlocale(LC_CTYPE, "C.UTF-8");
}

Result<void> write_all(int fd, std::string_view text) {
  return write_pieces(fd, text, [fd](bool stalled) { return wait_for_room(fd, stalled); });
}

int print(std::string_view text) {
  return code_of(write_all(STDOUT_FILENO, text));
}

int print_lines(std::string_view lines, std::optional<TimePoint>& until) {
  return code_of(write_pieces(STDOUT_FILENO, lines, [&until](bool /*stalled*/) {
    return wait_for_reader(STDOUT_FILENO, until);
  }));
}

void complain(std::string_view message) {
  if (message.empty()) return;
  write_all(STDERR_FILENO, "sluice: " + one_line(without_secrets(std::string(message))) + "\n");
}

void mask_in_complaints(std::shared_ptr<const KnownSecrets> secrets) {
  set_log_mask(without_secrets);
  const std::lock_guard lock(secrets_mutex);
  secrets_to_mask.push_back(std::move(secrets));
}

std::string without_secrets(std::string text) {
  const std::lock_guard lock(secrets_mutex);
  for (const auto& secrets : secrets_to_mask) text = secrets->mask()->masked(std::move(text));
  return text;
}

std::string one_line(std::string_view text) {
  std::string line = printable(text);
  std::ranges::replace(line, '\n', ' ');
  return line;
}

std::string printable(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const Utf8Part part = first_utf8_part(text);
    const std::string_view bytes = text.substr(0, part.length);
    text.remove_prefix(part.length);
    if (!part.valid) {
      out.append(kReplacementCharacter);
    } else if (bytes == "\n" || bytes == "\t" || !is_control(code_point_of(bytes))) {
      out.append(bytes);
    }
  }
  return out;
}

namespace {

/// Code points without a shape of their own (Unicode 15, Default_Ignorable_Code_Point), and what
/// looks like a space but is another character (White_Space; U+2800).
bool is_deceptive(char32_t point) {
  constexpr std::array<std::pair<char32_t, char32_t>, 21> kRanges = {
      {{0xA0, 0xA0},      {0xAD, 0xAD},     {0x34F, 0x34F},     {0x61C, 0x61C},
       {0x115F, 0x1160},  {0x1680, 0x1680}, {0x17B4, 0x17B5},   {0x180B, 0x180F},
       {0x2000, 0x200F},  {0x2028, 0x202F}, {0x205F, 0x206F},   {0x2800, 0x2800},
       {0x3000, 0x3000},  {0x3164, 0x3164}, {0xFE00, 0xFE0F},   {0xFEFF, 0xFEFF},
       {0xFFA0, 0xFFA0},  {0xFFF0, 0xFFF8}, {0x1BCA0, 0x1BCA3}, {0x1D173, 0x1D17A},
       {0xE0000, 0xE0FFF}}};
  return std::ranges::any_of(kRanges, [point](const auto& range) {
    return point >= range.first && point <= range.second;
  });
}

void append_escape(std::string& out, char32_t point) {
  constexpr char32_t kFirstBehindPlane0 = 0x10000;
  std::array<char, 16> escape{};
  if (point < kFirstBehindPlane0) {
    std::snprintf(escape.data(), escape.size(), "\\u%04x", static_cast<unsigned>(point));
  } else {
    const char32_t rest = point - kFirstBehindPlane0;
    std::snprintf(escape.data(), escape.size(), "\\u%04x\\u%04x",
                  static_cast<unsigned>(0xD800 + (rest >> 10U)),
                  static_cast<unsigned>(0xDC00 + (rest & 0x3FFU)));
  }
  out.append(escape.data());
}

template <class Predicate>
std::string escaped_json(std::string_view json, Predicate is_escaped) {
  std::string out;
  out.reserve(json.size());
  while (!json.empty()) {
    const Utf8Part part = first_utf8_part(json);
    const std::string_view bytes = json.substr(0, part.length);
    json.remove_prefix(part.length);
    const char32_t character = part.valid ? code_point_of(bytes) : U' ';
    if (bytes == "\n" || !is_escaped(character)) {
      out.append(bytes);
    } else {
      append_escape(out, character);
    }
  }
  return out;
}

}  // namespace

std::string printable_json(std::string_view json) {
  return escaped_json(json, is_control);
}

std::string visible_json(std::string_view json) {
  return escaped_json(json, [](char32_t each) { return is_control(each) || is_deceptive(each); });
}

std::string text_for(int fd, std::string_view text) {
  return is_terminal(fd) ? printable(text) : std::string(text);
}

std::string shortened(std::string_view text, std::size_t bytes) {
  if (text.size() <= bytes) return std::string(text);
  constexpr unsigned kContinuationMask = 0xC0;
  constexpr unsigned kContinuation = 0x80;
  while (bytes > 0 &&
         (static_cast<unsigned char>(text[bytes]) & kContinuationMask) == kContinuation) {
    --bytes;
  }
  return std::string(text.substr(0, bytes)) + "...";
}

}  // namespace sluice
