#pragma once

#include <csignal>

namespace sluice {

/// Makes SIGINT, SIGTERM and, unless it is ignored, SIGHUP pollable while this object lives. A
/// process has at most one at a time. SIGWINCH and SIGCONT interrupt waits, so that a line editor
/// can redraw.
class Interrupts {
 public:
  Interrupts();
  ~Interrupts();
  Interrupts(const Interrupts&) = delete;
  Interrupts& operator=(const Interrupts&) = delete;

  /// A descriptor that is readable while there is an interrupt to take; -1 while no object lives.
  [[nodiscard]] static int fd();
  /// Whether there is an interrupt to take.
  [[nodiscard]] static bool is_pending();
  /// Takes all interrupts so far. Returns false if there was none.
  bool take();
  /// Whether the process was asked to end (SIGTERM, SIGHUP). It then ends without waiting for the
  /// user or for a slow reader of its output.
  [[nodiscard]] static bool terminating();
  /// Whether the process was stopped and continued (SIGCONT) since the last call.
  static bool take_continued();

 private:
  struct sigaction old_int_{};
  struct sigaction old_term_{};
  struct sigaction old_hup_{};
  struct sigaction old_winch_{};
  struct sigaction old_cont_{};
};

}  // namespace sluice
