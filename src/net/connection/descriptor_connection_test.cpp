#include "net/connection/descriptor_connection.hpp"

#include <array>
#include <chrono>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <functional>
#include <gtest/gtest.h>
#include <memory>
#include <sstream>
#include <string>
#include <string_view>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>

#include "net/lines/line_protocol.hpp"

namespace sluice {
namespace {

using namespace std::chrono_literals;

/// Connections on a loop that the test drives. Each line is answered with itself.
class DescriptorConnectionTest : public ::testing::Test, protected LineService {
 protected:
  class Handler final : public LineHandler {
   public:
    Handler(DescriptorConnectionTest& test, LineProtocolPtr session)
        : test_(&test), session_(std::move(session)) {}
    bool on_line(std::string_view line) override {
      ++test_->lines;
      std::this_thread::sleep_for(test_->takes);
      session_->send(std::string(line) + "\n");
      return true;
    }
    void on_long_line() override { session_->send("long\n"); }
    void on_other_protocol() override { session_->close(); }
    void on_drain() override { ++test_->drains; }
    void on_input_end() override {
      if (test_->closes) session_->close();
    }
    void on_close() override { test_->closed = true; }

   private:
    DescriptorConnectionTest* test_;
    LineProtocolPtr session_;
  };

  void start(Descriptor input, Descriptor output) {
    closed = false;
    ended = false;
    const RefPtr<Connection> connection(new DescriptorConnection(
        worker, options.output, std::move(input), std::move(output), {}, [this] { ended = true; }));
    LineProtocol::begin(*connection, *this, uid_t{0}, options);
  }
  std::unique_ptr<LineHandler> open(LineProtocolPtr opened, const LinePeer& /*peer*/) override {
    session = opened;
    return std::make_unique<Handler>(*this, std::move(opened));
  }
  /// Starts a connection over one end of a socket pair and returns the other end.
  Descriptor start_over_socket() {
    std::array<int, 2> ends{};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()), 0);
    start(Descriptor(ends[0]), {});
    ::fcntl(ends[1], F_SETFL, O_NONBLOCK);
    return Descriptor(ends[1]);
  }
  static std::pair<Descriptor, Descriptor> make_pipe() {
    std::array<int, 2> ends{};
    EXPECT_EQ(::pipe2(ends.data(), O_NONBLOCK | O_CLOEXEC), 0);
    return {Descriptor(ends[0]), Descriptor(ends[1])};
  }

  bool until(const std::function<bool()>& come) {
    const auto late = std::chrono::steady_clock::now() + 20s;
    while (!come()) {
      if (std::chrono::steady_clock::now() > late) return false;
      loop.poll();
    }
    return true;
  }
  static bool write(const Descriptor& to, std::string_view bytes) {
    return ::write(to.get(), bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size());
  }
  /// Appends what has arrived to `received`.
  void receive(const Descriptor& from) {
    std::array<char, 65536> piece;
    const ssize_t got = ::read(from.get(), piece.data(), piece.size());
    if (got > 0) received.append(piece.data(), static_cast<std::size_t>(got));
  }
  bool comes(const Descriptor& from, std::string_view bytes) {
    return until([&] {
      receive(from);
      return received == bytes;
    });
  }

  EventLoop loop;
  ManualClock clock;
  ConnectionWorker worker{loop, &loop, {.tick = 1ms, .clock = &clock}};
  LineOptions options;
  LineProtocolPtr session;
  std::string received;
  std::size_t lines = 0;
  Duration takes{};  // to handle each line
  int drains = 0;
  bool closes = true;
  bool closed = false;
  bool ended = false;
};

TEST_F(DescriptorConnectionTest, OverASocket) {
  const Descriptor peer = start_over_socket();
  ASSERT_TRUE(write(peer, "one\ntw"));
  ASSERT_TRUE(comes(peer, "one\n"));
  ASSERT_TRUE(write(peer, "o\nthree"));
  ::shutdown(peer.get(), SHUT_WR);
  ASSERT_TRUE(comes(peer, "one\ntwo\nthree\n"));
  EXPECT_TRUE(until([&] { return ended; }));
  EXPECT_TRUE(closed);
  EXPECT_EQ(worker.counters.connections, 0U);
  EXPECT_EQ(worker.counters.requests_total, 3U);
}

