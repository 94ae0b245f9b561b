#include "net/connection/connection_server.hpp"

#include <gtest/gtest.h>
#include <memory>

#include "net/loop/event_loop.hpp"

namespace sluice {
namespace {

TEST(ConnectionServer, WhatIsNobodysYetHasOneShareOnAllLoops) {
  EventLoop loop;
  MemoryBudget budget(1'000'000);
  ConnectionServer server(loop);
  for (int i = 0; i < 3; ++i) {
    server.add_worker(std::make_unique<ConnectionWorker>(
        loop, &loop, ConnectionWorker::Options{.memory = &budget}));
  }
  const auto nobodys = [&](std::size_t worker) { return server.worker(worker).nobodys_memory; };
  ASSERT_TRUE(nobodys(0)->try_acquire(500'000));
  EXPECT_FALSE(nobodys(1)->try_acquire(1));
  EXPECT_FALSE(nobodys(2)->try_acquire(1));
  // A client may take half of the rest.
  MemoryShare client(budget);
  EXPECT_TRUE(client.try_acquire(250'000));
  client.release(250'000);
  nobodys(2)->release(500'000);
}

}  // namespace
}  // namespace sluice
