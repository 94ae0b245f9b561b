#include <array>
#include <gtest/gtest.h>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "net/connection/input_buffer.hpp"
#include "net/connection/output_stage.hpp"

namespace sluice {
namespace {

/// Where the buffers of one client's connections get their memory from.
struct Memory {
  Memory() = default;
  explicit Memory(MemoryBudget& budget) : share(std::make_shared<MemoryShare>(budget)) {}
  [[nodiscard]] BufferSource source() { return {pool, share}; }

  BufferPool pool;
  std::shared_ptr<MemoryShare> share;
};

class Input : public InputBuffer {
 public:
  explicit Input(Memory& memory) : memory_(&memory) {}
  std::span<char> writable_space() { return InputBuffer::writable_space(memory_->source()); }
  bool settle() { return InputBuffer::settle(memory_->source()); }

 private:
  Memory* memory_;
};

class Output : public OutputStage {
 public:
  Output(Memory& memory, const OutputLimits& limits) : OutputStage(limits), memory_(&memory) {}
  std::string& text() { return OutputStage::text(memory_->pool); }
  void share(const Bytes& bytes, std::size_t offset, std::size_t size) {
    OutputStage::share(memory_->pool, bytes, offset, size);
  }
  void take(std::string&& rest) { OutputStage::take(memory_->pool, std::move(rest)); }
  bool added() { return OutputStage::added(memory_->source()); }
  void consume(std::size_t bytes) { OutputStage::consume(memory_->source(), bytes); }
  void clear() { OutputStage::clear(memory_->pool); }

