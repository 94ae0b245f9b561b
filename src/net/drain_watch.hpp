#pragma once

#include <atomic>
#include <cstddef>
#include <functional>

#include "net/event_loop.hpp"

namespace sluice {

/// Waits on `home` until `connections` is 0, then runs `done`, once. What is left at `deadline` is
/// ended by `drop`. Only on the thread of `home`, which outlives the wait, as `connections` does.
void watch_drain(EventLoop& home, const std::atomic<std::size_t>& connections, TimePoint deadline,
                 std::function<void()> drop, Executor::Task done);

}  // namespace sluice
