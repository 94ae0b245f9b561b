#include "cli/terminal/terminal.hpp"

#include <array>
#include <atomic>
#include <csignal>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <pthread.h>
#include <pty.h>
#include <string>
#include <thread>
#include <unistd.h>

#include "cli/options/exit_code.hpp"
#include "cli/terminal/interrupts.hpp"
#include "net/loop/descriptor.hpp"

namespace sluice {
namespace {

/// More than a pipe holds.
constexpr std::size_t kMuch = std::size_t{1} << 20U;

struct Pipe {
  explicit Pipe(int flags = 0) {
    std::array<int, 2> ends{};
    EXPECT_EQ(::pipe2(ends.data(), O_CLOEXEC | flags), 0);
    read_end = Descriptor(ends[0]);
    write_end = Descriptor(ends[1]);
  }
  Descriptor read_end;
  Descriptor write_end;
};

TEST(WriteAll, WaitsForRoomInAPipeThatDoesNotBlock) {
  Pipe pipe(O_NONBLOCK);
  const std::string text(kMuch, 'x');
  Result<void> written;
  std::thread writer([&] {
    written = write_all(pipe.write_end.get(), text);
    pipe.write_end.close();
  });
  ASSERT_EQ(::fcntl(pipe.read_end.get(), F_SETFL, 0), 0);
  std::string seen;
  std::array<char, 4096> piece{};
  for (ssize_t got = 0; (got = ::read(pipe.read_end.get(), piece.data(), piece.size())) > 0;) {
    seen.append(piece.data(), static_cast<std::size_t>(got));
  }
  writer.join();
  EXPECT_TRUE(written);
  EXPECT_EQ(seen, text);
}

TEST(WriteAll, AnInterruptEndsTheWaitForAReader) {
  for (const int flags : {0, O_NONBLOCK}) {
    Pipe pipe(flags);
    Interrupts interrupts;
    ASSERT_EQ(std::raise(SIGINT), 0);
    EXPECT_TRUE(write_all(pipe.write_end.get(), "there is room for this"));
    const Result<void> written = write_all(pipe.write_end.get(), std::string(kMuch, 'x'));
    ASSERT_FALSE(written);
    EXPECT_EQ(written.error().code, kExitInterrupted);
    EXPECT_TRUE(interrupts.take());
    EXPECT_FALSE(interrupts.take());
  }
}

TEST(WriteAll, AfterSigtermNothingWaitsForAReader) {
  Pipe pipe;
  Interrupts interrupts;
  ASSERT_EQ(std::raise(SIGTERM), 0);
  EXPECT_TRUE(interrupts.take());
  EXPECT_TRUE(write_all(pipe.write_end.get(), "there is room for this"));
  EXPECT_FALSE(write_all(pipe.write_end.get(), std::string(kMuch, 'x')));
}

TEST(Interrupts, AHangUpIsOneUnlessItIsIgnored) {
  {
    Interrupts interrupts;
    ASSERT_EQ(std::raise(SIGHUP), 0);
    EXPECT_TRUE(interrupts.take());
    EXPECT_TRUE(Interrupts::terminating());
  }
  auto* const before = std::signal(SIGHUP, SIG_IGN);
  {
    Interrupts interrupts;
    ASSERT_EQ(std::raise(SIGHUP), 0);
    EXPECT_FALSE(interrupts.take());
    EXPECT_FALSE(Interrupts::terminating());
  }
  std::signal(SIGHUP, before);
}

TEST(WriteAll, AnInterruptEndsTheWaitForATerminal) {
  int master = -1;
  int slave = -1;
  ASSERT_EQ(::openpty(&master, &slave, nullptr, nullptr, nullptr), 0);
  const Descriptor not_read(master);
  const Descriptor terminal(slave);
  Interrupts interrupts;
  const pthread_t writer = ::pthread_self();
  std::atomic<bool> ended = false;
  std::thread user([&] {
    // Until the terminal is full, signals only make the write look for interrupts. A signal just
    // before a write that waits is not seen by it, so there are several.
    for (pollfd room{slave, POLLOUT, 0}; ::poll(&room, 1, 0) > 0; room.revents = 0) ::sched_yield();
    while (!ended) {
      ::pthread_kill(writer, SIGTERM);
      ::sched_yield();
    }
  });
  const Result<void> written = write_all(terminal.get(), std::string(kMuch, '\n'));
  ended = true;
  user.join();
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().code, kExitInterrupted);
}

TEST(VisibleJson, HasNothingThatCannotBeSeen) {
  const std::vector<std::pair<std::string, std::string>> escaped = {
      {"\u00a0", "\\u00a0"},
      {"\u00ad", "\\u00ad"},
      {"\u200b", "\\u200b"},
      {"\u200d", "\\u200d"},
      {"\u2007", "\\u2007"},
      {"\u202e", "\\u202e"},
      {"\u202f", "\\u202f"},
      {"\u2800", "\\u2800"},
      {"\u3000", "\\u3000"},
      {"\ufe00", "\\ufe00"},
      {"\ufe0f", "\\ufe0f"},
      {"\ufff0", "\\ufff0"},
      {"\U0001BCA0", "\\ud82f\\udca0"},
      {"\U0001D173", "\\ud834\\udd73"},
      {"\U000E0041", "\\udb40\\udc41"}};
  for (const auto& [character, escape] : escaped) {
    EXPECT_EQ(visible_json("\"/etc/pass" + character + "wd\""), "\"/etc/pass" + escape + "wd\"");
  }
  for (const std::string plain : {"{\"a b\": \"\u00e4 \u20ac \U0001F600\"}", "\ufffd"}) {
    EXPECT_EQ(visible_json(plain), plain);
  }
}

TEST(WriteAll, SaysWhyThereIsNoRoom) {
  const Descriptor full(::open("/dev/full", O_WRONLY | O_CLOEXEC));
  const Result<void> written = write_all(full.get(), "x");
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().code, kExitFailure);
  EXPECT_EQ(written.error().message, "cannot write: No space left on device");
}

TEST(WriteAll, NeedsNoWordsIfTheReaderHasGone) {
  Pipe pipe;
  pipe.read_end.close();
  auto* const before = std::signal(SIGPIPE, SIG_IGN);
  const Result<void> written = write_all(pipe.write_end.get(), "x");
  std::signal(SIGPIPE, before);
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().code, kExitFailure);
  EXPECT_EQ(written.error().message, "");
}

}  // namespace
}  // namespace sluice
