#include "core/recycling.hpp"

#include <array>
#include <new>
#include <utility>

namespace sluice {
namespace {

/// Sizes are rounded up to this, as the heap does.
constexpr std::size_t kUnit = 16;

struct Block {
  Block* next;
};

/// What this thread keeps. Without a destructor, so that it may be used while a thread ends.
struct Kept {
  std::array<Block*, kLargestRecycled / kUnit> of_size{};
  std::size_t bytes = 0;
  bool is_watched = false;  // it is freed when the thread ends
  bool is_over = false;     // it was
};
constinit thread_local Kept kept;

/// Frees what its thread keeps when that ends.
class Watch {
 public:
  Watch() { kept.is_watched = true; }
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;
  ~Watch() {
    kept.is_over = true;
    for (Block* first : kept.of_size) {
      while (first != nullptr) ::operator delete(std::exchange(first, first->next));
    }
    kept.of_size = {};
  }
};

/// `size` is not 0.
std::size_t place_of(std::size_t size) {
  return (size - 1) / kUnit;
}
std::size_t rounded(std::size_t size) {
  return (place_of(size) + 1) * kUnit;
}

#ifdef SLUICE_SANITIZED
constexpr std::size_t kLargestKept = 0;
#else
constexpr std::size_t kLargestKept = kLargestRecycled;
#endif

bool is_kept(std::size_t size) {
  return size != 0 && size <= kLargestKept;
}

}  // namespace

void* allocate_recycled(std::size_t size) {
  if (!is_kept(size)) return ::operator new(size);
  Block*& first = kept.of_size[place_of(size)];
  if (first == nullptr) return ::operator new(rounded(size));
  kept.bytes -= rounded(size);
  return std::exchange(first, first->next);
}

void recycle(void* memory, std::size_t size) noexcept {
  if (!is_kept(size) || kept.is_over || kept.bytes + rounded(size) > kMostRecycled) {
    return ::operator delete(memory);
  }
  if (!kept.is_watched) thread_local const Watch watch;
  Block*& first = kept.of_size[place_of(size)];
  first = new (memory) Block{first};
  kept.bytes += rounded(size);
}

}  // namespace sluice
