#include "cli/agent/trace_stepper.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <poll.h>
#include <termios.h>
#include <unistd.h>

#include "cli/agent/agent_view.hpp"
#include "cli/options/exit_code.hpp"
#include "cli/terminal/interrupts.hpp"
#include "json/members.hpp"

namespace sluice {
namespace {

constexpr std::string_view kRight = "\x1b[C";
constexpr std::string_view kLeft = "\x1b[D";
constexpr std::string_view kRedraw = "\x0c";
constexpr std::string_view kClear = "\x1b[H\x1b[2J";
constexpr std::string_view kKeys = "space, n, right: on; b, left: back; g, G: to the ends; q: quit";

// Signal handlers can only use globals.
termios modes_before{};

/// Ctrl-\ ends the program at once, but the terminal is the user's again.
void on_quit(int signal) {
  ::tcsetattr(STDIN_FILENO, TCSANOW, &modes_before);
  ::raise(signal);  // whose handler is the system's again
}

/// Has the terminal give each key at once, and show none, while this lives. One at a time.
class KeyMode {
 public:
  KeyMode() {
    ::tcgetattr(STDIN_FILENO, &modes_before);
    struct sigaction action{};
    action.sa_handler = on_quit;
    action.sa_flags = static_cast<int>(SA_RESETHAND);
    ::sigaction(SIGQUIT, &action, &old_quit_);
    begin();
  }
  ~KeyMode() {
    ::tcsetattr(STDIN_FILENO, TCSADRAIN, &modes_before);
    ::sigaction(SIGQUIT, &old_quit_, nullptr);
  }
  KeyMode(const KeyMode&) = delete;
  KeyMode& operator=(const KeyMode&) = delete;

  /// Also after the process was stopped, when the shell had the terminal.
  static void begin() {
    termios keys = modes_before;
    keys.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
    ::tcsetattr(STDIN_FILENO, TCSADRAIN, &keys);
  }

 private:
  struct sigaction old_quit_{};
};

/// Waits for keys; empty: there are none any more. After the process was stopped, it is one that
/// means nothing.
std::string read_keys() {
  for (;;) {
    if (Interrupts::take_continued()) {
      KeyMode::begin();
      return std::string(kRedraw);
    }
    std::array<pollfd, 2> waits{{{STDIN_FILENO, POLLIN, 0}, {Interrupts::fd(), POLLIN, 0}}};
    if (::poll(waits.data(), waits.size(), -1) < 0) continue;  // a signal came
    if (waits[1].revents != 0) return {};
    std::array<char, 256 * kRight.size()> bytes{};  // a held arrow is not cut
    const ssize_t got = ::read(STDIN_FILENO, bytes.data(), bytes.size());
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    return {bytes.data(), static_cast<std::size_t>(std::max<ssize_t>(got, 0))};
  }
}

}  // namespace

void TraceStepper::press(std::string_view keys) {
  while (!keys.empty()) {
    const std::string_view key = keys.substr(0, keys.starts_with("\x1b[") ? kRight.size() : 1);
    press_one(key);
    keys.remove_prefix(key.size());
  }
}

void TraceStepper::press_one(std::string_view key) {
  if (key == " " || key == "n" || key == "\n" || key == kRight) {
    shown_ = std::min(shown_ + 1, events_.size());
  } else if (key == "b" || key == "p" || key == "\x7f" || key == kLeft) {
    shown_ = std::max<std::size_t>(shown_, 2) - 1;
  } else if (key == "g") {
    shown_ = 1;
  } else if (key == "G") {
    shown_ = events_.size();
  } else if (key == "q" || key == "\x04") {
    is_over_ = true;
  }
}

std::string TraceStepper::screen() const {
  AgentView view(style_);
  const std::size_t shown = std::min(shown_, events_.size());
  std::string out;
  for (const TracedEvent& each : events_.first(shown)) out += view.show(each.event);
  out += view.finish();
  out += "\n" + std::string(style_.dim());
  out += std::to_string(shown) + " of " + std::to_string(events_.size());
  if (shown > 0) out += "  " + one_line(text_at(events_[shown - 1].event, "type"));
  return out.append("  ").append(kKeys).append(style_.reset()).append("\n");
}

int step_through(std::span<const TracedEvent> events) {
  if (!is_terminal(STDIN_FILENO) || !is_terminal(STDOUT_FILENO)) {
    complain("agent: --step needs a terminal");
    return kExitUsage;
  }
  const Interrupts interrupts;
  const KeyMode mode;
  TraceStepper stepper(events, Style::of(STDOUT_FILENO));
  while (!stepper.is_over()) {
    if (const int printed = print(std::string(kClear) + stepper.screen()); printed != kExitOk) {
      return printed;
    }
    const std::string keys = read_keys();
    if (keys.empty()) return Interrupts::is_pending() ? kExitInterrupted : kExitOk;
    stepper.press(keys);
  }
  return kExitOk;
}

}  // namespace sluice
