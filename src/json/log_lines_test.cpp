#include <algorithm>
#include <array>
#include <climits>
#include <csignal>
#include <cstddef>
#include <gtest/gtest.h>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <sys/resource.h>
#include <unistd.h>

#include "core/log/log.hpp"
#include "core/text/utf8.hpp"
#include "json/json.hpp"

namespace sluice {
namespace {

class LogTest : public testing::Test {
 protected:
  void TearDown() override { set_logging(LogLevel::info, LogFormat::text, false); }

  template <class Write>
  static std::string logged(Write write) {
    testing::internal::CaptureStderr();
    write();
    return testing::internal::GetCapturedStderr();
  }
};

constexpr std::string_view kHostile[] = {
    "x\n2026-01-01T00:00:00.000Z error forged",
    "x\r\nforged",
    "\x1b[2J\x1b[31m",
    "\x7F",
    "\xC2\x9B"
    "31m",                             // CSI as a single C1 control
    "\xC2\x85",                        // NEL
    "\xE2\x80\xA8\xE2\x80\xA9",        // line and paragraph separator
    "\u202Eforged\u2066\u200F\u061C",  // direction of writing
    "\xFF\xFE",
    "\x9B"
    "31m",
    "\xE2\x80",
    "\xC2",
};

TEST_F(LogTest, AHostileValueMakesNoSecondLineAndNoControl) {
  for (const LogFormat format : {LogFormat::text, LogFormat::json}) {
    set_logging(LogLevel::info, format, false);
    for (const std::string_view value : kHostile) {
      const std::string line = logged([&] { log_info(value, {{"value", value}}); });
      EXPECT_EQ(std::ranges::count(line, '\n'), 1) << line;
      EXPECT_TRUE(line.ends_with('\n'));
      EXPECT_TRUE(is_valid_utf8(line));
      EXPECT_EQ(line.find("\xC2\x9B"), std::string::npos);
      EXPECT_EQ(line.find("\xC2\x85"), std::string::npos);
      for (const char* const character : {"\u2028", "\u202E", "\u2066", "\u200F", "\u061C"}) {
        EXPECT_EQ(line.find(character), std::string::npos);
      }
      for (const char c : line.substr(0, line.size() - 1)) {
        EXPECT_FALSE(static_cast<unsigned char>(c) < 0x20 || c == 0x7F) << line;
      }
      if (format == LogFormat::json) EXPECT_TRUE(parse_json(line)) << line;
    }
  }
}

TEST_F(LogTest, AHostileValueMakesNoSecondField) {
  set_logging(LogLevel::info, LogFormat::text, false);
  const std::string line =
      logged([] { log_info("m", {{"agent", "a\" admin=true"}, {"id", "plain-1"}, {"none", ""}}); });
  EXPECT_NE(line.find(R"( agent="a\" admin=true" id=plain-1 none="")"), std::string::npos) << line;
}

TEST_F(LogTest, KeepsOrdinaryTextAsItIs) {
  set_logging(LogLevel::info, LogFormat::text, false);
  const std::string line = logged([] { log_info("caf\xC3\xA9 \xF0\x9F\x98\x80 \xC2\xA0", {}); });
  EXPECT_NE(line.find(" info caf\xC3\xA9 \xF0\x9F\x98\x80 \xC2\xA0\n"), std::string::npos) << line;
}

TEST_F(LogTest, CutsWhatIsLongBetweenCharacters) {
  for (const LogFormat format : {LogFormat::text, LogFormat::json}) {
    set_logging(LogLevel::info, format, false);
    for (std::size_t offset = 0; offset < 4; ++offset) {
      std::string value(offset, 'a');
      while (value.size() < 100000) value.append("\xF0\x9F\x98\x80");
      const std::string line = logged([&] { log_info("m", {{"value", value}}); });
      EXPECT_LT(line.size(), 1200U);
      EXPECT_TRUE(is_valid_utf8(line));
      EXPECT_NE(line.find("..."), std::string::npos);
    }
  }
  const std::string exact(1024, 'a');
  EXPECT_NE(logged([&] { log_info("m", {{"value", exact}}); }).find("\"" + exact + "\""),
            std::string::npos);
}

TEST_F(LogTest, ALineFitsIntoWhatAPipeTakesAtOnce) {
  const std::string controls(2000, '\x01');
  const std::string_view value = controls;
  for (const LogFormat format : {LogFormat::text, LogFormat::json}) {
    set_logging(LogLevel::info, format, false);
    const std::string line = logged([&] {
      log_info(value, {{"a", value}, {"b", value}, {"c", value}, {"d", value}, {"e", value}});
    });
    EXPECT_LE(line.size(), std::size_t{PIPE_BUF});
    EXPECT_TRUE(line.ends_with('\n'));
    if (format == LogFormat::json) EXPECT_TRUE(parse_json(line)) << line;
  }
}

TEST_F(LogTest, DoesNotWaitForWhoDoesNotReadAndSaysWhatWasLeftOut) {
  set_logging(LogLevel::info, LogFormat::text, false);
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe(ends.data()), 0);
  const int before = ::dup(STDERR_FILENO);
  ::dup2(ends[1], STDERR_FILENO);
  ::close(ends[1]);
  constexpr int kLines = 5000;
  for (int i = 0; i < kLines; ++i) log_info("a line that is long enough to fill the pipe in time");
  const auto read_all = [&] {
    std::string text(1 << 20, '\0');
    text.resize(static_cast<std::size_t>(::read(ends[0], text.data(), text.size())));
    return text;
  };
  const std::string first = read_all();
  log_info("later");
  const std::string second = read_all();
  ::dup2(before, STDERR_FILENO);
  ::close(before);
  ::close(ends[0]);
  const auto written = std::ranges::count(first, '\n');
  EXPECT_GT(written, 500);
  EXPECT_LT(written, kLines);
  EXPECT_NE(second.find("log lines were left out lines=" + std::to_string(kLines - written)),
            std::string::npos)
      << second;
  EXPECT_TRUE(second.ends_with(" info later\n"));
}

TEST_F(LogTest, ALineThatADiskTakesInPartIsLeftOutAndTheNextOneStandsAlone) {
  set_logging(LogLevel::info, LogFormat::text, false);
  rlimit whole{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &whole), 0);
  auto* const handler = std::signal(SIGXFSZ, SIG_IGN);
  const std::string text = logged([&] {
    log_info("first");
    const rlimit full{.rlim_cur = 60, .rlim_max = whole.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &full);
    log_info("torn");
    log_info("lost");
    ::setrlimit(RLIMIT_FSIZE, &whole);
    log_info("last");
  });
  std::signal(SIGXFSZ, handler);
  EXPECT_EQ(std::ranges::count(text, '\n'), 4) << text;
  EXPECT_NE(text.find("Z warning log lines were left out lines=2\n"), std::string::npos) << text;
  EXPECT_TRUE(text.ends_with(" info last\n")) << text;
}

TEST_F(LogTest, WritesEveryTypeAsJson) {
  set_logging(LogLevel::debug, LogFormat::json, false);
  const std::string line = logged([] {
    log_warning("message", {{"text", "a b"},
                            {"integer", std::numeric_limits<std::int64_t>::min()},
                            {"number", 0.5},
                            {"none", std::numeric_limits<double>::quiet_NaN()},
                            {"flag", true}});
  });
  const Result<json::value> parsed = parse_json(line);
  ASSERT_TRUE(parsed) << line;
  const json::object& object = parsed->as_object();
  EXPECT_EQ(object.at("level").as_string(), "warning");
  EXPECT_EQ(object.at("message").as_string(), "message");
  EXPECT_EQ(object.at("text").as_string(), "a b");
  EXPECT_EQ(object.at("integer").as_int64(), std::numeric_limits<std::int64_t>::min());
  EXPECT_EQ(object.at("number").as_double(), 0.5);
  EXPECT_TRUE(object.at("none").is_null());
  EXPECT_TRUE(object.at("flag").as_bool());
  EXPECT_EQ(object.at("time").as_string().size(), 24U);
  EXPECT_TRUE(object.at("time").as_string().ends_with("Z"));
}

TEST_F(LogTest, LeavesOutWhatIsBelowTheThreshold) {
  set_logging(LogLevel::warning, LogFormat::text, false);
  EXPECT_EQ(logged([] { log_info("quiet"); }), "");
  EXPECT_NE(logged([] { log_warning("loud"); }), "");
  EXPECT_FALSE(log_enabled(LogLevel::info));
  set_logging(LogLevel::off, LogFormat::text, false);
  EXPECT_EQ(logged([] { log_error("quiet"); }), "");
  EXPECT_FALSE(log_enabled(LogLevel::off));
}

TEST_F(LogTest, ColoursOnlyTheLevelAndOnlyIfAsked) {
  set_logging(LogLevel::info, LogFormat::text, true);
  EXPECT_NE(logged([] { log_error("m"); }).find("\x1b[31merror\x1b[0m m\n"), std::string::npos);
  set_logging(LogLevel::info, LogFormat::text, false);
  EXPECT_EQ(logged([] { log_error("m"); }).find('\x1b'), std::string::npos);
}

}  // namespace
}  // namespace sluice
