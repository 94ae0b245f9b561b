#include "cli/terminal/terminal.hpp"

#include <algorithm>
#include <cerrno>
#include <clocale>
#include <cstdlib>
#include <cstring>
#include <langinfo.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "core/text/utf8.hpp"

namespace sluice {

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

bool write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(fd, text.data(), text.size());
    if (written < 0) {
      if (errno == EINTR) continue;
      return false;
    }
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

void complain(std::string_view message) {
  std::string line = "sluice: " + printable(message);
  // A message from a server must not look like several lines of this program.
  std::ranges::replace(line, '\n', ' ');
  line.push_back('\n');
  write_all(STDERR_FILENO, line);
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

}  // namespace sluice
