#include "engine/rkllm/runtime/padded_floats.hpp"

#include <algorithm>
#include <cstring>
#include <new>
#include <sys/mman.h>
#include <utility>

namespace sluice::rkllm {

PaddedFloats::~PaddedFloats() {
  release();
}

void PaddedFloats::release() {
  if (data_ != nullptr) ::munmap(std::exchange(data_, nullptr), bytes_);
}

void PaddedFloats::assign(std::span<const float> numbers, std::size_t tokens) {
  release();
  bytes_ = std::max(numbers.size(), tokens * kMostOfToken) * sizeof(float);
  if (bytes_ == 0) return;
  void* const memory = ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  data_ = static_cast<float*>(memory);
  if (!numbers.empty()) std::memcpy(data_, numbers.data(), numbers.size_bytes());
}

}  // namespace sluice::rkllm
