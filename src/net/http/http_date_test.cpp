#include "net/http/http_date.hpp"

#include <gtest/gtest.h>

namespace sluice {
namespace {

using namespace std::chrono_literals;
using Time = std::chrono::system_clock::time_point;

TEST(HttpDate, IsWrittenAsTheStandardSays) {
  struct {
    std::chrono::seconds since_1970;
    const char* line;
  } const cases[] = {
      {784111777s, "Date: Sun, 06 Nov 1994 08:49:37 GMT\r\n"},  // RFC 9110, section 5.6.7
      {0s, "Date: Thu, 01 Jan 1970 00:00:00 GMT\r\n"},
      {1709251199s, "Date: Thu, 29 Feb 2024 23:59:59 GMT\r\n"},
      {4102444800s, "Date: Fri, 01 Jan 2100 00:00:00 GMT\r\n"},
  };
  for (const auto& c : cases) {
    HttpDate date([&c] { return Time(c.since_1970 + 999ms); });
    EXPECT_EQ(date.line({}), c.line);
  }
}

TEST(HttpDate, AsksForTheTimeOfDayOnceASecond) {
  ManualClock clock;
  int asked = 0;
  Time time(784111777s + 400ms);
  HttpDate date([&] {
    ++asked;
    return time;
  });
  const auto line_after = [&](Duration wait) {
    clock.advance(wait);
    time += std::chrono::duration_cast<Time::duration>(wait);
    return date.line(clock.now());
  };
  EXPECT_EQ(line_after(0s), "Date: Sun, 06 Nov 1994 08:49:37 GMT\r\n");
  EXPECT_EQ(line_after(599ms), "Date: Sun, 06 Nov 1994 08:49:37 GMT\r\n");
  EXPECT_EQ(asked, 1);
  EXPECT_EQ(line_after(1ms), "Date: Sun, 06 Nov 1994 08:49:38 GMT\r\n");
  EXPECT_EQ(line_after(999ms), "Date: Sun, 06 Nov 1994 08:49:38 GMT\r\n");
  EXPECT_EQ(asked, 2);
  EXPECT_EQ(line_after(1h), "Date: Sun, 06 Nov 1994 09:49:38 GMT\r\n");
  // The time of day may be set back.
  time -= 24h;
  EXPECT_EQ(line_after(1s), "Date: Sat, 05 Nov 1994 09:49:39 GMT\r\n");
}

}  // namespace
}  // namespace sluice
