#pragma once

#include <chrono>
#include <stop_token>
#include <thread>

#include "cli/terminal/interrupts.hpp"
#include "net/loop/descriptor.hpp"

namespace sluice {

/// Asks for a stop when the user interrupts the program, while this object lives. The interrupt is
/// not taken (Interrupts::take()), so it also ends writes that wait for a slow reader.
class StopOnInterrupt {
 public:
  StopOnInterrupt();
  ~StopOnInterrupt();
  StopOnInterrupt(const StopOnInterrupt&) = delete;
  StopOnInterrupt& operator=(const StopOnInterrupt&) = delete;

  [[nodiscard]] std::stop_token token() const { return source_.get_token(); }
  [[nodiscard]] bool is_requested() const { return source_.stop_requested(); }
  /// Waits for the interrupt, at most for so long. Returns whether it came.
  [[nodiscard]] bool wait_for(std::chrono::milliseconds time) const;

 private:
  Interrupts interrupts_;
  Descriptor over_;  // readable when this object ends
  std::stop_source source_;
  std::thread waiter_;
};

}  // namespace sluice
