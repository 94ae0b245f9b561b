#include "server/notifications/change_notifier.hpp"

#include <chrono>
#include <functional>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "server/dispatch/server_test_support.hpp"
#include "stream/stream_test_support.hpp"

namespace sluice {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;

/// Wants the tools, and the resources a and b.
struct RecordingListener final : ChangeListener {
  [[nodiscard]] bool wants(const Change& change) const override {
    return change.kind == Change::Kind::tools || change.subject == "a" || change.subject == "b";
  }
  void tell(const Change& change) override {
    heard.push_back(change.kind == Change::Kind::tools ? "tools" : change.subject);
    if (when_told) when_told();
  }
  void close() override { heard.emplace_back("end"); }

  std::vector<std::string> heard;
  std::function<void()> when_told;
};

class ChangesTest : public ::testing::Test {
 protected:
  void publish(const std::string& resource) {
    bench.changes->publish({Change::Kind::resource, resource});
  }
  std::shared_ptr<RecordingListener> listen() {
    auto listener = std::make_shared<RecordingListener>();
    bench.changes->add(bench.executors[0], listener);
    return listener;
  }

  ServerBench bench;
};

TEST_F(ChangesTest, ABurstIsToldOnceAndWaitsAsOneTask) {
  const auto one = listen();
  const auto other = listen();
  for (int i = 0; i < 1000; ++i) {
    bench.changes->publish({Change::Kind::tools});
    publish("a");
    publish("of no interest " + std::to_string(i));
  }
  EXPECT_LE(bench.executors[0].run(), 2U) << "a task for each change that is told";
  EXPECT_THAT(one->heard, ElementsAre("tools", "a"));
  EXPECT_EQ(other->heard, one->heard);
}

TEST_F(ChangesTest, ManyListenersAreToldInSeveralTasks) {
  std::vector<std::shared_ptr<RecordingListener>> all(3000);
  for (auto& each : all) each = listen();
  publish("a");
  publish("b");
  EXPECT_GE(bench.executors[0].run(), 5U);
  for (const auto& each : all) ASSERT_THAT(each->heard, ElementsAre("a", "b"));
}

TEST_F(ChangesTest, AListenerThatThrowsDeprivesNoOther) {
  const auto one = listen();
  const auto other = listen();
  one->when_told = [] { throw std::bad_alloc(); };
  publish("a");
  EXPECT_THROW(bench.executors[0].run(), std::bad_alloc);
  bench.executors[0].run();
  EXPECT_THAT(other->heard, ElementsAre("a"));
}

TEST_F(ChangesTest, OfVeryManyChangesThoseAreKeptThatSomebodyWants) {
  const auto listener = listen();
  for (int i = 0; i < 100'000; ++i) publish("of no interest " + std::to_string(i));
  publish("a");
  EXPECT_LE(bench.executors[0].run(), 3U);
  EXPECT_THAT(listener->heard, ElementsAre("a"));
}

TEST_F(ChangesTest, AChangeWhileItIsToldIsToldAgain) {
  const auto listener = listen();
  listener->when_told = [&] {
    if (listener->heard.size() == 1) publish("a");
  };
  publish("a");
  bench.run_all();
  EXPECT_THAT(listener->heard, ElementsAre("a", "a"));
}

TEST_F(ChangesTest, WhatChangesAllTheTimeKeepsNothingElseBack) {
  const auto listener = listen();
  listener->when_told = [&] {
    if (listener->heard.size() < 10) bench.changes->publish({Change::Kind::tools});
  };
  bench.changes->publish({Change::Kind::tools});
  publish("a");
  publish("b");
  bench.run_all();
  ASSERT_GT(listener->heard.size(), 4U);
  listener->heard.resize(4);
  EXPECT_THAT(listener->heard, Contains("a"));
  EXPECT_THAT(listener->heard, Contains("b"));
}

TEST_F(ChangesTest, WhatChangedBeforeTheEndIsToldBeforeIt) {
  const auto listener = listen();
  publish("a");
  publish("b");
  bench.changes->close();
  bench.run_all();
  EXPECT_THAT(listener->heard, ElementsAre("a", "b", "end"));
}

TEST_F(ChangesTest, ABurstIsOneMessageOnTheStandaloneStreamOfASession) {
  const auto session =
      bench.sessions.create("alice", newest_revision(Era::legacy), ClientDescription()).value();
  const auto stream =
      bench.managers[0]->start_private(session->stream_principal(), {}, session->principal());
  bench.changes->add(session, stream);
  for (int i = 0; i < 10; ++i) bench.changes->publish({Change::Kind::tools});
  bench.run_all();
  EXPECT_EQ(stream->next(), 1U);
  session->end();
}

/// The standalone stream of a session, with room for four messages.
class StandaloneStreamTest : public ::testing::Test {
 protected:
  StandaloneStreamTest() { changes.add(session, stream); }
  void say(const char* state_of, const char* text) {
    changes.send(session, state_of, std::make_shared<const std::string>(text));
  }

  StreamBench bench{{.limits = {.max_chunks = 4}}};
  ChangeNotifier changes{{{&bench.executor, bench.streams.get()}}};
  std::shared_ptr<Session> session =
      std::make_shared<Session>("id", "alice", newest_revision(Era::legacy), ClientDescription());
  std::shared_ptr<ChunkStream> stream =
      bench.streams->start_private(session->stream_principal(), "", "alice");
};

TEST_F(StandaloneStreamTest, WhatDoesNotFitComesWhenThereIsRoom) {
  for (int i = 0; i < 6; ++i) say("", "1");
  const std::size_t before = bench.policy.budget.used();
  for (const char* text : {"2", "3"}) {
    say("task", text);
    changes.publish({Change::Kind::tools});
    bench.executor.run();
  }
  EXPECT_GT(bench.policy.budget.used(), before);
  ReadingCursor reader(stream, 0);
  reader.read_all();
  bench.executor.run();
  std::string expected = "1111" + message_of({Change::Kind::tools}) + "3";
  EXPECT_EQ(reader.text, expected);
  say("task", "4");
  say("", "5");
  bench.executor.run();
  EXPECT_EQ(reader.text, expected + "45");
  EXPECT_EQ(stream->producer(), nullptr);
}

TEST_F(StandaloneStreamTest, WhatNobodyWantsAnyMoreIsNotKept) {
  for (int i = 0; i < 6; ++i) say("", "1");
  bench.executor.run();
  const std::size_t before = bench.policy.budget.used();
  for (int i = 0; i < 1000; ++i) {
    const std::string uri = "test://" + std::to_string(i);
    ASSERT_TRUE(session->subscribe(uri, stream->memory_share()));
    changes.publish({Change::Kind::resource, uri});
    bench.executor.run();
    session->unsubscribe(uri);
  }
  EXPECT_EQ(bench.policy.budget.used(), before);
  ReadingCursor reader(stream, 0);
  reader.read_all();
  bench.executor.run();
  EXPECT_EQ(reader.text, "1111");
  EXPECT_EQ(stream->producer(), nullptr);
}

TEST_F(StandaloneStreamTest, OfEachStateTheLastMessageIsChargedOrLeftOut) {
  for (int i = 0; i < 6; ++i) say("", "1");
  bench.executor.run();
  const std::size_t before = bench.policy.budget.used();
  const auto used = [&] {
    bench.executor.run();
    return bench.policy.budget.used() - before;
  };
  const std::string longer(10'000, 'x');
  say("task", "short");
  EXPECT_LT(used(), 1000U);
  say("task", longer.c_str());
  EXPECT_GT(used(), longer.size());
  say("task", "short");
  EXPECT_LT(used(), 1000U);
  say("other task", "2");
  std::size_t taken = 0;
  while (stream->memory_share()->try_acquire(1000)) taken += 1000;
  say("task", longer.c_str());
  bench.executor.run();
  stream->memory_share()->release(taken);
  ReadingCursor reader(stream, 0);
  reader.read_all();
  bench.executor.advance(std::chrono::seconds(1));
  EXPECT_EQ(reader.text, "11112");
}

TEST_F(StandaloneStreamTest, WhatFindsNoMemoryComesWhenThereIsSome) {
  const std::string uri = "test://" + std::string(7000, 'x');
  ASSERT_TRUE(session->subscribe(uri, stream->memory_share()));
  ReadingCursor reader(stream, 0);
  std::size_t taken = 0;
  for (std::size_t step = 1U << 20U; step > 0; step /= 2) {
    while (stream->memory_share()->try_acquire(step)) taken += step;
  }
  changes.publish({Change::Kind::resource, uri});
  bench.executor.advance(std::chrono::seconds(1));
  EXPECT_EQ(reader.text, "");
  stream->memory_share()->release(taken);
  bench.executor.advance(std::chrono::seconds(1));
  EXPECT_EQ(reader.text, message_of({Change::Kind::resource, uri}));
  EXPECT_EQ(stream->producer(), nullptr);
}

TEST_F(StandaloneStreamTest, WhatDoesNotFitGoesWithTheSessionOrTheStream) {
  for (const bool shutdown : {false, true}) {
    const std::weak_ptr<StandaloneStream> writer = session->standalone_writer();
    for (int i = 0; i < 6; ++i) say("task", "1");
    bench.executor.run();
    if (shutdown) {
      changes.close();
    } else {
      session->end();
    }
    bench.executor.run();
    EXPECT_EQ(stream->producer(), nullptr);
    session =
        std::make_shared<Session>("id", "alice", newest_revision(Era::legacy), ClientDescription());
    EXPECT_TRUE(writer.expired());
    stream = bench.streams->start_private(session->stream_principal(), "", "alice");
    changes.add(session, stream);
  }
}

}  // namespace
}  // namespace sluice
