#include "net/drain_watch.hpp"

#include <chrono>
#include <memory>
#include <utility>

namespace sluice {
namespace {

/// How often it looks.
constexpr Duration kLook = std::chrono::milliseconds(10);

struct Wait {
  EventLoop* home;
  const std::atomic<std::size_t>* connections;
  TimePoint deadline;
  std::function<void()> drop;
  Executor::Task done;
};

void look(const std::shared_ptr<Wait>& wait) {
  if (wait->connections->load(std::memory_order_relaxed) == 0) {
    if (wait->done) wait->done();
    return;
  }
  if (wait->home->clock().now() >= wait->deadline) {
    wait->drop();
    wait->deadline = TimePoint::max();
  }
  wait->home->schedule_at(wait->home->clock().now() + kLook, [wait] { look(wait); });
}

}  // namespace

void watch_drain(EventLoop& home, const std::atomic<std::size_t>& connections, TimePoint deadline,
                 std::function<void()> drop, Executor::Task done) {
  look(std::make_shared<Wait>(&home, &connections, deadline, std::move(drop), std::move(done)));
}

}  // namespace sluice
