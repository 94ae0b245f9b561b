#pragma once

#include <csignal>

#include "net/loop/descriptor.hpp"

namespace sluice {

/// Waits for what ends a server: SIGINT, SIGTERM, SIGHUP, or the end of standard input. While this
/// object exists, the signals are blocked in the thread that created it and in the threads that
/// this one starts. The destructor restores the signal mask. SIGHUP is left alone if it is ignored,
/// as under nohup.
class ShutdownSignals {
 public:
  ShutdownSignals();
  /// Must run on the thread that created the object.
  ~ShutdownSignals();
  ShutdownSignals(const ShutdownSignals&) = delete;
  ShutdownSignals& operator=(const ShutdownSignals&) = delete;

  /// Reports the end of standard input. Thread-safe.
  void input_ended() const;
  /// Blocks until the first of them. Consumes the signal, if it is one.
  void wait() const;
  /// Consumes a pending signal. Returns false if there is none.
  [[nodiscard]] bool take_signal() const;

 private:
  sigset_t signals_{};
  sigset_t before_{};  // the signal mask to restore
  Descriptor signal_;
  Descriptor input_ended_;
};

}  // namespace sluice
