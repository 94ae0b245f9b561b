#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <utility>

namespace sluice {

/// The largest block that is kept.
inline constexpr std::size_t kLargestRecycled = 1024;
/// The most bytes that a thread keeps.
inline constexpr std::size_t kMostRecycled = std::size_t{512} << 10U;

/// Memory for objects that come and go with each request: a thread keeps what they give back for
/// the next ones, until it ends. The heap would take a lock, as it keeps only seven blocks of a
/// size for a thread (glibc's tcache), and many requests are under way at once. With sanitizers
/// nothing is kept, so that they find what is used after its end.
///
/// `size` bytes, aligned for every type that asks for nothing special. Throws std::bad_alloc.
/// Thread-safe.
[[nodiscard]] void* allocate_recycled(std::size_t size);
/// Gives back what was allocated with this size, by whatever thread. Thread-safe.
void recycle(void* memory, std::size_t size) noexcept;

/// Base of classes whose objects have such memory.
class Recycled {
 public:
  static void* operator new(std::size_t size) { return allocate_recycled(size); }
  static void operator delete(void* memory, std::size_t size) noexcept { recycle(memory, size); }
};

/// For containers and shared pointers.
template <class T>
class RecyclingAllocator {
 public:
  using value_type = T;
  static_assert(alignof(T) <= alignof(std::max_align_t));

  RecyclingAllocator() = default;
  template <class Other>
  RecyclingAllocator(const RecyclingAllocator<Other>& /*other*/) {}
  [[nodiscard]] T* allocate(std::size_t count) {
    return static_cast<T*>(allocate_recycled(count * sizeof(T)));
  }
  void deallocate(T* memory, std::size_t count) noexcept { recycle(memory, count * sizeof(T)); }
  template <class Other>
  bool operator==(const RecyclingAllocator<Other>& /*other*/) const {
    return true;
  }
};

template <class Key, class Value>
using RecycledMap =
    std::map<Key, Value, std::less<>, RecyclingAllocator<std::pair<const Key, Value>>>;

/// As std::make_shared().
template <class T, class... Arguments>
std::shared_ptr<T> make_shared_recycled(Arguments&&... arguments) {
  return std::allocate_shared<T>(RecyclingAllocator<T>(), std::forward<Arguments>(arguments)...);
}

}  // namespace sluice
