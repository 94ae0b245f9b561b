#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <type_traits>

#include <boost/json/memory_resource.hpp>
#include <boost/json/monotonic_resource.hpp>

#include "json/json.hpp"

namespace sluice {

/// Memory for the values of one text, all of which are freed together. It comes from the first
/// block, then from the heap. Boost.JSON's monotonic_resource does the same with more instructions,
/// which are many in all, because every name and every longer string of a message is one
/// allocation. Not thread-safe.
class JsonArena final : public json::memory_resource {
 public:
  /// `first` is aligned for every type and outlives the arena.
  explicit JsonArena(std::span<unsigned char> first) : first_(first) {}

  /// Frees all.
  void clear() {
    used_ = 0;
    rest_.reset();
  }

 private:
  void* do_allocate(std::size_t size, std::size_t align) override;
  void do_deallocate(void* /*memory*/, std::size_t /*size*/, std::size_t /*align*/) override {}
  [[nodiscard]] bool do_is_equal(const memory_resource& other) const noexcept override {
    return this == &other;
  }

  std::span<unsigned char> first_;
  std::size_t used_ = 0;                          // of `first_`
  std::optional<json::monotonic_resource> rest_;  // what `first_` has no room for
};

/// Memory of which most texts of a request need one allocation, for values that are kept. They keep
/// it as long as one of them is there. Not thread-safe.
json::storage_ptr make_arena();

}  // namespace sluice

/// Lets Boost.JSON drop values without visiting them.
template <>
struct boost::json::is_deallocate_trivial<sluice::JsonArena> : std::true_type {};
