#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <gtest/gtest.h>
#include <string>
#include <string_view>
#include <vector>

#include "core/log/log.hpp"
#include "plan.hpp"
#include "run.hpp"

namespace sluice::faults {
namespace {

/// So many failures say enough.
constexpr int kMostFailures = 20;

/// A number in the environment.
std::uint64_t number_in(const char* name, std::uint64_t otherwise) {
  const char* const text = std::getenv(name);
  if (text == nullptr) return otherwise;
  std::uint64_t number = otherwise;
  const std::string_view view(text);
  std::from_chars(view.data(), view.data() + view.size(), number);
  return number;
}

class FaultsTest : public ::testing::Test {
 protected:
  void expect_right(const Plan& plan) {
    for (const std::string& each : play(plan).complaints) {
      ADD_FAILURE() << each << "\n  " << plan.describe();
      ++failures;
    }
  }

  int failures = 0;
};

/// Every fault, over every transport and in every request that it can strike.
TEST_F(FaultsTest, EveryFaultIsNamedOrDoesNoHarm) {
  for (const Fault& fault : all_faults()) {
    for (const Transport transport : fault.transports) {
      for (std::uint64_t seed = 1; seed <= 6; ++seed) {
        if (fault.connecting) expect_right(draw_plan(seed, fault, transport, true));
        if (fault.calling) expect_right(draw_plan(seed, fault, transport, false));
        if (failures > kMostFailures) return;
      }
    }
  }
}

TEST_F(FaultsTest, ASeedTakesTheSameCourseAgain) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    const Plan plan = draw_plan(seed);
    EXPECT_EQ(play(plan).course, play(plan).course) << plan.describe();
  }
}

TEST_F(FaultsTest, AnAnswerOf64MiBAndAByteIsTooLong) {
  for (const Transport transport : {Transport::http, Transport::lines}) {
    Plan plan = draw_plan(1, fault_of(Kind::too_long), transport, false);
    plan.max_message = std::size_t{64} << 20U;
    expect_right(plan);
  }
}

/// SLUICE_FAULT_SEEDS: how many, from SLUICE_FAULT_FIRST on.
TEST_F(FaultsTest, EverySeedEndsAsItMust) {
  const std::uint64_t first = number_in("SLUICE_FAULT_FIRST", 1);
  const std::uint64_t count = number_in("SLUICE_FAULT_SEEDS", 2000);
  for (std::uint64_t seed = first; seed < first + count; ++seed) {
    expect_right(draw_plan(seed));
    if (failures > kMostFailures) return;
  }
}

}  // namespace
}  // namespace sluice::faults
