#pragma once

#include <csignal>
#include <cstdint>

#include "net/loop/descriptor.hpp"

namespace sluice {

/// What a signal asks a server to do.
enum class SignalRequest : std::uint8_t { none, end, reload };

/// What SIGHUP is for.
enum class Hangup : std::uint8_t {
  ends,
  /// Asks for a reload. If a terminal of this process has hung up, it asks for the end, unless
  /// SIGHUP was ignored before, as under nohup.
  reloads,
};

/// Waits for what ends a server: SIGINT, SIGTERM, SIGHUP, or the end of standard input. While this
/// object exists, the signals are blocked in the thread that created it and in the threads that
/// this one starts; other threads of the program hand them over to it. If several of these objects
/// exist, only the first gets what other threads receive. A process that such a thread forks
/// handles the signals as they were handled before. The destructor drops what is pending, and
/// restores the signal mask and the handlers. A SIGHUP that would end the server is left alone if
/// it was ignored before, as under nohup.
class ShutdownSignals {
 public:
  explicit ShutdownSignals(Hangup hangup = Hangup::ends);
  /// Must run on the thread that created the object.
  ~ShutdownSignals();
  ShutdownSignals(const ShutdownSignals&) = delete;
  ShutdownSignals& operator=(const ShutdownSignals&) = delete;

  /// Reports the end of standard input. Thread-safe.
  void input_ended() const;
  /// Blocks until there is a request. Consumes the signal, if it is one.
  [[nodiscard]] SignalRequest wait() const;
  /// Consumes a pending signal, if there is one.
  [[nodiscard]] SignalRequest take() const;
  /// From now on, a signal that asks for the end exits the process with 0, whatever it is doing.
  /// Must be called on the thread that created the object.
  void exit_at_once() const;

 private:
  [[nodiscard]] bool has_hung_up() const;
  /// Consumes a signal that is pending or that another thread has received. 0: there is none.
  [[nodiscard]] int take_signal() const;

  Hangup hangup_;
  int terminal_ = -1;  // the first standard stream that was one; -1: none
  sigset_t signals_{};
  sigset_t before_{};  // the signal mask to restore
  Descriptor signal_;
  Descriptor handed_over_;  // the end to read; -1: another object gets them
  Descriptor hands_over_;   // the end to write
  Descriptor input_ended_;
};

}  // namespace sluice
