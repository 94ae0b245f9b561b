#include "net/loop/event_loop.hpp"

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <ctime>
#include <future>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include "core/clock.hpp"
#include "net/loop/descriptor.hpp"

namespace sluice {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

class EventLoopTest : public ::testing::Test {
 protected:
  struct Hook final : EventLoop::TurnHook {
    Hook(std::vector<std::string>& written, std::string what)
        : log(&written), name(std::move(what)) {}
    void on_turn_end() override {
      log->push_back(name);
      if (then) then();
    }
    std::vector<std::string>* log;
    std::string name;
    std::function<void()> then;
  };

  Executor::Task note(std::string what) {
    return [this, what = std::move(what)] { log.push_back(what); };
  }
  void settle() {
    while (loop.poll()) {
    }
  }
  void run_until(const std::function<bool()>& done) {
    const auto deadline = std::chrono::steady_clock::now() + 10s;
    while (!done() && std::chrono::steady_clock::now() < deadline) {
      if (!loop.poll()) std::this_thread::yield();
    }
    ASSERT_TRUE(done());
  }

  EventLoop loop;
  std::vector<std::string> log;
};

TEST_F(EventLoopTest, RunsPostedTasksInOrderButNotAtOnce) {
  loop.poll();
  ASSERT_TRUE(loop.on_loop_thread());
  loop.post(note("a"));
  loop.post([this] {
    log.emplace_back("b");
    loop.post(note("d"));
  });
  loop.post(note("c"));
  EXPECT_THAT(log, IsEmpty());
  settle();
  EXPECT_THAT(log, ElementsAre("a", "b", "c", "d"));
}

TEST_F(EventLoopTest, WhatATaskThrowsCostsThatTaskAlone) {
  testing::internal::CaptureStderr();
  loop.post([] { throw std::runtime_error("a"); });
  loop.post(note("posted"));
  std::thread([this] {
    loop.post([] { throw 1; });
    loop.post(note("from elsewhere"));
  }).join();
  loop.schedule_at(loop.clock().now(), [] { throw std::runtime_error("b"); });
  loop.schedule_at(loop.clock().now(), note("timer"));
  settle();
  EXPECT_THAT(log, testing::UnorderedElementsAre("posted", "from elsewhere", "timer"));
  testing::internal::GetCapturedStderr();  // at most one of them is logged (LogLimit)
}

TEST_F(EventLoopTest, WhatAHookOrAWatcherThrowsCostsThatOneAlone) {
  struct Throws final : EventLoop::Watcher {
    void on_ready(std::uint32_t /*events*/) override { throw std::runtime_error("w"); }
  };
  testing::internal::CaptureStderr();
  Throws watcher;
  int ends[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
  const Descriptor one(ends[0]);
  const Descriptor other(ends[1]);
  loop.watch(one.get(), watcher);
  Hook bad(log, "bad");
  bad.then = [] { throw std::bad_alloc(); };
  Hook good(log, "good");
  loop.at_turn_end(bad);
  loop.at_turn_end(good);
  settle();
  loop.unwatch(one.get(), watcher);
  EXPECT_THAT(log, ElementsAre("bad", "good"));
  testing::internal::GetCapturedStderr();
}

TEST_F(EventLoopTest, DiscardsWhatTasksHoldAndWhatThatPosts) {
  struct PostsAtTheEnd {
    explicit PostsAtTheEnd(EventLoop& where) : home(&where) {}
    ~PostsAtTheEnd() {
      home->post([last = std::shared_ptr<int>(std::exchange(kept, nullptr))] {});
    }
    EventLoop* home;
    std::shared_ptr<int> kept = std::make_shared<int>(1);
  };
  auto held = std::make_shared<PostsAtTheEnd>(loop);
  const std::weak_ptr<int> last = held->kept;
  loop.schedule_at(TimePoint::max(), [held = std::move(held)] {});
  loop.post(note("never"));
  loop.discard_tasks();
  EXPECT_TRUE(last.expired());
  settle();
  EXPECT_THAT(log, IsEmpty());
}

TEST_F(EventLoopTest, CallsEachHookOnceWhenTheTasksOfATurnHaveRun) {
  loop.poll();
  Hook first(log, "first");
  Hook second(log, "second");
  Hook withdrawn(log, "withdrawn");
  loop.post([&] {
    log.emplace_back("task");
    loop.at_turn_end(first);
    loop.at_turn_end(second);
    loop.at_turn_end(withdrawn);
    loop.at_turn_end(first);
    loop.post([&] {
      log.emplace_back("its task");
      loop.at_turn_end(first);
    });
  });
  loop.post([&] { loop.forget(withdrawn); });
  settle();
  EXPECT_THAT(log, ElementsAre("task", "its task", "first", "second"));
}

TEST_F(EventLoopTest, CallsHooksThatNoTaskAskedFor) {
  loop.poll();
  Hook hook(log, "hook");
  loop.at_turn_end(hook);
  settle();
  EXPECT_THAT(log, ElementsAre("hook"));
}

TEST_F(EventLoopTest, AHookMayAskForAnotherTurnAndForgetOthers) {
  loop.poll();
  Hook first(log, "first");
  Hook second(log, "second");
  int again = 2;
  first.then = [&] {
    loop.forget(second);
    if (again-- > 0) loop.at_turn_end(first);
  };
  loop.at_turn_end(first);
  loop.at_turn_end(second);
  settle();
  EXPECT_THAT(log, ElementsAre("first", "first", "first"));
}

TEST_F(EventLoopTest, WorkThatPostsItselfHoldsNoHookBack) {
  loop.poll();
  Hook hook(log, "hook");
  int rounds = 0;
  std::function<void()> work = [&] {
    if (++rounds < 1000) loop.post([&] { work(); });
  };
  loop.post([&] { work(); });
  loop.at_turn_end(hook);
  for (int polls = 0; log.empty(); ++polls) {
    loop.poll();
    ASSERT_LT(polls, 10);
  }
  EXPECT_LT(rounds, 10);
  settle();
  EXPECT_EQ(rounds, 1000);
}

TEST_F(EventLoopTest, RunsTimersInOrderOfTheirTimes) {
  loop.poll();
  const TimePoint now = loop.clock().now();
  loop.schedule_at(now + 3ms, note("3"));
  loop.schedule_at(now + 1ms, note("1"));
  loop.schedule_at(now + 1ms, note("1 too"));
  const Executor::TimerId gone = loop.schedule_at(now + 2ms, note("cancelled"));
  loop.schedule_at(now - 1s, note("late"));
  loop.cancel(gone);
  loop.cancel(gone);
  loop.cancel(0);
  run_until([&] { return log.size() == 4; });
  EXPECT_THAT(log, ElementsAre("late", "1", "1 too", "3"));
}

TEST_F(EventLoopTest, ATimerThatSchedulesADueTimerLetsOthersRunBetween) {
  const TimePoint now = loop.clock().now();
  int left = 5;
  std::function<void()> again = [&] {
    log.push_back("timer");
    loop.post(note("other"));
    if (--left > 0) loop.schedule_at(now - 1s, again);
  };
  loop.schedule_at(now, again);
  while (log.size() < 10) loop.poll();
  for (std::size_t i = 0; i < log.size(); ++i) {
    EXPECT_EQ(log[i], i % 2 == 0 ? "timer" : "other") << i;
  }
}

TEST(EventLoopClockTest, MayBeMovedByHand) {
  ManualClock clock;
  EventLoop by_hand(clock);
  EXPECT_EQ(by_hand.next_timer(), std::nullopt);
  bool ran = false;
  by_hand.schedule_at(clock.now() + 1h, [&ran] { ran = true; });
  EXPECT_EQ(by_hand.next_timer(), clock.now() + 1h);
  by_hand.poll();
  EXPECT_FALSE(ran);
  clock.advance(1h);
  EXPECT_TRUE(by_hand.poll());
  EXPECT_TRUE(ran);
  EXPECT_EQ(by_hand.next_timer(), std::nullopt);
}

TEST_F(EventLoopTest, ATimerMayScheduleAndCancelTimers) {
  loop.poll();
  const TimePoint now = loop.clock().now();
  const Executor::TimerId gone = loop.schedule_at(now + 1ms, note("cancelled"));
  loop.schedule_at(now, [&, gone] {
    loop.cancel(gone);
    loop.schedule_at(now, note("second"));
    log.emplace_back("first");
  });
  loop.schedule_at(now + 5ms, note("last"));
  run_until([&] { return log.size() == 3; });
  EXPECT_THAT(log, ElementsAre("first", "second", "last"));
}

TEST_F(EventLoopTest, ForgetsManyCancelledTimers) {
  loop.poll();
  const TimePoint now = loop.clock().now();
  for (int i = 0; i < 100'000; ++i) {
    loop.cancel(loop.schedule_at(now + 1h, [held = std::string(1000, 'x')] { (void)held; }));
  }
  loop.schedule_at(now + 1ms, note("kept"));
  run_until([&] { return !log.empty(); });
}

/// Both ends of a socket pair. The near one is watched.
struct Watched final : EventLoop::Watcher {
  explicit Watched(EventLoop& event_loop) : loop(&event_loop) {
    int ends[2] = {-1, -1};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends), 0);
    near = Descriptor(ends[0]);
    far = Descriptor(ends[1]);
    loop->watch(near.get(), *this);
  }
  ~Watched() override { unwatch(); }
  void unwatch() {
    if (loop != nullptr) std::exchange(loop, nullptr)->unwatch(near.get(), *this);
  }
  void say(std::string_view text) const {
    EXPECT_EQ(::write(far.get(), text.data(), text.size()), static_cast<ssize_t>(text.size()));
  }
  void on_ready(std::uint32_t events) override {
    if ((events & EPOLLIN) == 0) return;
    ++ready;
    if (then) then();
  }
  EventLoop* loop;
  Descriptor near;
  Descriptor far;
  int ready = 0;
  std::function<void()> then;
};

