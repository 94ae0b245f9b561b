#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace sluice::bench {

/// Counts durations in nanoseconds, in buckets that are at most 1.6 % wide (64 per power of two).
/// Negative values count as 0.
class Histogram {
 public:
  void add(std::int64_t value) {
    const auto clamped = static_cast<std::uint64_t>(std::max<std::int64_t>(value, 0));
    ++buckets_[bucket_of(clamped)];
    ++total_;
    max_ = std::max(max_, clamped);
  }

  [[nodiscard]] std::uint64_t total() const { return total_; }
  [[nodiscard]] std::uint64_t max() const { return max_; }

  /// The smallest value that the fraction `share` (0 to 1) of all values does not exceed; 0 if
  /// there are none.
  [[nodiscard]] std::uint64_t quantile(double share) const {
    const auto rank = static_cast<std::uint64_t>(share * static_cast<double>(total_));
    std::uint64_t seen = 0;
    for (std::size_t i = 0; i < buckets_.size(); ++i) {
      seen += buckets_[i];
      if (buckets_[i] != 0 && seen > rank) return std::min(upper_bound_of(i), max_);
    }
    return max_;
  }

 private:
  static constexpr unsigned kSubBits = 6;
  static constexpr std::uint64_t kSub = 1U << kSubBits;

  static std::size_t bucket_of(std::uint64_t value) {
    if (value < kSub) return value;
    const unsigned shift = static_cast<unsigned>(std::bit_width(value)) - kSubBits - 1;
    return (shift + 1) * kSub + ((value >> shift) - kSub);
  }
  static std::uint64_t upper_bound_of(std::size_t bucket) {
    if (bucket < kSub) return bucket;
    const std::size_t shift = bucket / kSub - 1;
    return ((bucket % kSub + kSub + 1) << shift) - 1;
  }

  std::array<std::uint64_t, (64 - kSubBits + 1) * kSub> buckets_{};
  std::uint64_t total_ = 0;
  std::uint64_t max_ = 0;
};

}  // namespace sluice::bench
