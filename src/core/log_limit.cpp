#include "core/log_limit.hpp"

namespace sluice {

std::optional<std::int64_t> LogLimit::take(TimePoint now) {
  TimePoint::rep next = next_.load(std::memory_order_relaxed);
  // If several threads call this at once, only one advances the time.
  if (now.time_since_epoch().count() < next ||
      !next_.compare_exchange_strong(next, (now + kPeriod).time_since_epoch().count(),
                                     std::memory_order_relaxed)) {
    left_out_.fetch_add(1, std::memory_order_relaxed);
    return std::nullopt;
  }
  return left_out_.exchange(0, std::memory_order_relaxed);
}

}  // namespace sluice
