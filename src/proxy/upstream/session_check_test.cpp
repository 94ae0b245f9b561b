#include "proxy/upstream/session_check.hpp"

#include <chrono>
#include <gtest/gtest.h>
#include <optional>

#include "core/manual_executor.hpp"

namespace sluice {
namespace {

using namespace std::chrono_literals;

class SessionCheckTest : public ::testing::Test {
 protected:
  /// Whether checks are begun at least every 40 seconds, in 10 minutes.
  int checks_in_ten_minutes() {
    const int before = checks;
    for (int i = 0; i < 60; ++i) loop.advance(10s);
    return checks - before;
  }

  ManualExecutor loop;
  int checks = 0;
  bool is_over = false;       // the session, at each check
  bool is_forgetful = false;  // the server
  std::optional<SessionCheck> check{std::in_place, loop, [this] {
                                      ++checks;
                                      if (is_forgetful) check->on_renewed();
                                      check->on_answered(is_over);
                                    }};
};

TEST_F(SessionCheckTest, ChecksAsLongAsItIsWanted) {
  EXPECT_EQ(checks_in_ten_minutes(), 0);
  check->want(true);
  EXPECT_GE(checks_in_ten_minutes(), 14);
  check->want(false);
  EXPECT_EQ(checks_in_ten_minutes(), 0);
}

TEST_F(SessionCheckTest, WhoeverTogglesIsCheckedToo) {
  for (int i = 0; i < 60; ++i) {
    check->want(true);
    check->want(false);
    check->want(true);
    loop.advance(10s);
  }
  EXPECT_GE(checks, 14);
}

TEST_F(SessionCheckTest, AServerThatForgetsEachSessionIsCheckedMoreRarely) {
  is_over = is_forgetful = true;
  check->want(true);
  EXPECT_LE(checks_in_ten_minutes(), 6);
  is_over = false;
  checks_in_ten_minutes();
  EXPECT_GE(checks_in_ten_minutes(), 14);
}

TEST_F(SessionCheckTest, NothingIsLeftOfIt) {
  check->want(true);
  check->end();
  EXPECT_FALSE(loop.next_timer()) << "the loop may go first";
}

}  // namespace
}  // namespace sluice
