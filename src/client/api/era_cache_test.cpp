#include "client/api/era_cache.hpp"

#include <chrono>
#include <gtest/gtest.h>
#include <string>

namespace sluice {
namespace {

using namespace std::chrono_literals;

TEST(EraCacheTest, RemembersLegacyServersForAWhile) {
  EraCache cache;
  const TimePoint now{100h};
  EXPECT_FALSE(cache.is_legacy("http://a", now));
  cache.note("http://a", true, now);
  EXPECT_TRUE(cache.is_legacy("http://a", now + EraCache::kFresh - 1ns));
  EXPECT_FALSE(cache.is_legacy("http://b", now));
  EXPECT_FALSE(cache.is_legacy("http://a", now + EraCache::kFresh));
  EXPECT_FALSE(cache.is_legacy("http://a", now)) << "it is forgotten";
  cache.note("http://a", true, now);
  cache.note("http://a", false, now);
  EXPECT_FALSE(cache.is_legacy("http://a", now));
}

TEST(EraCacheTest, ForgetsTheOldestOfTooMany) {
  EraCache cache;
  TimePoint now{100h};
  for (std::size_t i = 0; i <= EraCache::kMaxServers; ++i) {
    cache.note(std::to_string(i), true, now += 1ms);
  }
  EXPECT_FALSE(cache.is_legacy("0", now));
  EXPECT_TRUE(cache.is_legacy("1", now));
}

}  // namespace
}  // namespace sluice
