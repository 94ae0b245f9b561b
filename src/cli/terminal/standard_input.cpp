#include "cli/terminal/standard_input.hpp"

#include <array>
#include <cerrno>
#include <poll.h>
#include <system_error>
#include <unistd.h>

#include "cli/options/config_value.hpp"
#include "cli/options/exit_code.hpp"
#include "cli/terminal/interrupts.hpp"
#include "core/text/utf8.hpp"

namespace sluice {
namespace {

/// Waits up to `milliseconds`. Returns whether `fd` is readable or has ended, or the user has
/// interrupted the program.
bool input_comes(int fd, int milliseconds) {
  std::array<pollfd, 2> waits{{{fd, POLLIN, 0}, {Interrupts::fd(), POLLIN, 0}}};
  return ::poll(waits.data(), waits.size(), milliseconds) != 0;
}

}  // namespace

Result<std::string> read_input(int fd, std::size_t limit, std::string_view what,
                               const std::function<void()>& on_wait) {
  constexpr int kPatienceMs = 3000;
  if (!input_comes(fd, kPatienceMs)) on_wait();
  std::string bytes;
  std::string piece(std::size_t{64} << 10U, '\0');
  for (;;) {
    input_comes(fd, -1);
    if (Interrupts::is_pending()) return fail(kExitInterrupted, "interrupted");
    const ssize_t got = ::read(fd, piece.data(), piece.size());
    if (got == 0) break;
    if (got < 0) {
      if (errno == EINTR || errno == EAGAIN) continue;
      return fail(kExitFailure,
                  "cannot read standard input: " + std::generic_category().message(errno));
    }
    bytes.append(piece, 0, static_cast<std::size_t>(got));
    if (bytes.size() > limit) {
      return fail(kExitUsage, "standard input is longer than " + format_size(limit) +
                                  ", the most that " + std::string(what) +
                                  " may have; send a part of it, such as `head -c " +
                                  format_size(limit / 4) + "`");
    }
  }
  std::string text;
  append_utf8(text, bytes);
  return text;
}

}  // namespace sluice
