#include "cli/terminal/progress_line.hpp"

#include <string>

#include "cli/terminal/terminal.hpp"

namespace sluice {
namespace {

constexpr std::string_view kClearLine = "\r\x1b[K";

}  // namespace

ProgressLine::ProgressLine(int fd, bool wanted)
    : fd_(fd), wanted_(wanted && is_terminal(fd) && !is_dumb_terminal()) {}

ProgressLine::~ProgressLine() {
  clear();
}

void ProgressLine::show(std::string_view text) {
  if (!wanted_) return;
  shown_ = true;
  write_all(fd_, std::string(kClearLine) + std::string(text) + "\r");
}

void ProgressLine::clear() {
  if (shown_) write_all(fd_, kClearLine);
  shown_ = false;
}

}  // namespace sluice
