#include "net/lines/line_protocol.hpp"

#include <gtest/gtest.h>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/manual_executor.hpp"
#include "net/connection/memory_connection.hpp"

namespace sluice {
namespace {

/// Records what happens on a connection. Answers each line with itself.
class LineProtocolTest : public ::testing::Test, protected LineService {
 protected:
  class Handler final : public LineHandler {
   public:
    Handler(LineProtocolTest& test, LineProtocolPtr session)
        : test_(&test), session_(std::move(session)) {}
    bool on_line(std::string_view line) override {
      test_->events.emplace_back(line);
      if (test_->echo) test_->writable = session_->send(std::string(line) + "\n");
      return !test_->pauses;
    }
    void on_long_line() override { test_->events.emplace_back("long"); }
    void on_other_protocol() override {
      test_->events.emplace_back("other");
      session_->send("no\n");
      session_->close();
    }
    void on_drain() override {
      test_->events.emplace_back("drain");
      if (test_->refills) session_->send(std::string(30, 'r'));
    }
    void on_input_end() override {
      test_->events.emplace_back("end");
      if (test_->closes) session_->close();
    }
    void on_close() override { test_->events.emplace_back("close"); }

   private:
    LineProtocolTest* test_;
    LineProtocolPtr session_;
  };

  LineProtocolTest() {
    options.max_line = 20;
    options.output.high_water = 20;
    options.output.low_water = 10;
    options.output.max_queued = 40;
    connect();
  }
  void TearDown() override { peer->tear_down(); }

  void connect() {
    peer = RefPtr(new MemoryConnection(worker, options.output));
    LineProtocol::begin(*peer, *this, uid_t{1000}, options);
    EXPECT_EQ(std::get<uid_t>(opened_by), 1000U);
  }
  std::unique_ptr<LineHandler> open(LineProtocolPtr session, const LinePeer& from) override {
    opened_by = from;
    opened = session;
    return std::make_unique<Handler>(*this, std::move(session));
  }
  std::vector<std::string> take_events() { return std::exchange(events, {}); }

  using Events = std::vector<std::string>;

