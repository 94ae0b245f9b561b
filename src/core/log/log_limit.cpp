#include "core/log/log_limit.hpp"

#include <algorithm>

namespace sluice {

std::optional<std::int64_t> LogLimit::take(TimePoint now) {
  const TimePoint::rep time = now.time_since_epoch().count();
  TimePoint::rep next = next_.load(std::memory_order_relaxed);
  do {
    if (next > time + ahead_.count()) {
      left_out_.fetch_add(1, std::memory_order_relaxed);
      return std::nullopt;
    }
  } while (!next_.compare_exchange_weak(next, std::max(next, time) + share_.count(),
                                        std::memory_order_relaxed));
  return left_out_.exchange(0, std::memory_order_relaxed);
}

}  // namespace sluice
