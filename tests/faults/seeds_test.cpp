#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <gtest/gtest.h>
#include <map>
#include <string>
#include <string_view>
#include <utility>
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

/// Where a fault of bytes strikes.
Place place_of(Kind kind) {
  for (const Place place : {Place::opening, Place::listening, Place::refusal}) {
    if (manner_of(kind, place) != Kind::none) return place;
  }
  return Place::answer;
}

class FaultsTest : public ::testing::Test {
 protected:
  void expect_right(const Plan& plan) {
    last = play(plan);
    for (const std::string& each : last.complaints) {
      ADD_FAILURE() << each << "\n  " << plan.describe();
      ++failures;
    }
    for (const Coverage::Cut& cut : last.coverage.cuts) ++cuts[{cut.place, cut.manner}];
    for (const auto& [place, times] : last.coverage.drips) cuts[{place, Kind::drip}] += times;
    for (const auto& [where, times] : last.coverage.splits) splits[where] += times;
  }

  /// Cuts at each byte of what the fault is about, which may be any refusal.
  void cut_everywhere(Plan plan, Place place, bool is_connecting) {
    if (place != Place::refusal) return cut_everywhere(plan, place);
    for (const Fault* const refusal : refusals_for(plan, is_connecting)) {
      plan.refusal = refusal;
      cut_everywhere(plan, place);
    }
  }
  void cut_everywhere(Plan plan, Place place) {
    for (std::size_t at = 0; failures <= kMostFailures; ++at) {
      plan.cut_at = at;
      expect_right(plan);
      const auto cut = std::ranges::find_if(last.coverage.cuts, [&](const Coverage::Cut& each) {
        return each.place == place || (place == Place::answer && each.place == Place::event_head);
      });
      if (cut != last.coverage.cuts.end() && cut->at == at) continue;
      // There are not so many bytes. The shortest are a refusal without a body.
      EXPECT_GT(at, 30U) << plan.describe();
      return;
    }
  }

  int failures = 0;
  Verdict last;
  /// How often each place was dripped and cut.
  std::map<std::pair<Place, Kind>, std::size_t> cuts;
  std::map<std::pair<std::size_t, std::size_t>, std::size_t> splits;
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

/// Every fault that cuts, at each byte that it can cut at.
TEST_F(FaultsTest, EveryPlaceIsCutAtEveryByte) {
  for (const Fault& fault : all_faults()) {
    const Place place = place_of(fault.kind);
    if (place == Place::answer && !is_cut(fault.kind)) continue;
    if (place != Place::answer && !is_cut(manner_of(fault.kind, place))) continue;
    for (const Transport transport : fault.transports) {
      // Over HTTP, some answer with JSON and others with events.
      const std::uint64_t seeds = transport == Transport::http && place == Place::answer ? 2 : 1;
      for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
        if (fault.connecting) cut_everywhere(draw_plan(seed, fault, transport, true), place, true);
        if (fault.calling) cut_everywhere(draw_plan(seed, fault, transport, false), place, false);
        if (failures > kMostFailures) return;
      }
    }
  }
  for (const Place place : kPlaces) {
    for (const Kind manner : {Kind::cut_end, Kind::cut_reset, Kind::cut_silent}) {
      EXPECT_GT((cuts[{place, manner}]), 60U) << name_of(place) << " " << fault_of(manner).name;
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
  if (count < 2000) return;
  for (const Place place : kPlaces) {
    for (const Kind manner : kManners) {
      const std::size_t times = cuts[{place, manner}];
      const std::string name =
          std::string(name_of(place)) + "_" + std::string(fault_of(manner).name);
      EXPECT_GT(times, 0U) << name;
      RecordProperty(name, std::to_string(times));
    }
  }
  for (std::size_t size = 2; size <= 4; ++size) {
    for (std::size_t at = 1; at < size; ++at) {
      const std::string name = "split_" + std::to_string(size) + "_" + std::to_string(at);
      EXPECT_GT((splits[{size, at}]), 0U) << name;
      RecordProperty(name, std::to_string(splits[{size, at}]));
    }
  }
}

}  // namespace
}  // namespace sluice::faults
