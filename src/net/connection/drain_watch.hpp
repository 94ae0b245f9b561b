#pragma once

#include <functional>

#include "net/connection/connection_ticket.hpp"
#include "net/loop/event_loop.hpp"

namespace sluice {

/// Until when the connections of a server that shuts down may stay.
struct DrainLimits {
  TimePoint all;
  TimePoint quiet = TimePoint::max();  // those that have nothing left to be sent
};

/// Waits on `home` until no connection is open, then runs `done`, once. What stays too long is
/// ended by `drop`: the quiet ones, or all. Only on the thread of `home`, which outlives the wait,
/// as `connections` does.
void watch_drain(EventLoop& home, const ConnectionCount& connections, DrainLimits limits,
                 std::function<void(bool all)> drop, Executor::Task done);

}  // namespace sluice
