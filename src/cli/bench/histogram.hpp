#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace sluice {

/// Counts values in log-linear buckets: each power of two is cut into 128 equal parts, so that a
/// value read back is at most 1/128 above the one recorded, from 0 to 2^42 (73 minutes in
/// nanoseconds; larger values count as that). A fixed 37 KiB.
class Histogram {
 public:
  Histogram() : counts_(kBuckets, 0) {}

  void record(std::uint64_t value, std::uint64_t times = 1);
  void merge(const Histogram& other);

  [[nodiscard]] std::uint64_t count() const { return count_; }
  [[nodiscard]] std::uint64_t min() const { return count_ == 0 ? 0 : min_; }
  [[nodiscard]] std::uint64_t max() const { return max_; }
  [[nodiscard]] double mean() const;
  /// The smallest recorded value (as far as the buckets tell) that at least `percent` % of the
  /// values do not exceed; 0 if there are none.
  [[nodiscard]] std::uint64_t percentile(double percent) const;

 private:
  static constexpr unsigned kPartBits = 7;
  static constexpr std::uint64_t kParts = 1U << kPartBits;
  static constexpr unsigned kMaxBits = 42;
  static constexpr std::size_t kBuckets = (kMaxBits - kPartBits + 1) * kParts + 1;

  static std::size_t bucket_of(std::uint64_t value);
  static std::uint64_t top_of(std::size_t bucket);

  std::vector<std::uint64_t> counts_;
  std::uint64_t count_ = 0;
  std::uint64_t min_ = UINT64_MAX;
  std::uint64_t max_ = 0;
  double sum_ = 0;
};

}  // namespace sluice
