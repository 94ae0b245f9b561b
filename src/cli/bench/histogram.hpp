#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace sluice {

/// Counts values from 0 to 2^42 in log-linear buckets: each power of two is divided into 128 equal
/// parts. A value read back is therefore at most 1/128 above the recorded one. 2^42 ns are 73
/// minutes; larger values count as 2^42. Always takes 37 KiB.
class Histogram {
 public:
  Histogram() : counts_(kBuckets, 0) {}

  void record(std::uint64_t value, std::uint64_t times = 1);
  void merge(const Histogram& other);

  [[nodiscard]] std::uint64_t count() const { return count_; }
  [[nodiscard]] std::uint64_t min() const { return count_ == 0 ? 0 : min_; }
  [[nodiscard]] std::uint64_t max() const { return max_; }
  [[nodiscard]] double mean() const;
  /// The smallest recorded value, at the buckets' precision, that at least `percent` % of the
  /// values do not exceed. 0 if nothing was recorded.
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
