#pragma once

#include <csignal>

#include "net/loop/descriptor.hpp"

namespace sluice {

/// What ends a server: SIGINT, SIGTERM and SIGHUP, and the end of standard input. While one lives,
/// the signals are blocked in the thread that made it and those that it starts; then that thread
/// has them as before. SIGHUP is left alone where it is ignored, as under nohup.
class ShutdownSignals {
 public:
  ShutdownSignals();
  /// On the thread that made it.
  ~ShutdownSignals();
  ShutdownSignals(const ShutdownSignals&) = delete;
  ShutdownSignals& operator=(const ShutdownSignals&) = delete;

  /// Thread-safe.
  void input_ended() const;
  /// Waits for the first of them. A signal is taken.
  void wait() const;
  /// Whether there has been a signal that has not been taken.
  [[nodiscard]] bool take_signal() const;

 private:
  sigset_t signals_{};
  sigset_t before_{};  // what was blocked
  Descriptor signal_;
  Descriptor input_ended_;
};

}  // namespace sluice
