#include <atomic>
#include <gtest/gtest.h>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include "core/log/log.hpp"

namespace sluice {
namespace {

class LogSinkTest : public testing::Test {
 protected:
  void TearDown() override {
    set_log_sink({});
    set_log_level(LogLevel::info);
  }

  void keep_events() {
    set_log_sink([this](const LogEvent& event) {
      lines_.push_back(std::string(to_string(event.level)) + " " + event.text());
    });
  }

  std::vector<std::string> lines_;
};

TEST_F(LogSinkTest, TakesEventsInsteadOfStandardError) {
  keep_events();
  testing::internal::CaptureStderr();
  log_warning("something happened", {{"count", 3}, {"text", "two words"}, {"yes", true}});
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  EXPECT_EQ(lines_, std::vector<std::string>(
                        {"warning something happened count=3 text=\"two words\" yes=true"}));

  set_log_sink({});
  testing::internal::CaptureStderr();
  log_warning("later");
  EXPECT_TRUE(testing::internal::GetCapturedStderr().ends_with(" warning later\n"));
  EXPECT_EQ(lines_.size(), 1U);
}

TEST_F(LogSinkTest, GetsWhatTheLevelAllows) {
  keep_events();
  log_debug("not yet");
  set_log_level(LogLevel::debug);
  log_debug("now");
  set_log_level(LogLevel::off);
  log_error("no more");
  EXPECT_EQ(lines_, std::vector<std::string>({"debug now"}));
}

TEST_F(LogSinkTest, FieldsAreAsTheyAreAndTheTextIsOneSafeLine) {
  std::string field;
  set_log_sink([&](const LogEvent& event) {
    field = std::get<std::string_view>(event.fields[0].value);
    lines_.push_back(event.text());
  });
  const std::string hostile = "a\n\x1b[2J\xFF" + std::string(5000, 'x');
  log_warning("m", {{"value", std::string_view(hostile)}, {"other", std::string_view(hostile)}});
  EXPECT_EQ(field, hostile);
  ASSERT_EQ(lines_.size(), 1U);
  EXPECT_TRUE(lines_[0].starts_with("m value=a\\n\\u001b[2J\\u00ffxxx")) << lines_[0];
  EXPECT_EQ(lines_[0].find('\n'), std::string::npos);
  EXPECT_LT(lines_[0].size(), 4096U);
}

TEST_F(LogSinkTest, TheTextOfManyFieldsEndsWithThoseThatFit) {
  const std::vector<LogField> fields(5000, LogField{"key", std::int64_t{7}});
  const std::string text =
      LogEvent{.level = LogLevel::info, .message = "m", .fields = fields}.text();
  EXPECT_TRUE(text.starts_with("m key=7 key=7 "));
  EXPECT_TRUE(text.ends_with(" key=7"));
  EXPECT_LT(text.size(), 4096U);
}

TEST_F(LogSinkTest, ASinkMayThrowAndMayLog) {
  int calls = 0;
  set_log_sink([&](const LogEvent&) {
    ++calls;
    log_error("from within");
    throw std::runtime_error("full");
  });
  testing::internal::CaptureStderr();
  log_warning("one");
  log_warning("two");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  EXPECT_EQ(calls, 2);
}

TEST_F(LogSinkTest, IsDestroyedWhenReplacedAlsoWhileThreadsLog) {
  auto owned = std::make_shared<int>(1);
  const std::weak_ptr<int> watched = owned;
  std::atomic<int> seen = 0;
  set_log_sink([owned = std::move(owned), &seen](const LogEvent&) { seen += *owned; });
  std::atomic<bool> done = false;
  std::jthread other([&] {
    while (!done) log_warning("again");
  });
  while (seen < 100) std::this_thread::yield();
  set_log_sink([&](const LogEvent&) { ++seen; });
  done = true;
  other.join();
  EXPECT_TRUE(watched.expired());
}

}  // namespace
}  // namespace sluice
