#include "engine/rkllm/worker/token_ring.hpp"

#include <cstring>
#include <deque>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <random>
#include <string>
#include <sys/mman.h>
#include <thread>
#include <unistd.h>
#include <utility>

namespace sluice::rkllm {
namespace {

TokenRecord text(std::string_view bytes, std::uint64_t run = 1) {
  return {.run = run, .bytes = bytes};
}

bool is_ready(const Descriptor& event) {
  pollfd ready{.fd = event.get(), .events = POLLIN, .revents = 0};
  return ::poll(&ready, 1, 0) == 1;
}

/// Both ends of a ring, which map its memory each for itself, as two processes do.
struct Ends {
  explicit Ends(std::size_t bytes = 4096)
      : reader(*TokenRing::make(bytes)),
        writer(*TokenRing::attach({.memory = Descriptor(::dup(reader.files().memory.get())),
                                   .filled = Descriptor(::dup(reader.files().filled.get())),
                                   .drained = Descriptor(::dup(reader.files().drained.get()))})) {}
  /// The bytes of the next record, or a dash.
  std::string next() {
    const auto record = reader.read();
    EXPECT_TRUE(record) << record.error().message;
    return record && *record ? std::string((*record)->bytes) : "-";
  }

  TokenRing reader;
  TokenRing writer;
};

TEST(TokenRing, PassesRecordsOnInTheirOrder) {
  Ends ends;
  EXPECT_EQ(ends.next(), "-");
  EXPECT_TRUE(ends.writer.write({.run = 7,
                                 .state = CallState::waiting,
                                 .token_id = -3,
                                 .kind = TokenRecord::Kind::logits,
                                 .columns = 5,
                                 .bytes = "one"}));
  EXPECT_TRUE(ends.writer.write(text("")));
  EXPECT_TRUE(ends.writer.write(text("three")));
  const auto first = ends.reader.read();
  ASSERT_TRUE(first && *first);
  EXPECT_EQ((*first)->run, 7U);
  EXPECT_EQ((*first)->state, CallState::waiting);
  EXPECT_EQ((*first)->token_id, -3);
  EXPECT_EQ((*first)->kind, TokenRecord::Kind::logits);
  EXPECT_EQ((*first)->columns, 5U);
  EXPECT_EQ((*first)->bytes, "one");
  EXPECT_EQ(ends.next(), "");
  EXPECT_EQ(ends.next(), "three");
  EXPECT_EQ(ends.next(), "-");
}

TEST(TokenRing, GoesRoundWithRecordsOfEverySize) {
  Ends ends;
  std::mt19937 random(1);
  std::uniform_int_distribution<std::size_t> sizes(0, 700);
  std::deque<std::string> under_way;
  for (int i = 0; i < 20'000; ++i) {
    const std::string bytes(sizes(random), static_cast<char>('a' + i % 26));
    while (!ends.writer.write(text(bytes))) {
      ASSERT_FALSE(under_way.empty());
      ASSERT_EQ(ends.next(), under_way.front());
      under_way.pop_front();
    }
    under_way.push_back(bytes);
  }
  for (const std::string& each : under_way) EXPECT_EQ(ends.next(), each);
  EXPECT_EQ(ends.next(), "-");
}

TEST(TokenRing, IsBounded) {
  Ends ends;
  EXPECT_FALSE(ends.writer.can_hold(text(std::string(4096, 'a'))));
  EXPECT_FALSE(ends.writer.write(text(std::string(4096, 'a'))));
  int count = 0;
  while (ends.writer.write(text(std::string(100, 'a')))) ++count;
  EXPECT_GT(count, 20);
  EXPECT_LT(count, 41);
}

TEST(TokenRing, TellsOfRoomOnceSomethingIsTaken) {
  Ends ends;
  while (ends.writer.write(text(std::string(100, 'a')))) {
  }
  EXPECT_FALSE(is_ready(ends.writer.files().drained));
  ends.next();
  EXPECT_TRUE(is_ready(ends.writer.files().drained));
  ends.writer.wait_for_room();
  EXPECT_TRUE(ends.writer.write(text(std::string(100, 'a'))));
}

TEST(TokenRing, TellsOfARecordOnlyIfTheReaderRests) {
  Ends ends;
  ends.writer.write(text("a"));
  EXPECT_FALSE(is_ready(ends.reader.files().filled));
  EXPECT_FALSE(ends.reader.may_rest());
  EXPECT_EQ(ends.next(), "a");
  EXPECT_TRUE(ends.reader.may_rest());
  ends.writer.write(text("b"));
  EXPECT_TRUE(is_ready(ends.reader.files().filled));
  ends.reader.clear_filled();
  ends.writer.write(text("c"));
  EXPECT_FALSE(is_ready(ends.reader.files().filled));
  EXPECT_EQ(ends.next(), "b");
  EXPECT_EQ(ends.next(), "c");
}

TEST(TokenRing, TwoThreadsLoseNothing) {
  Ends ends;
  constexpr int kRecords = 50'000;
  std::thread writer([&ends] {
    for (int i = 0; i < kRecords; ++i) {
      while (!ends.writer.write(text(std::to_string(i)))) ends.writer.wait_for_room();
    }
  });
  for (int i = 0; i < kRecords;) {
    const auto record = ends.reader.read();
    ASSERT_TRUE(record);
    if (*record) {
      ASSERT_EQ((*record)->bytes, std::to_string(i));
      ++i;
    } else if (ends.reader.may_rest()) {
      pollfd filled{.fd = ends.reader.files().filled.get(), .events = POLLIN, .revents = 0};
      ::poll(&filled, 1, -1);
      ends.reader.clear_filled();
    }
  }
  writer.join();
}

/// The memory as the process at the other end can write to it.
class DamagedRing : public ::testing::Test {
 protected:
  DamagedRing()
      : memory(static_cast<char*>(::mmap(nullptr, 8192, PROT_READ | PROT_WRITE, MAP_SHARED,
                                         ends.reader.files().memory.get(), 0))) {}
  ~DamagedRing() override { ::munmap(memory, 8192); }
  void put(std::size_t at, std::uint64_t value) { std::memcpy(memory + at, &value, sizeof value); }
  void expect_damaged() {
    const auto record = ends.reader.read();
    ASSERT_FALSE(record);
    EXPECT_EQ(record.error().message, "it has damaged the memory that it shares");
  }

