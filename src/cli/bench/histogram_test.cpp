#include "cli/bench/histogram.hpp"

#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>
#include <random>
#include <vector>

namespace sluice {
namespace {

TEST(Histogram, IsEmptyAtFirst) {
  const Histogram histogram;
  EXPECT_EQ(histogram.count(), 0U);
  EXPECT_EQ(histogram.percentile(99), 0U);
  EXPECT_EQ(histogram.min(), 0U);
  EXPECT_EQ(histogram.max(), 0U);
  EXPECT_EQ(histogram.mean(), 0);
}

TEST(Histogram, SmallValuesAreExact) {
  Histogram histogram;
  for (std::uint64_t value = 0; value < 256; ++value) histogram.record(value);
  EXPECT_EQ(histogram.percentile(0), 0U);
  EXPECT_EQ(histogram.percentile(50), 127U);
  EXPECT_EQ(histogram.percentile(100), 255U);
  EXPECT_EQ(histogram.mean(), 127.5);
}

TEST(Histogram, EveryValueReadsBackWithinItsPart) {
  for (std::uint64_t value = 1; value < std::uint64_t{1} << 42U; value = value * 9 / 8 + 1) {
    for (const std::uint64_t near : {value - 1, value, value + 1}) {
      Histogram histogram;
      histogram.record(0);
      histogram.record(near);
      histogram.record(UINT64_MAX);
      const std::uint64_t read = histogram.percentile(66);
      EXPECT_GE(read, near);
      EXPECT_LE(read, near + near / 128);
    }
  }
}

TEST(Histogram, PercentilesFollowTheSortedValues) {
  std::mt19937_64 random(1);
  std::lognormal_distribution<double> latency(12, 2);
  std::vector<std::uint64_t> values;
  Histogram histogram;
  for (int i = 0; i < 10'000; ++i) {
    values.push_back(static_cast<std::uint64_t>(latency(random)));
    histogram.record(values.back());
  }
  std::ranges::sort(values);
  for (const double percent : {1.0, 50.0, 90.0, 99.0, 99.9, 99.99}) {
    const auto rank = static_cast<std::size_t>(std::ceil(percent / 100 * 10'000)) - 1;
    EXPECT_GE(histogram.percentile(percent), values[rank]) << percent;
    EXPECT_LE(histogram.percentile(percent), values[rank] + values[rank] / 128) << percent;
  }
  EXPECT_EQ(histogram.min(), values.front());
  EXPECT_EQ(histogram.max(), values.back());
}

TEST(Histogram, MergingIsRecordingTogether) {
  Histogram left;
  Histogram right;
  Histogram both;
  left.record(5, 3);
  right.record(1'000'000);
  both.record(5, 3);
  both.record(1'000'000);
  left.merge(right);
  left.merge(Histogram());
  EXPECT_EQ(left.count(), 4U);
  EXPECT_EQ(left.min(), both.min());
  EXPECT_EQ(left.max(), both.max());
  EXPECT_EQ(left.mean(), both.mean());
  EXPECT_EQ(left.percentile(75), 5U);
  EXPECT_EQ(left.percentile(99), both.percentile(99));
}

TEST(Histogram, ValuesBeyondTheRangeCountAsTheLargest) {
  Histogram histogram;
  histogram.record(UINT64_MAX);
  EXPECT_EQ(histogram.count(), 1U);
  EXPECT_EQ(histogram.max(), UINT64_MAX);
}

}  // namespace
}  // namespace sluice
