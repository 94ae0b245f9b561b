#include "json/arena.hpp"

#include <array>

namespace sluice {
namespace {

/// Room for the values of most requests.
constexpr std::size_t kUsualValues = 512;

class KeptArena final : public json::memory_resource {
 private:
  void* do_allocate(std::size_t size, std::size_t align) override {
    return arena_.allocate(size, align);
  }
  void do_deallocate(void* /*memory*/, std::size_t /*size*/, std::size_t /*align*/) override {}
  [[nodiscard]] bool do_is_equal(const memory_resource& other) const noexcept override {
    return this == &other;
  }

  alignas(std::max_align_t) std::array<unsigned char, kUsualValues> first_;
  JsonArena arena_{first_};
};

}  // namespace

json::storage_ptr make_arena() {
  return json::make_shared_resource<KeptArena>();
}

void* JsonArena::do_allocate(std::size_t size, std::size_t align) {
  const std::size_t at = (used_ + align - 1) & ~(align - 1);
  if (at <= first_.size() && size <= first_.size() - at) {
    used_ = at + size;
    return first_.data() + at;
  }
  if (!rest_) rest_.emplace(2 * first_.size());
  return rest_->allocate(size, align);
}

}  // namespace sluice
