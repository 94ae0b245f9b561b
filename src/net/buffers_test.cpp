#include <array>
#include <gtest/gtest.h>
#include <string>
#include <string_view>
#include <vector>

#include "net/input_buffer.hpp"
#include "net/output_queue.hpp"

namespace sluice {
namespace {

void fill(InputBuffer& input, std::string_view bytes) {
  while (!bytes.empty()) {
    const std::span<char> room = input.room();
    const std::size_t part = std::min(room.size(), bytes.size());
    bytes.copy(room.data(), part);
    input.commit(part);
    bytes.remove_prefix(part);
  }
}

TEST(InputBuffer, BorrowsWhatItNeedNotKeep) {
  BufferPool pool;
  InputBuffer input(pool);
  fill(input, "request");
  EXPECT_EQ(input.view().data(), pool.scratch().data());
  input.consume(7);
  input.settle();
  EXPECT_FALSE(input.holds_memory());
  fill(input, "half");
  input.settle();
  EXPECT_TRUE(input.holds_memory());
  EXPECT_EQ(input.view(), "half");
  // The next connection's bytes do not touch it.
  InputBuffer other(pool);
  fill(other, "other");
  EXPECT_EQ(input.view(), "half");
  input.settle();
  EXPECT_TRUE(input.holds_memory());
  input.consume(4);
  input.settle();
  EXPECT_FALSE(input.holds_memory());
}

TEST(InputBuffer, GrowsAndMovesWithItsBytesWhole) {
  BufferPool pool;
  InputBuffer input(pool);
  std::string expected;
  for (int i = 0; i < 3000; ++i) {
    const std::string piece = std::to_string(i) + ",";
    fill(input, piece);
    expected += piece;
    if (i % 3 == 0) {
      input.consume(2);
      expected.erase(0, 2);
    }
    if (i % 2 == 0) input.settle();
    ASSERT_EQ(input.view(), expected);
  }
  input.reserve(1'000'000);
  EXPECT_EQ(input.view(), expected);
  EXPECT_GE(input.room().size() + input.size(), 1'000'000U);
  input.truncate(10);
  EXPECT_EQ(input.view(), expected.substr(0, 10));
  input.clear();
  EXPECT_TRUE(input.empty());
}

TEST(InputBuffer, TakesBuffersInTurns) {
  BufferPool pool;
  const auto hold = [](InputBuffer& input) {
    fill(input, "kept");
    input.settle();
    return input.view().data();
  };
  const char* first = nullptr;
  {
    InputBuffer input(pool);
    first = hold(input);
    input.clear();
    input.settle();
  }
  InputBuffer next(pool);
  EXPECT_EQ(hold(next), first);
}

std::string sent_by(OutputQueue& queue, std::size_t at_most, std::size_t parts_at_once = 4) {
  std::vector<iovec> parts(parts_at_once);
  std::size_t total = 0;
  const std::size_t count = queue.gather(parts, total);
  std::string all;
  for (std::size_t i = 0; i < count; ++i) {
    all.append(static_cast<const char*>(parts[i].iov_base), parts[i].iov_len);
  }
  EXPECT_EQ(all.size(), total);
  all.resize(std::min(all.size(), at_most));
  queue.consume(all.size());
  return all;
}

TEST(OutputQueue, KeepsTextAndSharedBlocksInOrder) {
  const Bytes shared(std::string("[shared]"));
  for (std::size_t step = 1; step < 40; ++step) {
    for (std::size_t parts = 1; parts <= 4; ++parts) {
      BufferPool pool;
      OutputQueue queue(pool);
      std::string expected;
      std::string sent;
      for (int i = 0; i < 20; ++i) {
        queue.text().append("text").append(std::to_string(i));
        queue.share(shared, 1, 6);
        if (i % 3 == 0) queue.share(shared, 0, shared.size());
        expected += "text" + std::to_string(i) + "shared" + (i % 3 == 0 ? "[shared]" : "");
        sent += sent_by(queue, step, parts);
        ASSERT_EQ(queue.size(), expected.size() - sent.size());
      }
      while (!queue.empty()) sent += sent_by(queue, step, parts);
      ASSERT_EQ(sent, expected);
    }
  }
}

TEST(OutputQueue, SharesBlocksWithoutCopying) {
  BufferPool pool;
  OutputQueue queue(pool);
  const Bytes shared(std::string(1000, 's'));
  queue.share(shared, 0, shared.size());
  std::array<iovec, 2> parts{};
  std::size_t total = 0;
  ASSERT_EQ(queue.gather(parts, total), 1U);
  EXPECT_EQ(parts[0].iov_base, shared.view().data());
  queue.clear();
  EXPECT_TRUE(queue.empty());
  EXPECT_EQ(queue.gather(parts, total), 0U);
}

}  // namespace
}  // namespace sluice
