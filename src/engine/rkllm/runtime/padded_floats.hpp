#pragma once

#include <cstddef>
#include <span>

namespace sluice::rkllm {

/// Numbers for a runtime, which alone knows how many each token has, and reads as many. Where it
/// was given less, it finds zeros, and not what else is in memory.
class PaddedFloats {
 public:
  /// More than the embeddings of any model have.
  static constexpr std::size_t kMostOfToken = 16384;

  PaddedFloats() = default;
  ~PaddedFloats();
  PaddedFloats(const PaddedFloats&) = delete;
  PaddedFloats& operator=(const PaddedFloats&) = delete;

  /// Copies the numbers of so many tokens. Zeros take no memory. Throws std::bad_alloc.
  void assign(std::span<const float> numbers, std::size_t tokens);
  /// Null before assign().
  [[nodiscard]] float* data() { return data_; }

 private:
  void release();

  float* data_ = nullptr;
  std::size_t bytes_ = 0;
};

}  // namespace sluice::rkllm
