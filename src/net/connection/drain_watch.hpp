#pragma once

#include <functional>

#include "net/connection/connection_ticket.hpp"
#include "net/loop/event_loop.hpp"

namespace sluice {

/// Deadlines for the connections of a server that shuts down.
struct DrainLimits {
  TimePoint all;
  TimePoint quiet = TimePoint::max();  // those that have nothing left to send
};

/// Waits on `home` until no connection is open, then runs `done`, once. After a deadline, calls
/// `drop` to end the quiet connections, or all. Call on the thread of `home`, which must outlive
/// the wait, as must `connections`.
void watch_drain(EventLoop& home, const ConnectionCount& connections, DrainLimits limits,
                 std::function<void(bool all)> drop, Executor::Task done);

}  // namespace sluice
