#include "stream/stream_store.hpp"

#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "stream/stream_error.hpp"
#include "stream/stream_test_support.hpp"

namespace sluice {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;

TEST(StreamStore, KeepsABoundedNumberOfTombstones) {
  StreamBench::Setup setup;
  setup.limits.expiry = minutes(60);
  setup.limits.tombstone = minutes(60);
  setup.max_streams = 1;
  StreamBench bench(setup);
  std::vector<std::string> ids;
  for (std::size_t i = 0; i < StreamStore::kMaxTombstones + 3; ++i) {
    const auto stream = bench.start({.principal = "alice", .expects_poller = false});
    ASSERT_NE(stream, nullptr);
    if (i < 3) ids.emplace_back(stream->id());
    stream->finish();
    stream->note_delivered();
    bench.executor.run();
  }
  // One stream still exists, so two more were buried than the limit allows.
  EXPECT_EQ(bench.streams->counters().tombstones, StreamStore::kMaxTombstones);
  EXPECT_EQ(bench.streams->find(ids[0], "alice").error().code, kStreamNotFound);
  EXPECT_EQ(bench.streams->find(ids[1], "alice").error().code, kStreamNotFound);
  EXPECT_EQ(bench.streams->find(ids[2], "alice").error().code, kStreamExpired);
}

TEST(StreamStore, TellsWhichIdsAreTaken) {
  StreamBench bench;
  StreamStore store;
  const auto stream = bench.start();
  const std::string id(stream->id());
  EXPECT_FALSE(store.contains(id));
  store.insert(stream);
  EXPECT_TRUE(store.contains(id));
  EXPECT_EQ(store.size(), 1U);
  EXPECT_EQ(store.find(id, "alice").presence, StreamStore::Presence::present);
  EXPECT_EQ(store.find(id, "bob").presence, StreamStore::Presence::absent);
  int visited = 0;
  store.for_each([&](const ChunkStream&) { ++visited; });
  EXPECT_EQ(visited, 1);
  const TimePoint until = TimePoint{} + seconds(10);
  store.leave_tombstone(*stream, until);
  EXPECT_EQ(store.size(), 0U);
  EXPECT_TRUE(store.contains(id)) << "an id is not reused while somebody may ask for it";
  EXPECT_EQ(store.find(id, "alice").presence, StreamStore::Presence::expired);
  store.sweep_tombstones(until - Duration(1));
  EXPECT_TRUE(store.contains(id));
  store.sweep_tombstones(until);
  EXPECT_FALSE(store.contains(id));
  EXPECT_EQ(store.tombstones(), 0U);
}

}  // namespace
}  // namespace sluice
