#include "net/http/http_date.hpp"

#include <array>
#include <cstdio>

namespace sluice {
namespace {

constexpr std::array kWeekdays = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
constexpr std::array kMonths = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};

}  // namespace

void HttpDate::renew(TimePoint now) {
  using std::chrono::days;
  using std::chrono::seconds;
  const auto time = time_of_day_();
  const auto second = std::chrono::floor<seconds>(time);
  const auto day = std::chrono::floor<days>(second);
  const std::chrono::year_month_day date(day);
  const std::chrono::hh_mm_ss clock(second - day);
  // RFC 9110, section 5.6.7.
  std::array<char, 64> text{};
  const int size = std::snprintf(
      text.data(), text.size(), "Date: %s, %02u %s %04d %02d:%02d:%02d GMT\r\n",
      kWeekdays[std::chrono::weekday(day).c_encoding()], static_cast<unsigned>(date.day()),
      kMonths[static_cast<unsigned>(date.month()) - 1], static_cast<int>(date.year()),
      static_cast<int>(clock.hours().count()), static_cast<int>(clock.minutes().count()),
      static_cast<int>(clock.seconds().count()));
  line_.assign(text.data(), static_cast<std::size_t>(size));
  good_until_ = now + (second + seconds(1) - time);
}

}  // namespace sluice
