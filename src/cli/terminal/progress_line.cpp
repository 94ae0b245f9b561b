#include "cli/terminal/progress_line.hpp"

#include <string>

#include "cli/terminal/terminal.hpp"

namespace sluice {
namespace {

constexpr std::string_view kClearLine = "\r\x1b[K";
/// What does not fit stays out of the next line, which would not be cleared (DECAWM).
constexpr std::string_view kCutLine = "\x1b[?7l";
constexpr std::string_view kWrapLine = "\x1b[?7h";

}  // namespace

ProgressLine::ProgressLine(int fd, bool wanted)
    : fd_(fd), wanted_(wanted && is_terminal(fd) && !is_dumb_terminal()) {}

ProgressLine::~ProgressLine() {
  clear();
}

void ProgressLine::show(std::string_view text) {
  if (!wanted_) return;
  shown_ = true;
  std::string line(kClearLine);
  write_all(fd_, line.append(kCutLine).append(text).append(kWrapLine).append("\r"));
}

void ProgressLine::clear() {
  if (shown_) write_all(fd_, kClearLine);
  shown_ = false;
}

}  // namespace sluice
