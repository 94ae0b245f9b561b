#pragma once

#include <cstddef>
#include <cstdlib>
#include <new>
#include <utility>

// Replaces the global operator new of the test programs that include this.

namespace sluice {

/// How many allocations of this thread still succeed before one fails; 0: none fails.
inline thread_local std::size_t allocations_left = 0;

/// Calls `work` again and again. In the n-th call the n-th allocation of this thread fails, until a
/// call needs fewer. `work` may throw std::bad_alloc.
template <class Work>
void fail_each_allocation(const Work& work) {
  std::size_t calls = 0;
  do {
    allocations_left = ++calls;
    try {
      work();
    } catch (const std::bad_alloc&) {  // NOLINT(bugprone-empty-catch)
    }
  } while (std::exchange(allocations_left, 0) == 0);
}

}  // namespace sluice

// Weak, because several files of a program may include this.
// NOLINTBEGIN(misc-definitions-in-headers)
[[gnu::weak]] void* operator new(std::size_t size, const std::nothrow_t& /*tag*/) noexcept {
  if (sluice::allocations_left > 0 && --sluice::allocations_left == 0) return nullptr;
  return std::malloc(size == 0 ? 1 : size);
}
[[gnu::weak]] void* operator new(std::size_t size) {
  if (void* const memory = operator new(size, std::nothrow)) return memory;
  throw std::bad_alloc();
}
[[gnu::weak]] void* operator new[](std::size_t size) {
  return operator new(size);
}
[[gnu::weak]] void* operator new[](std::size_t size, const std::nothrow_t& tag) noexcept {
  return operator new(size, tag);
}
[[gnu::weak]] void operator delete(void* memory) noexcept {
  std::free(memory);
}
[[gnu::weak]] void operator delete(void* memory, std::size_t /*size*/) noexcept {
  std::free(memory);
}
[[gnu::weak]] void operator delete[](void* memory) noexcept {
  std::free(memory);
}
[[gnu::weak]] void operator delete[](void* memory, std::size_t /*size*/) noexcept {
  std::free(memory);
}
// NOLINTEND(misc-definitions-in-headers)
