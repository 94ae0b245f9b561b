#include "json/arena.hpp"

namespace sluice {

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
