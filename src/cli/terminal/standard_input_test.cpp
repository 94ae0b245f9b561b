#include "cli/terminal/standard_input.hpp"

#include <array>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>
#include <thread>
#include <unistd.h>

#include "cli/options/exit_code.hpp"

namespace sluice {
namespace {

using ::testing::HasSubstr;

/// Reads what another thread writes into a pipe.
Result<std::string> piped(const std::string& text, std::size_t limit) {
  std::array<int, 2> ends{};
  EXPECT_EQ(::pipe(ends.data()), 0);
  std::thread writer([&] {
    [[maybe_unused]] const ssize_t written = ::write(ends[1], text.data(), text.size());
    ::close(ends[1]);
  });
  Result<std::string> read =
      read_input(ends[0], limit, "a question", [] { ADD_FAILURE() << "it came at once"; });
  writer.join();
  ::close(ends[0]);
  return read;
}

TEST(StandardInput, ReadsAPipeToItsEnd) {
  EXPECT_EQ(piped("one\ntwo\n", 100).value(), "one\ntwo\n");
  EXPECT_EQ(piped("", 100).value(), "");
  EXPECT_EQ(piped(std::string(100, 'x'), 100).value(), std::string(100, 'x'));
}

TEST(StandardInput, NamesTheLimitThatAPipeExceeds) {
  const auto read = piped(std::string(4097, 'x'), 4096);
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code, kExitUsage);
  EXPECT_THAT(read.error().message, HasSubstr("longer than 4KiB"));
}

TEST(StandardInput, ReplacesWhatIsNotText) {
  EXPECT_EQ(piped("caf\xE9!", 100).value(), "caf\xEF\xBF\xBD!");
}

TEST(StandardInput, SaysWhyItCannotRead) {
  const int folder = ::open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const auto read = read_input(folder, 100, "a question", [] {});
  ::close(folder);
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code, kExitFailure);
  EXPECT_THAT(read.error().message, HasSubstr("cannot read standard input: Is a directory"));
}

}  // namespace
}  // namespace sluice
