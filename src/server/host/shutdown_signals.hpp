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
/// object exists, the signals have a handler, which tells each of these objects (at most 16). They
/// are not blocked: a program that a tool starts would inherit that, and could not be ended.
/// Where the program itself blocks them in all threads, one of the objects takes each. A process
/// that is forked handles the signals as they were handled before. The destructor drops what is
/// pending and restores the handlers. A SIGHUP that would end the server is left alone if it was
/// ignored before, as under nohup.
class ShutdownSignals {
 public:
  explicit ShutdownSignals(Hangup hangup = Hangup::ends);
  /// Must run on the thread that created the object.
  ~ShutdownSignals();
  ShutdownSignals(const ShutdownSignals&) = delete;
  ShutdownSignals& operator=(const ShutdownSignals&) = delete;

  /// Reports the end of standard input. Thread-safe.
  void input_ended() const;
  /// Blocks until there is a request. Consumes the signal, if it is one; none: the input has ended.
  [[nodiscard]] SignalRequest wait() const;
  /// Consumes a pending signal, if there is one.
  [[nodiscard]] SignalRequest take() const;
  /// From now on, a signal that asks for the end exits the process with 0, whatever it is doing.
  /// Must be called on the thread that created the object, where these signals are no longer
  /// blocked until it is destroyed.
  void exit_at_once() const;

 private:
  [[nodiscard]] bool has_hung_up() const;
  /// Consumes a signal that the handler has received or that is blocked. 0: there is none.
  [[nodiscard]] int take_signal() const;

  Hangup hangup_;
  int terminal_ = -1;  // the first standard stream that was one; -1: none
  sigset_t signals_{};
  sigset_t before_{};       // the signal mask, for exit_at_once()
  Descriptor signal_;       // readable if one of the signals is blocked and pending
  Descriptor handed_over_;  // what the handler received: the end to read
  Descriptor hands_over_;   // the end to write
  Descriptor input_ended_;
};

}  // namespace sluice
