#include "cli/session/bounded_log.hpp"

#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <iterator>
#include <string>
#include <unistd.h>

#include "cli/terminal/terminal.hpp"
#include "core/file_test_support.hpp"

namespace sluice {
namespace {

/// Standard error as it was before, at the end.
class KeptStandardError {
 public:
  KeptStandardError() : kept_(::dup(STDERR_FILENO)) {}
  ~KeptStandardError() {
    ::dup2(kept_, STDERR_FILENO);
    ::close(kept_);
  }

 private:
  int kept_;
};

std::string text_in(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(BoundedLogTest, HasWhatIsWrittenToStandardError) {
  const KeptStandardError kept;
  const test::TemporaryFile file("log", "of the one before");
  {
    const auto log = BoundedLog::open(file.path()).value();
    ASSERT_TRUE(write_all(STDERR_FILENO, "one\ntwo\n"));
  }
  ASSERT_TRUE(write_all(STDERR_FILENO, "dropped\n"));
  EXPECT_EQ(text_in(file.path()), "one\ntwo\n");
}

TEST(BoundedLogTest, BeginsAnewWhenItIsFull) {
  const KeptStandardError kept;
  const test::TemporaryFile file("log");
  {
    const auto log = BoundedLog::open(file.path()).value();
    const std::string piece(64 << 10U, 'x');
    for (std::size_t size = 0; size <= BoundedLog::kMaxLog; size += piece.size()) {
      ASSERT_TRUE(write_all(STDERR_FILENO, piece));
      EXPECT_LE(std::filesystem::file_size(file.path()), BoundedLog::kMaxLog);
    }
    ASSERT_TRUE(write_all(STDERR_FILENO, "last"));
  }
  const std::string text = text_in(file.path());
  EXPECT_LT(text.size(), BoundedLog::kMaxLog / 2);
  EXPECT_TRUE(text.ends_with("xlast"));
}

TEST(BoundedLogTest, SaysWhyThereIsNone) {
  const auto log = BoundedLog::open("/no/such/folder/log");
  ASSERT_FALSE(log);
  EXPECT_EQ(log.error().message, "/no/such/folder/log: No such file or directory");
}

}  // namespace
}  // namespace sluice