TEST_F(EventLoopTest, TellsOnceOfEachChangeToReady) {
  Watched watched(loop);
  settle();
  EXPECT_EQ(watched.ready, 0);
  watched.say("a");
  settle();
  EXPECT_EQ(watched.ready, 1);
  settle();
  EXPECT_EQ(watched.ready, 1);
  watched.say("b");
  settle();
  EXPECT_EQ(watched.ready, 2);
  watched.unwatch();
  watched.say("c");
  settle();
  EXPECT_EQ(watched.ready, 2);
}

TEST_F(EventLoopTest, TellsNobodyWhoHasBeenWithdrawnInTheSameTurn) {
  Watched first(loop);
  Watched second(loop);
  settle();
  first.then = [&] { second.unwatch(); };
  second.then = [&] { first.unwatch(); };
  first.say("a");
  second.say("b");
  settle();
  EXPECT_EQ(first.ready + second.ready, 1);
}

TEST_F(EventLoopTest, TakesTasksFromOtherThreadsInTheirOrder) {
  static constexpr int kThreads = 4;
  static constexpr int kTasks = 5000;
  std::array<int, kThreads> next{};
  int wrong = 0;
  int ran = 0;
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < kTasks; ++i) {
        loop.post([&, t, i] {
          if (next[t]++ != i) ++wrong;
          if (++ran == kThreads * kTasks) loop.stop();
        });
      }
    });
  }
  loop.run();
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(ran, kThreads * kTasks);
  EXPECT_EQ(wrong, 0);
}

