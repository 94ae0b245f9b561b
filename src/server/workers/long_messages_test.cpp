#include "server/workers/long_messages.hpp"

#include <condition_variable>
#include <deque>
#include <functional>
#include <future>
#include <gtest/gtest.h>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "core/allocation_failure_test_support.hpp"
#include "core/manual_executor.hpp"
#include "protocol/input_rounds.hpp"

namespace sluice {
namespace {

class LongMessagesTest : public ::testing::Test {
 protected:
  static std::string ping(int id) {
    return R"({"jsonrpc":"2.0","id":)" + std::to_string(id) + R"(,"method":"ping"})" +
           std::string(200'000, ' ');
  }
  std::unique_ptr<LongMessage> parse(const std::string& text) {
    return messages.parse(text, [this, number = ++count] { ready.push_back(number); }, {});
  }

  ManualExecutor executor;
  MemoryBudget budget{1'000'000};
  ClientMemory memory{budget};
  LongMessages messages{executor, nullptr, &memory};
  int count = 0;
  std::vector<int> ready;
};

// The digest takes long too, so the loop must not have to compute it.
TEST_F(LongMessagesTest, WhatMayAskQuestionsComesWithItsDigest) {
  const auto call = [](std::string_view arguments) {
    return R"({"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","arguments":)" +
           std::string(arguments) + R"(,"_meta":{"a":)" + std::to_string(arguments.size()) + "}}}" +
           std::string(200'000, ' ');
  };
  std::unique_ptr<LongMessage> one = parse(call(R"({"a":1,"b":2})"));
  executor.run();
  const std::string digest = one->message()->digest;
  Message undigested = *one->message();
  undigested.digest.clear();
  EXPECT_EQ(digest, digest_of(undigested));
  one = parse(call(R"({"b" : 2, "a": 1})"));
  executor.run();
  EXPECT_EQ(one->message()->digest, digest);
  one = parse(call(R"({"b":2,"a":3})"));
  executor.run();
  EXPECT_NE(one->message()->digest, digest);
}

TEST_F(LongMessagesTest, OneIsThereAtATime) {
  std::unique_ptr<LongMessage> first = parse(ping(1));
  std::unique_ptr<LongMessage> second = parse(ping(2));
  const std::unique_ptr<LongMessage> third = parse("{1,2");
  EXPECT_TRUE(ready.empty()) << "on a later turn";
  executor.run();
  EXPECT_EQ(ready, (std::vector<int>{1}));
  second = nullptr;
  executor.run();
  EXPECT_EQ(ready, (std::vector<int>{1}));
  EXPECT_EQ(first->message()->id, "1");
  EXPECT_EQ(first->text(), ping(1));
  first = nullptr;
  executor.run();
  EXPECT_EQ(ready, (std::vector<int>{1, 3}));
  EXPECT_EQ(third->message().error().error.code, -32700);
}

TEST_F(LongMessagesTest, TheNextComesWhenTheFirstIsGoneBeforeItIsReady) {
  std::unique_ptr<LongMessage> first = parse(ping(1));
  const std::unique_ptr<LongMessage> second = parse(ping(2));
  first = nullptr;
  executor.run();
  EXPECT_EQ(ready, (std::vector<int>{2}));
}

TEST(LongMessages, MayGoBeforeTheirWorker) {
  ManualExecutor executor;
  std::promise<void> begun;
  std::promise<void> go_on;
  bool was_ready = false;
  {
    WorkerPool workers(1, SIZE_MAX);
    auto messages = std::make_unique<LongMessages>(executor, &workers, nullptr);
    std::unique_ptr<LongMessage> message = messages->parse(
        R"({"jsonrpc":"2.0","id":1,"method":"ping"})", [&] { was_ready = true; }, {},
        [&](const Message& /*message*/) {
          begun.set_value();
          go_on.get_future().wait();
        });
    executor.run();
    begun.get_future().wait();
    message = nullptr;
    messages = nullptr;
    go_on.set_value();
  }
  EXPECT_FALSE(was_ready);
}

TEST_F(LongMessagesTest, ALackOfMemoryLeavesNothingBehind) {
  WorkerPool workers(1, SIZE_MAX);
  LongMessages on_worker(executor, &workers, &memory);
  const std::string client = "a client with a name that needs memory";
  const auto run_all = [&] {
    while (!workers.is_idle()) executor.wait(std::chrono::milliseconds(1));
    executor.run();
  };
  fail_each_allocation([&] {
    std::unique_ptr<LongMessage> first = on_worker.parse(ping(1), [] {}, client);
    const std::unique_ptr<LongMessage> second = on_worker.parse(ping(2), [] {}, client);
    executor.run();
    first = nullptr;
    executor.run();
  });
  run_all();
  EXPECT_EQ(on_worker.under_way(), 0U);
  EXPECT_EQ(budget.used(), 0U);
  const std::unique_ptr<LongMessage> last = on_worker.parse(ping(3), [] {}, client);
  executor.run();
  run_all();
  ASSERT_TRUE(last->is_ready());
  EXPECT_EQ(last->message()->id, "3");
}

TEST_F(LongMessagesTest, ParsesBatches) {
  const std::unique_ptr<LongMessage> batch = parse("[" + ping(1) + ",{}," + ping(3) + "]");
  const std::unique_ptr<LongMessage> none = parse("[" + std::string(100'000, ' ') + "]");
  executor.run();
  ASSERT_TRUE(batch->is_ready());
  ASSERT_EQ(batch->batch()->size(), 3U);
  EXPECT_EQ(batch->message(0)->id, "1");
  EXPECT_EQ(batch->message(1).error().error.code, -32600);
  EXPECT_EQ(batch->message(2)->id, "3");
}

TEST_F(LongMessagesTest, AClientDoesNotWaitForAnother) {
  std::vector<std::unique_ptr<LongMessage>> held;
  std::string turns;
  for (const std::string client : {"a", "a", "b", "a", "b"}) {
    held.push_back(messages.parse(ping(1), [&, client] { turns += client; }, client));
  }
  executor.run();
  EXPECT_EQ(turns, "ab");
  held[2] = nullptr;
  executor.run();
  EXPECT_EQ(turns, "abb") << "what a holds is not b's";
}

TEST_F(LongMessagesTest, ChecksWhatIsAMessage) {
  std::vector<std::unique_ptr<LongMessage>> held;
  std::string checked;
  for (const std::string& text : {ping(1), std::string("{1,2"), ping(3)}) {
    held.push_back(
        messages.parse(text, [] {}, {}, [&](const Message& message) { checked += message.id; }));
  }
  for (auto& each : held) {
    executor.run();
    EXPECT_TRUE(each->is_ready());
    each = nullptr;
  }
  EXPECT_EQ(checked, "13");
}

TEST_F(LongMessagesTest, DrawsOnItsMemory) {
  std::vector<std::unique_ptr<LongMessage>> many;
  for (int i = 1; i <= 6; ++i) many.push_back(parse(ping(i)));
  executor.run();
  for (int i = 1; i <= 6; ++i) {
    ASSERT_TRUE(many.front()->is_ready());
    EXPECT_EQ(many.front()->message().has_value(), i <= 2) << i;
    if (i > 2) EXPECT_EQ(many.front()->message().error().id, std::to_string(i));
    many.erase(many.begin());
    executor.run();
  }
  EXPECT_EQ(budget.used(), 0U);
}

/// A loop that other threads can post to. The test runs its tasks one by one.
class QueuedLoop final : public Executor {
 public:
  void post(Task task) override {
    const std::lock_guard lock(mutex_);
    posted_.push_back(std::move(task));
    changed_.notify_one();
  }
  TimerId schedule_at(TimePoint when, Task task) override {
    return inner_.schedule_at(when, std::move(task));
  }
  void cancel(TimerId id) override { inner_.cancel(id); }
  [[nodiscard]] const Clock& clock() const override { return inner_.clock(); }
  [[nodiscard]] bool on_loop_thread() const override { return true; }
  void add_hook(TurnHook& hook) override { inner_.at_turn_end(hook); }
  void remove_hook(TurnHook& hook) override { inner_.forget(hook); }

  void end_turn() { inner_.run(); }
  /// Waits for a task, and runs it.
  void run_one() {
    end_turn();
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return !posted_.empty(); });
    Task task = std::move(posted_.front());
    posted_.pop_front();
    lock.unlock();
    task();
  }

 private:
  ManualExecutor inner_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Task> posted_;
};

TEST(LongMessagesOnAWorker, AreParsedAndFreedThere) {
  QueuedLoop loop;
  WorkerPool workers(1, SIZE_MAX);
  LongMessages messages(loop, &workers, nullptr);
  for (int i = 0; i < 20; ++i) {
    bool is_ready = false;
    std::unique_ptr<LongMessage> message =
        messages.parse(R"({"jsonrpc":"2.0","id":7,"method":"ping","params":{"a":[)" +
                           std::string(100'000, ' ') + "1]}}",
                       [&] { is_ready = true; }, {});
    loop.end_turn();
    const bool is_kept = i % 3 != 0;
    if (!is_kept) message = nullptr;
    loop.run_one();
    ASSERT_EQ(is_ready, is_kept);
    if (is_kept) EXPECT_EQ(message->message()->id, "7");
  }
}

TEST(LongMessagesOnAWorker, CountAsMemoryUntilTheyAreFreed) {
  QueuedLoop loop;
  MemoryBudget budget(std::size_t{1} << 20U);
  ClientMemory memory(budget);
  std::promise<void> begun;
  std::promise<void> go_on;
  {
    WorkerPool workers(1, SIZE_MAX);
    LongMessages messages(loop, &workers, &memory);
    const std::string text =
        R"({"jsonrpc":"2.0","id":1,"method":"ping"})" + std::string(LongMessages::kLong, ' ');
    std::unique_ptr<LongMessage> message = messages.parse(
        text, [] {}, "a",
        [&](const Message&) {
          begun.set_value();
          go_on.get_future().wait();
        });
    loop.end_turn();
    begun.get_future().wait();
    message = nullptr;
    for (int i = 0; i < 3; ++i) message = messages.parse(text, [] {}, "a");
    message = nullptr;
    loop.end_turn();
    EXPECT_GE(budget.used(), 4 * text.size());
    go_on.set_value();
  }
  EXPECT_EQ(budget.used(), 0U);
}

TEST(LongMessagesOnAWorker, ClientsHaveTheirTurnsWithWhatTheyHaveOnAllLoops) {
  QueuedLoop tasks;  // shared by all loops
  WorkerPool workers(1, SIZE_MAX);
  std::promise<void> go_on;
  std::string turns;  // written by one thread at a time
  {
    LongMessages loops[] = {
        {tasks, &workers, nullptr}, {tasks, &workers, nullptr}, {tasks, &workers, nullptr}};
    std::vector<std::unique_ptr<LongMessage>> held;
    std::promise<void> begun;
    const auto parse = [&](LongMessages& loop, const std::string& client) {
      held.push_back(loop.parse(
          R"({"jsonrpc":"2.0","id":1,"method":"ping"})",
          [&held, number = held.size()] { held[number] = nullptr; }, client,
          [&, client, is_first = held.empty()](const Message& /*message*/) {
            turns += client;
            if (!is_first) return;
            begun.set_value();
            go_on.get_future().wait();
          }));
      tasks.end_turn();
    };
    parse(loops[0], "a");
    begun.get_future().wait();
    for (LongMessages& loop : loops) {
      for (int i = 0; i < 2; ++i) parse(loop, "a");
    }
    parse(loops[0], "b");
    parse(loops[1], "c");
    go_on.set_value();
    for (std::size_t i = 0; i < held.size(); ++i) tasks.run_one();
  }
  EXPECT_EQ(turns, "abcaaaaaa");
}

}  // namespace
}  // namespace sluice
