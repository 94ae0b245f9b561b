#include "net/connection/drain_watch.hpp"

#include <algorithm>
#include <chrono>
#include <memory>
#include <utility>

namespace sluice {
namespace {

/// How often the connections are checked.
constexpr Duration kLook = std::chrono::milliseconds(10);

struct Wait {
  EventLoop* home;
  const ConnectionCount* connections;
  DrainLimits limits;
  std::function<void(bool all)> drop;
  Executor::Task done;
};

void look(const std::shared_ptr<Wait>& wait) {
  if (wait->connections->open.load() + wait->connections->refused.load() == 0) {
    if (wait->done) wait->done();
    return;
  }
  const TimePoint now = wait->home->clock().now();
  // Scheduled first, because dropping may fail for lack of memory.
  wait->home->schedule_at(now + kLook, [wait] { look(wait); });
  if (now >= std::min(wait->limits.quiet, wait->limits.all)) wait->drop(now >= wait->limits.all);
}

}  // namespace

void watch_drain(EventLoop& home, const ConnectionCount& connections, DrainLimits limits,
                 std::function<void(bool all)> drop, Executor::Task done) {
  look(std::make_shared<Wait>(&home, &connections, limits, std::move(drop), std::move(done)));
}

}  // namespace sluice