TEST_F(EventLoopTest, StopsAlsoIfAskedBeforeItRuns) {
  loop.stop();
  loop.run();
}

TEST(LoopPoolTest, ItsThreadsOutliveTheReaderOfAPipe) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe(ends.data()), 0);
  ::close(ends[0]);
  LoopPool pool(1);
  pool.start();
  std::promise<int> failure;
  pool.loop(0).post([&] { failure.set_value(::write(ends[1], "x", 1) < 0 ? errno : 0); });
  EXPECT_EQ(failure.get_future().get(), EPIPE);
  pool.stop();
  ::close(ends[1]);
}

TEST(LoopPoolTest, RunsEachLoopOnAThreadOfItsOwn) {
  LoopPool pool(3);
  std::array<std::atomic<bool>, 3> ran{};
  pool.start();
  for (std::size_t i = 0; i < pool.size(); ++i) {
    pool.loop(i).post([&, i] {
      for (std::size_t other = 0; other < pool.size(); ++other) {
        EXPECT_EQ(pool.loop(other).on_loop_thread(), other == i);
      }
      ran[i] = true;
    });
  }
  for (const std::atomic<bool>& one : ran) {
    while (!one) std::this_thread::yield();
  }
  EXPECT_FALSE(pool.loop(0).on_loop_thread());
  pool.stop();
  EXPECT_GE(LoopPool().size(), 1U);
}

