#include "core/recycling.hpp"

#include <array>
#include <gtest/gtest.h>
#include <thread>
#include <vector>

namespace sluice {
namespace {

#ifndef SLUICE_SANITIZED

TEST(Recycling, GivesBackWhatWasOfTheSameSize) {
  void* const first = allocate_recycled(100);
  recycle(first, 100);
  void* const other = allocate_recycled(120);
  EXPECT_NE(other, first);
  EXPECT_EQ(allocate_recycled(97), first) << "both take 112 bytes";
  recycle(first, 97);
  recycle(other, 120);
}

TEST(Recycling, KeepsNoMoreThanItMay) {
  constexpr std::size_t kBlocks = 2 * kMostRecycled / kLargestRecycled;
  std::vector<void*> all(kBlocks);
  std::thread([&all] {
    for (void*& each : all) each = allocate_recycled(kLargestRecycled);
    for (void* const each : all) recycle(each, kLargestRecycled);
    // The last that was kept comes first.
    for (std::size_t i = kBlocks / 2; i-- > 0;) {
      ASSERT_EQ(allocate_recycled(kLargestRecycled), all[i]);
    }
    for (std::size_t i = 0; i < kBlocks / 2; ++i) recycle(all[i], kLargestRecycled);
  }).join();
}

#endif

TEST(Recycling, IsForAnyThreadAndAnySize) {
  for (const std::size_t size : {std::size_t{0}, std::size_t{1}, kLargestRecycled,
                                 kLargestRecycled + 1, std::size_t{1} << 20U}) {
    void* memory = nullptr;
    std::thread([&] { memory = allocate_recycled(size); }).join();
    if (size != 0) static_cast<char*>(memory)[size - 1] = 'x';
    recycle(memory, size);
  }
}

TEST(Recycling, GoesOnWhileAThreadEnds) {
  struct Late {
    Late() = default;
    Late(const Late&) = delete;
    Late& operator=(const Late&) = delete;
    ~Late() { recycle(memory, 64); }
    void* memory = allocate_recycled(64);
  };
  std::thread([] {
    thread_local const Late late;  // ends after what is kept
    static_cast<void>(late.memory);
    recycle(allocate_recycled(64), 64);
  }).join();
}

TEST(Recycling, HoldsObjects) {
  struct Node : Recycled {
    virtual ~Node() = default;
    std::array<char, 40> bytes{};
  };
  struct Larger final : Node {
    std::array<char, 400> more{};
  };
  const std::unique_ptr<Node> node = std::make_unique<Larger>();
  const std::weak_ptr<int> gone = make_shared_recycled<int>(3);
  EXPECT_TRUE(gone.expired());
  EXPECT_EQ(*make_shared_recycled<int>(4), 4);
}

}  // namespace
}  // namespace sluice
