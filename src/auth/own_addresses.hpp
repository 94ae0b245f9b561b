#pragma once

#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "core/clock.hpp"

namespace sluice {

/// The IP addresses of this machine's network interfaces. Reading them takes a file descriptor. If
/// there is none, those that were read last count. Thread-safe.
class OwnAddresses {
 public:
  /// How old what counts may be.
  static constexpr Duration kPeriod = std::chrono::seconds(1);

  explicit OwnAddresses(TimePoint now) { read(now); }
  /// Whether `address`, as it is on the wire (4 or 16 bytes), is one of them.
  [[nodiscard]] bool has(std::string_view address, TimePoint now);

 private:
  void read(TimePoint now);

  std::mutex mutex_;
  std::vector<std::string> addresses_;
  TimePoint read_at_;
};

}  // namespace sluice