  ManualExecutor executor;
  ConnectionWorker worker{executor, nullptr, {}};
  LineOptions options;
  RefPtr<MemoryConnection> peer;
  LineProtocolPtr opened;
  LinePeer opened_by;
  Events events;
  bool echo = true;
  bool closes = true;
  bool pauses = false;
  bool refills = false;  // sends more whenever it may, as a fast stream does
  bool writable = true;
};

TEST_F(LineProtocolTest, AnswersLines) {
  EXPECT_TRUE(peer->write("a\nb"));
  EXPECT_EQ(peer->take(), "a\n");
  peer->write("\n");
  EXPECT_EQ(peer->take(), "b\n");
  EXPECT_EQ(take_events(), (Events{"a", "b"}));
}

TEST_F(LineProtocolTest, AHandlerMayTakeItsTimeForALine) {
  pauses = true;
  peer->write("a\nb\nc");
  peer->end();
  executor.run();
  EXPECT_EQ(take_events(), (Events{"a"}));
  opened->resume_input();
  executor.run();
  EXPECT_EQ(take_events(), (Events{"b"}));
  opened->resume_input();
  executor.run();
  EXPECT_EQ(take_events(), (Events{"c"})) << "the end waits too";
  opened->resume_input();
  executor.run();
  EXPECT_EQ(take_events(), (Events{"end"}));
}

TEST_F(LineProtocolTest, AHandlerThatTakesNoMoreDoesNotHoldUpTheEndForEver) {
  using namespace std::chrono_literals;
  options.end_timeout = 2s;
  pauses = true;
  executor.advance(1s);
  peer->write("a\nb");
  peer->end();
  executor.advance(1500ms);
  EXPECT_TRUE(peer->is_open());
  executor.advance(1500ms);
  EXPECT_TRUE(peer->is_over());
}

TEST_F(LineProtocolTest, ALongLineIsOneEvent) {
  peer->write(std::string(100, 'x'));
  peer->write(std::string(100, 'x') + "\nc\n");
  EXPECT_EQ(take_events(), (Events{"long", "c"}));
}

TEST_F(LineProtocolTest, HandsOutNothingWhileThePeerDoesNotRead) {
  EXPECT_FALSE(peer->write("0123456789\n0123456789\nc\nd\n"));
  EXPECT_EQ(take_events(), (Events{"0123456789", "0123456789"}));
  EXPECT_FALSE(writable);
  EXPECT_FALSE(peer->write("e\n"));
  EXPECT_TRUE(take_events().empty());
  EXPECT_EQ(peer->take(), "0123456789\n0123456789\n");
  EXPECT_TRUE(take_events().empty()) << "not within the peer's call";
  executor.run();
  EXPECT_EQ(take_events(), (Events{"drain", "c", "d", "e"}));
  EXPECT_EQ(peer->take(), "c\nd\ne\n");
}

TEST_F(LineProtocolTest, InputIsHandledWhileASenderAlwaysHasMore) {
  refills = true;
  EXPECT_FALSE(opened->send(std::string(30, 'r')));
  peer->write("a\n0123456789\n0123456789\nb\n");
  Events seen;
  for (int reads = 0; reads < 6; ++reads) {
    EXPECT_FALSE(peer->take().empty());
    executor.run();
    for (std::string& event : take_events()) seen.push_back(std::move(event));
  }
  seen.resize(6);
  EXPECT_EQ(seen, (Events{"drain", "a", "0123456789", "0123456789", "drain", "b"}));
}

TEST_F(LineProtocolTest, ALineIsNotLateForTheTimeThatThePeerDoesNotRead) {
  using namespace std::chrono_literals;
  options.line_timeout = 2s;
  executor.advance(1s);
  EXPECT_TRUE(peer->write("a"));
  EXPECT_FALSE(opened->send("01234567890123456789\n"));
  executor.advance(4s);
  peer->take();
  executor.advance(1500ms);
  EXPECT_TRUE(peer->is_open()) << "the line has had 1.5 seconds";
  executor.advance(1s);
  EXPECT_TRUE(peer->is_over()) << "and now more than its two";
}

TEST_F(LineProtocolTest, AMessageMayBeLongerThanTheQueueButWhatFollowsItMayNot) {
  EXPECT_FALSE(opened->send(std::string(1000, 'x')));
  EXPECT_TRUE(peer->is_open());
  opened->send(std::string(40, 'y'));
  EXPECT_TRUE(peer->is_open());
  opened->send("y");
  EXPECT_TRUE(peer->is_open());
  opened->send("y");
  EXPECT_TRUE(peer->is_over());
  EXPECT_TRUE(take_events().empty()) << "not within a call to send()";
  executor.run();
  EXPECT_EQ(take_events(), (Events{"close"}));
  EXPECT_TRUE(opened->send("z"));
  EXPECT_EQ(peer->take(), "");
}

TEST_F(LineProtocolTest, SharedAndCopiedBytesKeepTheirOrder) {
  options.output.high_water = options.output.max_queued = 10000;
  opened->send("a");
  opened->send(Bytes(std::string(2000, 'b')));
  opened->send(Bytes(std::string("c")));
  EXPECT_EQ(peer->take(), "a" + std::string(2000, 'b') + "c");

  options.output.high_water = options.output.max_queued = 1'000'000;
  opened->send("a");
  opened->take(std::string(kTakenText, 'b'));
  opened->take("c");
  opened->take(std::string(kTakenText, 'd'));
  EXPECT_EQ(peer->take(), "a" + std::string(kTakenText, 'b') + "c" + std::string(kTakenText, 'd'));
}

TEST_F(LineProtocolTest, EndsWhenItsLastWordsHaveLeft) {
  peer->write("a\nb");
  peer->end();
  executor.run();
  EXPECT_EQ(take_events(), (Events{"a", "b", "end"}));
  EXPECT_FALSE(peer->is_over());
  EXPECT_EQ(peer->take(), "a\nb\n");
  EXPECT_TRUE(peer->is_over());
  executor.run();
  EXPECT_EQ(take_events(), (Events{"close"}));
}

TEST_F(LineProtocolTest, TheEndWaitsForLinesThatWait) {
  peer->write("0123456789\n0123456789\nc\n");
  peer->end();
  executor.run();
  EXPECT_EQ(take_events(), (Events{"0123456789", "0123456789"}));
  peer->take();
  executor.run();
  EXPECT_EQ(take_events(), (Events{"drain", "c", "end"}));
}

TEST_F(LineProtocolTest, AnsweringGoesOnBehindTheEnd) {
  closes = false;
  peer->end();
  executor.run();
  EXPECT_EQ(take_events(), (Events{"end"}));
  opened->send("late\n");
  EXPECT_EQ(peer->take(), "late\n");
  EXPECT_FALSE(peer->is_over());
  opened->close();
  EXPECT_TRUE(peer->is_over());
}

/// A connection to a port, which a page in a browser may reach too.
class LinesThatBeginWithJsonTest : public LineProtocolTest {
 protected:
  LinesThatBeginWithJsonTest() {
    options.begins_with_json = true;
    connect_again();
  }
  void connect_again() {
    peer->tear_down();
    executor.run();
    connect();
    take_events();
  }
};

TEST_F(LinesThatBeginWithJsonTest, WhatFollowsMayBeAnything) {
  for (const std::string_view begin : {"{}", "[]", " \t{}"}) {
    connect_again();
    peer->write(std::string(begin) + "\nGET / HTTP/1.1\n");
    EXPECT_EQ(take_events(), (Events{std::string(begin), "GET / HTTP/1.1"}));
    EXPECT_TRUE(peer->is_open());
  }
}

TEST_F(LinesThatBeginWithJsonTest, AnotherProtocolIsToldAndEnds) {
  for (const std::string_view begin :
       {"POST / HTTP/1.1\r\n\r\n{}\n", "\x16\x03\x01\n{}\n", "\"{}\"\n{}\n", "\n\r\n \nG"}) {
    connect_again();
    peer->write(begin);
    EXPECT_EQ(peer->take(), "no\n");
    peer->write("{}\n");
    executor.run();
    EXPECT_EQ(take_events(), (Events{"other", "close"})) << begin;
    EXPECT_TRUE(peer->is_over());
  }
}

TEST_F(LinesThatBeginWithJsonTest, TheFirstByteDecides) {
  peer->write("\r\n");
  peer->write(" ");
  EXPECT_TRUE(take_events().empty());
  peer->write("P");
  EXPECT_EQ(take_events(), (Events{"other"}));
}

}  // namespace
}  // namespace sluice