  static constexpr std::size_t kWritten = 0;
  static constexpr std::size_t kFirstRecord = 4096;
  static constexpr std::size_t kSize = kFirstRecord + 24;
  Ends ends;
  char* memory;
};

TEST_F(DamagedRing, SaysMoreThanItHolds) {
  put(kWritten, 5000);
  expect_damaged();
}
TEST_F(DamagedRing, HasLessThanTheHeadOfARecord) {
  put(kWritten, 8);
  expect_damaged();
}
TEST_F(DamagedRing, RecordsThatAreLongerThanWhatIsThere) {
  for (const std::uint64_t size :
       {std::uint64_t{9}, std::uint64_t{1} << 40U, ~std::uint64_t{0}, ~std::uint64_t{0} - 30}) {
    put(kSize, size);
    put(kWritten, 40);
    expect_damaged();
  }
}
TEST_F(DamagedRing, KindsThatThereAreNot) {
  put(kFirstRecord + 16, 99);
  put(kWritten, 32);
  expect_damaged();
}
TEST_F(DamagedRing, ItsMemoryCannotBeTakenAway) {
  EXPECT_NE(::ftruncate(ends.writer.files().memory.get(), 0), 0);
}

TEST(TokenRing, OtherFilesAreRefused) {
  const auto attach = [](int memory) {
    return TokenRing::attach(
        {.memory = Descriptor(memory), .filled = Descriptor(), .drained = Descriptor()});
  };
  EXPECT_FALSE(attach(-1));
  EXPECT_FALSE(attach(::open("/dev/null", O_RDWR | O_CLOEXEC)));
  const int small = ::memfd_create("small", MFD_CLOEXEC);
  EXPECT_FALSE(attach(small));
  const int odd = ::memfd_create("odd", MFD_CLOEXEC);
  ASSERT_EQ(::ftruncate(odd, 4096 + 5000), 0);
  EXPECT_FALSE(attach(odd));
}

}  // namespace
}  // namespace sluice::rkllm