/// Makes epoll_pwait2 fail in this thread from now on, as seccomp filters of containers do. Returns
/// false if the filter cannot be installed.
bool fail_epoll_pwait2(int error) {
  sock_filter program[] = {
      {BPF_LD | BPF_W | BPF_ABS, 0, 0, offsetof(seccomp_data, nr)},
      {BPF_JMP | BPF_JEQ | BPF_K, 0, 1, SYS_epoll_pwait2},
      {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ERRNO | static_cast<unsigned>(error)},
      {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW},
  };
  const sock_fprog filter{.len = std::size(program), .filter = program};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

TEST(EventLoopAlone, HearsWhatHasComeWhileItWasStoppedBeforeItsTimers) {
  struct Watcher final : EventLoop::Watcher {
    void on_ready(std::uint32_t events) override {
      if ((events & EPOLLIN) != 0) heard.emplace_back("socket");
    }
    std::vector<std::string> heard;
  };
  std::optional<std::vector<std::string>> heard;
  std::thread([&heard] {
    // As after the signal that lets a stopped process go on.
    if (!fail_epoll_pwait2(EINTR)) return;
    std::array<int, 2> ends{};
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends.data()), 0);
    const Descriptor reader(ends[0]);
    const Descriptor writer(ends[1]);
    EventLoop loop;
    Watcher watcher;
    loop.watch(reader.get(), watcher);
    ASSERT_EQ(::write(writer.get(), "x", 1), 1);
    loop.schedule_at(loop.clock().now(), [&] {
      watcher.heard.emplace_back("timer");
      loop.stop();
    });
    loop.run();
    loop.unwatch(reader.get(), watcher);
    heard = std::move(watcher.heard);
  }).join();
  if (!heard) GTEST_SKIP() << "no filters of system calls here";
  EXPECT_THAT(*heard, ElementsAre("socket", "timer"));
}

TEST(EventLoopAlone, WaitsAndHearsWhereItsSystemCallIsRefused) {
  using Busy = std::optional<std::chrono::nanoseconds>;
  const auto done = std::make_shared<std::promise<Busy>>();
  std::thread([done] {
    if (!fail_epoll_pwait2(EPERM)) return done->set_value({});
    EventLoop loop;
    std::thread other;
    loop.schedule_at(loop.clock().now() + 200ms, [&] {
      other = std::thread([&loop] { loop.post([&loop] { loop.stop(); }); });
    });
    loop.run();
    other.join();
    timespec busy{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &busy);
    done->set_value(std::chrono::seconds(busy.tv_sec) + std::chrono::nanoseconds(busy.tv_nsec));
  }).detach();
  auto result = done->get_future();
  ASSERT_EQ(result.wait_for(10s), std::future_status::ready) << "it hears nothing";
  const Busy busy = result.get();
  if (!busy) GTEST_SKIP() << "no filters of system calls here";
  EXPECT_LT(*busy, 100ms) << "it spins";
}

}  // namespace
}  // namespace sluice