TEST_F(DescriptorConnectionTest, WhatTakesLongCountsByItsTime) {
  takes = 10ms;
  std::vector<Descriptor> peers;
  for (int i = 0; i < 8; ++i) peers.push_back(start_over_socket());
  loop.poll();
  for (const Descriptor& peer : peers) ASSERT_TRUE(write(peer, "one\n"));
  loop.poll();
  EXPECT_GT(lines, 0U);
  EXPECT_LT(lines, peers.size() / 2) << "others on the loop have their turn between";
  ASSERT_TRUE(until([&] { return lines == peers.size(); }));
}

TEST_F(DescriptorConnectionTest, OverPipes) {
  auto [input, to] = make_pipe();
  auto [from, output] = make_pipe();
  start(std::move(input), std::move(output));
  ASSERT_TRUE(write(to, "one\n"));
  ASSERT_TRUE(comes(from, "one\n"));
  to.close();
  EXPECT_TRUE(until([&] { return ended; }));
}

TEST_F(DescriptorConnectionTest, EndsWhenNobodyReadsItsPipeAnyMore) {
  auto [input, to] = make_pipe();
  auto [from, output] = make_pipe();
  start(std::move(input), std::move(output));
  loop.poll();
  EXPECT_FALSE(closed);
  from.close();
  EXPECT_TRUE(until([&] { return ended; }));
}

TEST_F(DescriptorConnectionTest, EndsWhenItsOutputCannotBeWritten) {
  auto [input, to] = make_pipe();
  testing::internal::CaptureStderr();
  start(std::move(input), Descriptor(::open("/dev/full", O_WRONLY | O_NONBLOCK | O_CLOEXEC)));
  ASSERT_TRUE(write(to, "one\n"));
  EXPECT_TRUE(until([&] { return ended; }));
  EXPECT_TRUE(closed);
  EXPECT_NE(testing::internal::GetCapturedStderr().find("the output cannot be written"),
            std::string::npos);
}

