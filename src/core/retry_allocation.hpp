#pragma once

#include <chrono>
#include <new>
#include <thread>

namespace sluice {

/// Returns what `allocate` returns. Calls it again while it throws std::bad_alloc, for about a
/// second; after that the exception leaves. For a thread that must hand something over while other
/// threads may free memory. Not for an event loop, which it would block.
template <class Allocate>
auto retry_allocation(const Allocate& allocate) {
  for (int tries = 1000; tries > 0; --tries) {
    try {
      return allocate();
    } catch (const std::bad_alloc&) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }
  return allocate();
}

}  // namespace sluice
