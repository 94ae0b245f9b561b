#pragma once

#include <csignal>

namespace sluice {

/// Turns SIGINT and SIGTERM into something that can be polled, for as long as it lives; one at a
/// time in a process. SIGWINCH and SIGCONT interrupt waits, so that a line editor can redraw.
class Interrupts {
 public:
  Interrupts();
  ~Interrupts();
  Interrupts(const Interrupts&) = delete;
  Interrupts& operator=(const Interrupts&) = delete;

  /// Readable while there is an interrupt to take.
  [[nodiscard]] int fd() const { return fd_; }
  /// Takes the interrupts so far; false if there was none.
  bool take();
  /// Whether the process was asked to end (SIGTERM), which no second question follows.
  [[nodiscard]] static bool terminating();
  /// Whether the process was stopped and goes on (SIGCONT) since the last call.
  static bool take_continued();

 private:
  int fd_;
  struct sigaction old_int_{};
  struct sigaction old_term_{};
  struct sigaction old_winch_{};
  struct sigaction old_cont_{};
};

}  // namespace sluice
