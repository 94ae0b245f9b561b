#include "cli/login/browser.hpp"

#include <fcntl.h>
#include <spawn.h>
#include <unistd.h>

#include "cli/options/process_environment.hpp"
#include "cli/terminal/terminal.hpp"

namespace sluice {

bool open_browser(const std::string& url) {
  const bool has_desktop = environment("DISPLAY") || environment("WAYLAND_DISPLAY");
  if (!has_desktop || !is_terminal(STDERR_FILENO)) return false;
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    posix_spawn_file_actions_addopen(&actions, stream, "/dev/null", O_RDWR, 0);
  }
  // An argument, not a shell's text: the URL comes from a server.
  std::string program = "xdg-open";
  std::string argument = url;
  char* const arguments[] = {program.data(), argument.data(), nullptr};
  pid_t child = 0;
  const int failed = ::posix_spawnp(&child, program.c_str(), &actions, nullptr, arguments, environ);
  posix_spawn_file_actions_destroy(&actions);
  return failed == 0;
}

void show_login(const LoginPrompt& prompt, bool may_open) {
  std::string text;
  if (may_open && open_browser(prompt.url)) {
    text = "A browser should open for the login. If it does not, open\n\n  ";
  } else {
    text = "To log in, open\n\n  ";
  }
  text.append(one_line(prompt.url)).append("\n\n");
  if (!prompt.user_code.empty()) {
    text.append("and check that it shows the code ").append(one_line(prompt.user_code));
    text.append(", or enter it there.\n");
  }
  text.append("Waiting for the login; Ctrl-C ends it.\n");
  // Whoever reads standard error no longer does so cannot log in, and the time for it passes.
  static_cast<void>(write_all(STDERR_FILENO, text));
}

}  // namespace sluice
