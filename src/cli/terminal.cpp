#include "cli/terminal.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <unistd.h>

namespace sluice {

Style Style::of(int fd) {
  const char* no_color = std::getenv("NO_COLOR");
  const char* term = std::getenv("TERM");
  const bool refused = (no_color != nullptr && *no_color != '\0') ||
                       (term != nullptr && std::string_view(term) == "dumb");
  return Style(!refused && is_terminal(fd));
}

bool is_terminal(int fd) {
  return ::isatty(fd) == 1;
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
  // What a server says must not look like more lines of ours.
  std::ranges::replace(line, '\n', ' ');
  line.push_back('\n');
  write_all(STDERR_FILENO, line);
}

std::string printable(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if ((byte < 0x20 && byte != '\n' && byte != '\t') || byte == 0x7f) continue;
    // U+0080 to U+009F, the C1 controls, in UTF-8.
    if (byte == 0xc2 && i + 1 < text.size() && static_cast<unsigned char>(text[i + 1]) < 0xa0) {
      ++i;
      continue;
    }
    out.push_back(text[i]);
  }
  return out;
}

}  // namespace sluice