 private:
  Memory* memory_;
};

void fill(Input& input, std::string_view bytes) {
  while (!bytes.empty()) {
    const std::span<char> writable_space = input.writable_space();
    const std::size_t part = std::min(writable_space.size(), bytes.size());
    bytes.copy(writable_space.data(), part);
    input.commit(part);
    bytes.remove_prefix(part);
  }
}

TEST(InputBuffer, BorrowsWhatItNeedNotKeep) {
  Memory pool;
  Input input(pool);
  fill(input, "request");
  EXPECT_EQ(input.view().data(), pool.pool.scratch().data());
  input.consume(7);
  EXPECT_TRUE(input.settle());
  EXPECT_FALSE(input.holds_memory());
  fill(input, "half");
  EXPECT_TRUE(input.settle());
  EXPECT_TRUE(input.holds_memory());
  EXPECT_EQ(input.view(), "half");
  // The next connection's bytes do not touch it.
  Input other(pool);
  fill(other, "other");
  EXPECT_EQ(input.view(), "half");
  EXPECT_TRUE(input.settle());
  EXPECT_TRUE(input.holds_memory());
  input.consume(4);
  EXPECT_TRUE(input.settle());
  EXPECT_FALSE(input.holds_memory());
}

TEST(InputBuffer, GrowsAndMovesWithItsBytesWhole) {
  Memory pool;
  Input input(pool);
  std::string expected;
  for (int i = 0; i < 3000; ++i) {
    const std::string piece = std::to_string(i) + ",";
    fill(input, piece);
    expected += piece;
    if (i % 3 == 0) {
      input.consume(2);
      expected.erase(0, 2);
    }
    if (i % 2 == 0) {
      ASSERT_TRUE(input.settle());
    }
    ASSERT_EQ(input.view(), expected);
  }
  input.truncate(10);
  EXPECT_EQ(input.view(), expected.substr(0, 10));
  input.clear();
  EXPECT_TRUE(input.empty());
}

TEST(InputBuffer, TakesBuffersInTurns) {
  Memory pool;
  const auto hold = [](Input& input) {
    fill(input, "kept");
    EXPECT_TRUE(input.settle());
    return input.view().data();
  };
  const char* first = nullptr;
  {
    Input input(pool);
    first = hold(input);
    input.clear();
    EXPECT_TRUE(input.settle());
  }
  Input next(pool);
  EXPECT_EQ(hold(next), first);
}

TEST(InputBuffer, DrawsWhatIsLargeOnTheBudget) {
  MemoryBudget budget(std::size_t{256} << 10U);
  Memory pool(budget);
  Input small(pool);
  fill(small, std::string(4000, 'x'));
  EXPECT_TRUE(small.settle());
  EXPECT_EQ(budget.used(), 0U);

  Input input(pool);
  std::size_t held = 0;
  for (std::span<char> writable_space = input.writable_space(); !writable_space.empty();
       writable_space = input.writable_space()) {
    input.commit(writable_space.size());
    held += writable_space.size();
    ASSERT_LE(held, budget.limit());
  }
  EXPECT_GT(held, budget.limit() / 4);
  EXPECT_GE(budget.used(), held);
  input.clear();
  EXPECT_TRUE(input.settle());
  EXPECT_EQ(budget.used(), 0U);
}

TEST(InputBuffer, ALongMessageLeavesNothingCountedBehind) {
  MemoryBudget budget(std::size_t{1} << 20U);
  Memory pool(budget);
  Input input(pool);
  fill(input, std::string(200'000, 'x'));
  EXPECT_TRUE(input.settle());
  EXPECT_GE(budget.used(), 200'000U);
  input.consume(199'999);
  EXPECT_TRUE(input.settle());
  EXPECT_EQ(input.view(), "x");
  EXPECT_EQ(budget.used(), 0U);
}

TEST(InputBuffer, SaysWhenWhatIsLeftCannotBeKept) {
  MemoryBudget budget(0);
  Memory pool(budget);
  Input input(pool);
  fill(input, std::string(50'000, 'x'));
  EXPECT_FALSE(input.settle());
  EXPECT_TRUE(input.empty());
  EXPECT_FALSE(input.holds_memory());
}

std::string sent_by(Output& queue, std::size_t at_most, std::size_t parts_at_once = 4) {
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

TEST(OutputStage, KeepsTextAndSharedBlocksInOrder) {
  const Bytes shared(std::string("[shared]"));
  for (std::size_t step = 1; step < 40; ++step) {
    for (std::size_t parts = 1; parts <= 4; ++parts) {
      Memory pool;
      const OutputLimits limits;
      Output queue(pool, limits);
      std::string expected;
      std::string sent;
      for (int i = 0; i < 20; ++i) {
        queue.text().append("text").append(std::to_string(i));
        queue.note_message();
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

TEST(OutputStage, NothingIsLeftOfAMessageThatWasNotAddedWhole) {
  const OutputLimits limits;
  Memory pool;
  Output stage(pool, limits);
  stage.text().append("half");
  stage.drop_unfinished();
  EXPECT_TRUE(stage.empty());
  stage.text().append("whole,");
  stage.added();
  stage.text().append("half");
  stage.text().append("next,");
  stage.note_message();
  stage.text().append("half");
  const std::string block(2000, 'b');
  stage.share(Bytes(std::string(block)), 0, block.size());
  stage.added();
  stage.text().append("half");
  stage.drop_unfinished();
  EXPECT_EQ(sent_by(stage, stage.size()), "whole,next," + block);
  EXPECT_TRUE(stage.empty());
}

TEST(OutputStage, KeepsLongTextWholeWhileItShrinks) {
  std::string expected;
  for (int i = 0; expected.size() < 1'000'000; ++i) expected += std::to_string(i);
  for (const std::size_t step : {10'000U, 16'384U, 70'000U, 999'990U}) {
    Memory pool;
    const OutputLimits limits;
    Output stage(pool, limits);
    stage.text() += expected;
    stage.added();
    std::string sent;
    while (!stage.empty()) sent += sent_by(stage, step);
    ASSERT_EQ(sent, expected) << step;
  }
}

TEST(OutputStage, SharesBlocksWithoutCopying) {
  Memory pool;
  const OutputLimits limits;
  Output queue(pool, limits);
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

/// Adds `text` as a message.
bool add(Output& stage, std::string_view text) {
  stage.text().append(text);
  return stage.added();
}

TEST(OutputStage, TellsSendersToWaitAndToGoOn) {
  Memory pool;
  const OutputLimits limits{.high_water = 100, .low_water = 10, .max_queued = 200};
  Output stage(pool, limits);
  EXPECT_TRUE(add(stage, std::string(100, 'x')));
  EXPECT_FALSE(add(stage, "x"));
  EXPECT_TRUE(stage.is_full());
  stage.consume(90);
  EXPECT_FALSE(stage.is_drained());
  EXPECT_FALSE(add(stage, "")) << "once told to wait, a sender waits until it is drained";
  stage.consume(1);
  EXPECT_TRUE(stage.is_drained());
  EXPECT_FALSE(stage.is_drained()) << "once";
  EXPECT_TRUE(add(stage, ""));
}

TEST(OutputStage, ALongMessageDoesNotCountForWhatFollowsIt) {
  Memory pool;
  const OutputLimits limits{.high_water = 100, .low_water = 10, .max_queued = 200};
  Output stage(pool, limits);
  add(stage, std::string(200, 'x'));
  EXPECT_TRUE(stage.has_capacity());
  add(stage, "x");
  EXPECT_FALSE(stage.has_capacity());
  stage.consume(1);

  add(stage, std::string(10'000, 'x'));
  EXPECT_TRUE(stage.has_capacity());
  stage.consume(100);
  add(stage, std::string(100, 'x'));
  EXPECT_TRUE(stage.has_capacity());
  add(stage, "x");
  EXPECT_FALSE(stage.has_capacity()) << "200 wait besides the long one";
  stage.consume(10'100);
  add(stage, std::string(99, 'x'));
  EXPECT_TRUE(stage.has_capacity());
  add(stage, "x");
  EXPECT_FALSE(stage.has_capacity()) << "the long one has gone";
}

TEST(OutputStage, LongTextIsTakenOverAndCounted) {
  MemoryBudget budget(std::size_t{4} << 20U);
  Memory client(budget);
  const OutputLimits limits{.max_queued = 1000};
  Output stage(client, limits);
  std::string body(std::size_t{1} << 20U, 'b');
  const char* const at = body.data();
  stage.text().append("head ");
  stage.take(std::move(body));
  stage.added();
  stage.text().append("next");
  stage.added();
  EXPECT_GE(budget.used(), std::size_t{1} << 20U);
  EXPECT_TRUE(stage.has_capacity()) << "head and body are one long message";
  std::array<iovec, kWritevParts> parts;
  std::size_t total = 0;
  EXPECT_EQ(stage.gather(parts, total), 3U);
  EXPECT_EQ(total, (std::size_t{1} << 20U) + 9);
  EXPECT_EQ(parts[1].iov_base, at);
  stage.consume(total - 4);
  EXPECT_EQ(budget.used(), 0U);
}

TEST(OutputStage, TextIsTakenOverIfNoneWaits) {
  Memory client;
  const OutputLimits limits;
  Output stage(client, limits);
  std::string first(5000, 'a');
  std::string second(5000, 'b');
  const char* at = first.data();
  stage.take(std::move(first));
  stage.added();
  std::array<iovec, kWritevParts> parts;
  std::size_t total = 0;
  ASSERT_EQ(stage.gather(parts, total), 1U);
  EXPECT_EQ(parts[0].iov_base, at);
  stage.take(std::move(second));
  stage.added();
  ASSERT_EQ(stage.gather(parts, total), 1U);
  EXPECT_EQ(std::string_view(static_cast<const char*>(parts[0].iov_base), total),
            std::string(5000, 'a') + std::string(5000, 'b'));
  stage.consume(total);
  std::string third(5000, 'c');
  at = third.data();
  stage.take(std::move(third));
  stage.added();
  EXPECT_EQ(stage.gather(parts, total), 1U);
  EXPECT_EQ(parts[0].iov_base, at);
  EXPECT_EQ(std::string_view(static_cast<const char*>(parts[0].iov_base), total),
            std::string(5000, 'c'));
}

TEST(OutputStage, LongMessagesDoNotCountForEachOther) {
  Memory pool;
  const OutputLimits limits{.high_water = 100, .low_water = 10, .max_queued = 200};
  Output stage(pool, limits);
  for (int i = 0; i < 10; ++i) {
    EXPECT_TRUE(stage.has_capacity()) << i;
    add(stage, std::string(10'000, 'x'));
  }
  add(stage, std::string(200, 'x'));
  EXPECT_TRUE(stage.has_capacity());
  stage.consume(95'000);
  EXPECT_TRUE(stage.has_capacity());
  add(stage, "x");
  EXPECT_FALSE(stage.has_capacity());
  stage.consume(5'000);
  EXPECT_FALSE(stage.has_capacity());
  stage.consume(201);
  EXPECT_TRUE(stage.empty());
  add(stage, std::string(201, 'x'));
  EXPECT_TRUE(stage.has_capacity());
}

TEST(OutputStage, OneClientHoldsNoMoreThanIsFree) {
  MemoryBudget budget(std::size_t{4} << 20U);
  Memory client(budget);
  const OutputLimits limits{.max_queued = 1000};
  Output greedy(client, limits);
  int messages = 0;
  while (messages < 10) {
    add(greedy, std::string(std::size_t{512} << 10U, 'x'));
    if (greedy.is_over_share()) break;
    ++messages;
  }
  EXPECT_GE(messages, 2);
  EXPECT_LT(messages, 8);
  Output second(client, limits);
  add(second, std::string(std::size_t{1} << 20U, 'x'));
  EXPECT_TRUE(second.is_over_share());
  second.clear();
  Memory other_client(budget);
  Output other(other_client, limits);
  EXPECT_TRUE(other.has_capacity());
  add(other, std::string(100'000, 'x'));
  EXPECT_FALSE(other.is_over_share());
  greedy.clear();
  other.clear();
  EXPECT_EQ(budget.used(), 0U);
}

TEST(OutputStage, HoldsLittleMoreThanWhatIsUnsent) {
  MemoryBudget budget(std::size_t{64} << 20U);
  Memory pool(budget);
  const OutputLimits limits;
  Output stage(pool, limits);
  add(stage, std::string(std::size_t{8} << 20U, 'x'));
  // The peer reads as fast as the stage is filled, but always lags a little behind.
  for (int i = 0; i < 4000; ++i) {
    add(stage, std::string(4096, 'y'));
    stage.consume(stage.size() > (std::size_t{64} << 10U) ? 8192 : 4096);
  }
  EXPECT_LE(stage.size(), std::size_t{64} << 10U);
  EXPECT_LE(budget.used(), std::size_t{512} << 10U);
  stage.clear();
  EXPECT_EQ(budget.used(), 0U);
}

TEST(OutputStage, ManyReadersMayShareMoreThanTheBudget) {
  MemoryBudget budget(std::size_t{256} << 10U);
  Memory pool(budget);
  const OutputLimits limits;
  const Bytes block(std::string(200'000, 'x'));
  std::vector<std::unique_ptr<Output>> readers;
  for (int i = 0; i < 10; ++i) {
    readers.push_back(std::make_unique<Output>(pool, limits));
    readers.back()->share(block, 0, block.size());
    EXPECT_TRUE(readers.back()->added()) << i;
  }
  for (const auto& reader : readers) reader->clear();
  EXPECT_EQ(budget.used(), 0U);
}

TEST(OutputStage, TextCountsAlsoWhenASharedBlockIsBehindIt) {
  MemoryBudget budget(std::size_t{1} << 20U);
  Memory pool(budget);
  const OutputLimits limits;
  const Bytes block(std::string(2000, 'x'));
  Output stage(pool, limits);
  int added = 0;
  while (added < 20) {
    stage.text().append(std::string(100'000, 'y'));
    stage.note_message();
    stage.share(block, 0, block.size());
    stage.added();
    if (stage.is_over_share()) break;
    ++added;
  }
  EXPECT_GE(added, 5);
  EXPECT_LE(added, 10);
  stage.consume(stage.size() - 100);
  EXPECT_EQ(budget.used(), 0U) << "what has been sent does not count";
  stage.clear();
  EXPECT_EQ(budget.used(), 0U);
}

TEST(OutputStage, SaysWhenTheBudgetIsUsedUp) {
  MemoryBudget budget(std::size_t{256} << 10U);
  Memory pool(budget);
  const OutputLimits limits;
  Output greedy(pool, limits);
  EXPECT_TRUE(add(greedy, std::string(200'000, 'x')));
  Output stage(pool, limits);
  EXPECT_FALSE(add(stage, std::string(200'000, 'x')));
  EXPECT_TRUE(stage.is_over_share());
  Output modest(pool, limits);
  EXPECT_TRUE(add(modest, std::string(4000, 'x'))) << "who holds little is not concerned";
  stage.consume(190'000);
  EXPECT_FALSE(stage.is_over_share()) << "what could be sent need not be kept";
  stage.clear();
  greedy.clear();
  EXPECT_EQ(budget.used(), 0U);
}

}  // namespace
}  // namespace sluice
