#include "core/bytes.hpp"

#include <gtest/gtest.h>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace sluice {
namespace {

TEST(Bytes, AreEmptyAtFirst) {
  const Bytes none;
  EXPECT_TRUE(none.empty());
  EXPECT_EQ(none.size(), 0U);
  EXPECT_EQ(none.view(), "");
  EXPECT_TRUE(Bytes(std::string()).empty());
}

TEST(Bytes, TakeOverAStringAndShareIt) {
  std::string text(1000, 'x');
  const char* const where = text.data();
  const Bytes first(std::move(text));
  EXPECT_EQ(first.view().data(), where) << "not copied";
  const Bytes second = first;  // NOLINT(performance-unnecessary-copy-initialization)
  EXPECT_EQ(second.view().data(), where);
  EXPECT_EQ(second.size(), 1000U);
}

TEST(Bytes, AreMovedAndAssigned) {
  Bytes a(std::string("aaa"));
  Bytes b(std::move(a));
  EXPECT_EQ(b.view(), "aaa");
  EXPECT_TRUE(a.empty());  // NOLINT(bugprone-use-after-move): moved-from is empty
  a = Bytes(std::string("new"));
  b = a;
  EXPECT_EQ(b.view(), "new");
  const Bytes& same = b;
  b = same;
  EXPECT_EQ(b.view(), "new");
  b = Bytes();
  EXPECT_TRUE(b.empty());
  EXPECT_EQ(a.view(), "new");
}

TEST(Bytes, AreCopiedAndDroppedByManyThreads) {
  const Bytes shared(std::string("shared"));
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([copy = shared] {
      std::vector<Bytes> copies;
      for (int i = 0; i < 10000; ++i) {
        copies.push_back(copy);
        if (i % 100 == 0) copies.clear();
      }
      EXPECT_EQ(copy.view(), "shared");
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(shared.view(), "shared");
}

}  // namespace
}  // namespace sluice
