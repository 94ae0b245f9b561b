#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "core/clock.hpp"

namespace sluice {

/// The Date field of responses (RFC 9110, section 6.6.1), renewed when its second is over. Belongs
/// to its loop.
class HttpDate {
 public:
  using TimeOfDay = std::function<std::chrono::system_clock::time_point()>;
  explicit HttpDate(TimeOfDay time_of_day) : time_of_day_(std::move(time_of_day)) {}

  /// The field with its CRLF. It is renewed if it is out of date at `now`; only then is the time of
  /// day read. The view is valid until the next call.
  std::string_view line(TimePoint now) {
    if (now >= good_until_) renew(now);
    return line_;
  }

 private:
  void renew(TimePoint now);

  const TimeOfDay time_of_day_;
  std::string line_;
  TimePoint good_until_ = TimePoint::min();
};

}  // namespace sluice