TEST_F(DescriptorConnectionTest, OverFilesAndNothing) {
  std::string folder = (std::filesystem::temp_directory_path() / "sluice-lines-XXXXXX").string();
  ASSERT_NE(::mkdtemp(folder.data()), nullptr);
  std::string text;
  for (int i = 0; i < 100'000; ++i) text.append(std::to_string(i)).append("\n");
  std::ofstream(folder + "/in") << text;
  start(Descriptor(::open((folder + "/in").c_str(), O_RDONLY | O_CLOEXEC)),
        Descriptor(::open((folder + "/out").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600)));
  EXPECT_TRUE(until([&] { return ended; }));
  std::stringstream out;
  out << std::ifstream(folder + "/out").rdbuf();
  EXPECT_TRUE(out.str() == text);
  std::filesystem::remove_all(folder);

  start(Descriptor(::open("/dev/null", O_RDONLY | O_CLOEXEC)),
        Descriptor(::open("/dev/null", O_WRONLY | O_CLOEXEC)));
  EXPECT_TRUE(until([&] { return ended; }));
}

TEST_F(DescriptorConnectionTest, AReaderThatDoesNotReadHoldsItsOwnRequestsUp) {
  options.output.high_water = 4000;
  options.output.low_water = 1000;
  const Descriptor peer = start_over_socket();
  const std::string line = std::string(999, 'x') + "\n";
  std::size_t sent = 0;
  // Until neither side takes anything more.
  for (int idle = 0; idle < 100; ++idle) {
    while (write(peer, line)) {
      ++sent;
      idle = 0;
    }
    loop.poll();
  }
  EXPECT_LE(session->queued_bytes(), options.output.high_water + line.size());
  EXPECT_LT(lines, sent);
  EXPECT_TRUE(until([&] {
    receive(peer);
    return received.size() == sent * line.size();
  }));
  EXPECT_EQ(lines, sent);
  EXPECT_GE(drains, 1);
  // The part of the peer's last write that was accepted is not a whole line.
  EXPECT_FALSE(closed);
}

TEST_F(DescriptorConnectionTest, ReadsWhatAPeerSaidBeforeItWent) {
  {
    const Descriptor peer = start_over_socket();
    ASSERT_TRUE(write(peer, "one\ntwo\n"));
  }
  EXPECT_TRUE(until([&] { return ended; }));
  EXPECT_EQ(lines, 2U);
}

TEST_F(DescriptorConnectionTest, APeerThatTakesNothingIsDropped) {
  options.output.stall_timeout = 30s;
  const Descriptor peer = start_over_socket();
  session->send(std::string(1U << 20U, 'x'));
  loop.poll();
  clock.advance(29s);
  // Lets a tick pass. Ticks follow the loop's clock, timeouts follow `clock`.
  const TimePoint looked = loop.clock().now() + 5ms;
  ASSERT_TRUE(until([&] { return loop.clock().now() > looked; }));
  EXPECT_FALSE(closed);
  clock.advance(1s);
  EXPECT_TRUE(until([&] { return closed; }));
  EXPECT_EQ(worker.counters.stalled, 1U);
}

TEST_F(DescriptorConnectionTest, ALineHasItsTime) {
  options.line_timeout = 30s;
  const Descriptor peer = start_over_socket();
  ASSERT_TRUE(write(peer, "one\ntw"));
  ASSERT_TRUE(comes(peer, "one\n"));
  clock.advance(20s);
  // The end of one line and the beginning of another.
  ASSERT_TRUE(write(peer, "o\nthr"));
  ASSERT_TRUE(comes(peer, "one\ntwo\n"));
  clock.advance(20s);
  ASSERT_TRUE(write(peer, "ee\n"));
  ASSERT_TRUE(comes(peer, "one\ntwo\nthree\n"));
  clock.advance(100s);
  ASSERT_TRUE(write(peer, "f"));
  ASSERT_TRUE(write(peer, "our\nf"));
  ASSERT_TRUE(comes(peer, "one\ntwo\nthree\nfour\n"));
  EXPECT_FALSE(closed);
  clock.advance(30s);
  EXPECT_TRUE(until([&] { return closed; }));
  EXPECT_EQ(worker.counters.timeouts, 1U);
}

TEST_F(DescriptorConnectionTest, WhatIsUnderWayHasItsTimeAfterTheEnd) {
  options.end_timeout = 10s;
  closes = false;
  const Descriptor peer = start_over_socket();
  ::shutdown(peer.get(), SHUT_WR);
  session->send("late\n");
  ASSERT_TRUE(comes(peer, "late\n"));
  EXPECT_FALSE(closed);
  clock.advance(10s);
  EXPECT_TRUE(until([&] { return closed; }));
}

TEST_F(DescriptorConnectionTest, TheEndOfWhoeverTakesNothingIsSeen) {
  options.end_timeout = 10s;
  options.output.stall_timeout = {};
  const Descriptor peer = start_over_socket();
  session->send(std::string(1U << 20U, 'x'));
  loop.poll();
  // Lets some ticks of the loop's clock pass.
  const auto look = [&] {
    const TimePoint looked = loop.clock().now() + 5ms;
    ASSERT_TRUE(until([&] { return loop.clock().now() > looked; }));
  };
  clock.advance(60s);
  look();
  ASSERT_TRUE(write(peer, "not read\n"));
  ::shutdown(peer.get(), SHUT_WR);
  look();
  clock.advance(9s);
  look();
  EXPECT_FALSE(closed) << "it has its time from the end on";
  clock.advance(1s);
  EXPECT_TRUE(until([&] { return closed; }));
  EXPECT_EQ(worker.counters.timeouts, 1U);
  EXPECT_EQ(lines, 0U);
}

TEST_F(DescriptorConnectionTest, ADrainedWorkerTakesNoLinesAndEnds) {
  closes = false;
  const Descriptor peer = start_over_socket();
  loop.poll();
  ASSERT_TRUE(write(peer, "one\n"));
  worker.drain();
  loop.poll();
  EXPECT_EQ(lines, 0U);
  session->send("last\n");
  session->close();
  ASSERT_TRUE(comes(peer, "last\n"));
  EXPECT_TRUE(until([&] { return ended; }));
}

}  // namespace
}  // namespace sluice
