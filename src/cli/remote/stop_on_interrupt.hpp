#pragma once

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

 private:
  Interrupts interrupts_;
  Descriptor over_;  // readable when this object ends
  std::stop_source source_;
  std::thread waiter_;
};

}  // namespace sluice
