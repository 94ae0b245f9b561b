#include "cli/bench/histogram.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

namespace sluice {

std::size_t Histogram::bucket_of(std::uint64_t value) {
  if (value >= std::uint64_t{1} << kMaxBits) return kBuckets - 1;
  if (value < kParts) return value;
  const auto shift = static_cast<unsigned>(std::bit_width(value)) - kPartBits - 1;
  // `value >> shift` still has its leading bit set, so it is at least kParts.
  return shift * kParts + (value >> shift);
}

std::uint64_t Histogram::top_of(std::size_t bucket) {
  if (bucket < kParts) return bucket;
  const std::uint64_t shift = bucket / kParts - 1;
  const std::uint64_t part = bucket % kParts + kParts;
  return ((part + 1) << shift) - 1;
}

void Histogram::record(std::uint64_t value, std::uint64_t times) {
  if (times == 0) return;
  counts_[bucket_of(value)] += times;
  count_ += times;
  min_ = std::min(min_, value);
  max_ = std::max(max_, value);
  sum_ += static_cast<double>(value) * static_cast<double>(times);
}

void Histogram::merge(const Histogram& other) {
  for (std::size_t i = 0; i < kBuckets; ++i) counts_[i] += other.counts_[i];
  count_ += other.count_;
  min_ = std::min(min_, other.min_);
  max_ = std::max(max_, other.max_);
  sum_ += other.sum_;
}

double Histogram::mean() const {
  return count_ == 0 ? 0 : sum_ / static_cast<double>(count_);
}

std::uint64_t Histogram::percentile(double percent) const {
  if (count_ == 0) return 0;
  const double wanted = std::ceil(percent / 100 * static_cast<double>(count_));
  const auto rank =
      std::clamp<std::uint64_t>(static_cast<std::uint64_t>(std::max(wanted, 1.0)), 1, count_);
  std::uint64_t seen = 0;
  for (std::size_t i = 0; i < kBuckets; ++i) {
    seen += counts_[i];
    if (seen >= rank) return std::clamp(top_of(i), min_, max_);
  }
  return max_;
}

}  // namespace sluice
