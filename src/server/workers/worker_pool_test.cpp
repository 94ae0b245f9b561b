#include "server/workers/worker_pool.hpp"

#include <gtest/gtest.h>
#include <latch>
#include <string>
#include <utility>

#include "core/allocation_failure_test_support.hpp"

namespace sluice {
namespace {

class WorkerPoolTest : public ::testing::Test {
 protected:
  /// Occupies a thread for `client` until `go_on`.
  void hold(WorkerPool& pool, const std::string& client) {
    std::latch begun(1);
    pool.run(pool.new_id(), client, [&] {
      begun.count_down();
      go_on.wait();
    });
    begun.wait();
  }
  /// Queues a job that appends `what` to `said`, or to `refused` if it is refused.
  WorkerPool::JobId say(WorkerPool& pool, const std::string& client, const std::string& what) {
    const WorkerPool::JobId id = pool.new_id();
    pool.run(id, client, [this, what] { said += what; }, [this, what] { refused += what; });
    return id;
  }
  /// Releases the only thread, and waits until it has run a job of `client`, whose turn must be
  /// last.
  void finish(WorkerPool& pool, const std::string& client) {
    std::latch done(1);
    pool.run(pool.new_id(), client, [&] { done.count_down(); });
    go_on.count_down();
    done.wait();
  }

  std::latch go_on{1};
  std::string said;  // one thread at a time writes it
  std::string refused;
};

TEST_F(WorkerPoolTest, ClientsHaveTheirTurns) {
  WorkerPool pool(1, 10);
  hold(pool, "a");
  for (const std::string client : {"a", "a", "c", "b", "b"}) say(pool, client, client);
  for (int i = 0; i < 2; ++i) say(pool, "z", "z");
  finish(pool, "z");
  EXPECT_EQ(said, "bczabza");
}

TEST_F(WorkerPoolTest, OneThreadIsLeftForOthers) {
  WorkerPool pool(3, 10);
  hold(pool, "a");
  hold(pool, "a");
  say(pool, "a", "a");
  std::latch done(1);
  pool.run(pool.new_id(), "b", [&] { done.count_down(); });
  done.wait();
  EXPECT_EQ(said, "");
  go_on.count_down();
}

TEST_F(WorkerPoolTest, KnowsWhoseThreadsAreWanted) {
  WorkerPool pool(2, 10);
  hold(pool, "a");
  EXPECT_FALSE(pool.is_wanted("a"));
  // Client a may not use the other thread as well.
  const WorkerPool::JobId own = say(pool, "a", "a");
  EXPECT_TRUE(pool.is_wanted("a"));
  EXPECT_FALSE(pool.is_wanted("b"));
  hold(pool, "b");
  EXPECT_TRUE(pool.is_wanted("a"));
  EXPECT_FALSE(pool.is_wanted("b"));
  EXPECT_TRUE(pool.drop(own, "a"));
  EXPECT_FALSE(pool.is_wanted("a"));
  say(pool, "c", "c");
  EXPECT_TRUE(pool.is_wanted("a"));
  EXPECT_TRUE(pool.is_wanted("b"));
  go_on.count_down();
}

TEST_F(WorkerPoolTest, WhoHasMostWaitingMakesRoom) {
  WorkerPool pool(1, 4);
  hold(pool, "a");
  for (const char* const what : {"1", "2", "3", "4", "5"}) say(pool, "a", what);
  EXPECT_EQ(refused, "5");
  say(pool, "b", "x");
  say(pool, "b", "y");
  EXPECT_EQ(refused, "543");
  say(pool, "b", "z");
  EXPECT_EQ(refused, "543z");
  // The newest job of a is dropped for this job of c.
  finish(pool, "c");
}

TEST_F(WorkerPoolTest, AJobForAnIdleThreadDoesNotWait) {
  WorkerPool pool(3, 0);
  // Of the third thread, client a has no share.
  hold(pool, "a");
  hold(pool, "a");
  say(pool, "a", "1");
  EXPECT_EQ(refused, "1");
  hold(pool, "b");
  say(pool, "b", "2");
  say(pool, "c", "3");
  EXPECT_EQ(refused, "123");
  EXPECT_EQ(said, "");
  go_on.count_down();
}

TEST_F(WorkerPoolTest, AJobThatThereIsNoMemoryForLeavesNothing) {
  WorkerPool pool(1, 10);
  hold(pool, "a");
  fail_each_allocation([&] {
    pool.run(pool.new_id(), "a client with a name that needs memory", [this] { said += 'x'; });
  });
  finish(pool, "z");
  EXPECT_EQ(said, "x");
}

TEST_F(WorkerPoolTest, WhatIsDroppedLeavesItsPlace) {
  WorkerPool pool(1, 1);
  hold(pool, "a");
  const WorkerPool::JobId first = say(pool, "a", "1");
  EXPECT_TRUE(pool.drop(first, "a"));
  EXPECT_FALSE(pool.drop(first, "a"));
  const WorkerPool::JobId second = say(pool, "a", "2");
  EXPECT_EQ(refused, "");
  EXPECT_TRUE(pool.drop(second, "a"));
  finish(pool, "a");
  EXPECT_EQ(said, "");
}

}  // namespace
}  // namespace sluice
