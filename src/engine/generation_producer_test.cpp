#include "engine/generation_producer.hpp"

#include <gtest/gtest.h>
#include <memory>
#include <utility>
#include <vector>

#include "core/manual_executor.hpp"

namespace sluice {
namespace {

/// Posts tasks to a loop and says that the caller is on another thread, as an engine's thread is.
class LoopElsewhere final : public Executor {
 public:
  explicit LoopElsewhere(ManualExecutor& loop) : loop_(loop) {}
  void post(Task task) override { loop_.post(std::move(task)); }
  TimerId schedule_at(TimePoint when, Task task) override {
    return loop_.schedule_at(when, std::move(task));
  }
  void cancel(TimerId id) override { loop_.cancel(id); }
  [[nodiscard]] const Clock& clock() const override { return loop_.clock(); }
  [[nodiscard]] bool on_loop_thread() const override { return false; }

 protected:
  void add_hook(TurnHook& /*hook*/) override {}
  void remove_hook(TurnHook& /*hook*/) override {}

 private:
  ManualExecutor& loop_;
};

struct Ended {
  std::size_t deltas = 0;
  std::vector<Completion> completions;
};

/// An output that has room for a given number of deltas.
class SmallGeneration final : public GenerationProducer {
 public:
  SmallGeneration(Executor& home, Ended& seen, std::size_t room)
      : GenerationProducer(home), seen_(seen), room_(room) {}

 private:
  bool append(const Delta& /*delta*/) override { return ++seen_.deltas < room_; }
  void flush() override {}
  void complete(const Completion& completion) override { seen_.completions.push_back(completion); }

  Ended& seen_;
  std::size_t room_;
};

/// An engine that completes only when the test says so, not when it is cancelled.
class ScriptedEngine final : public Engine {
 public:
  struct Run final : Generation {
    explicit Run(bool& stopped) : stopped(stopped) {}
    void cancel() override { stopped = true; }
    void resume() override {}
    [[nodiscard]] GenerationStatus status() const override { return {}; }
    bool& stopped;
  };

  Result<std::unique_ptr<Generation>> start(GenerationRequest /*request*/,
                                            std::shared_ptr<GenerationSink> to,
                                            Executor& /*home*/) override {
    sink = std::move(to);
    return std::make_unique<Run>(stopped);
  }
  [[nodiscard]] EngineInfo info() const override { return {}; }
  [[nodiscard]] EngineStats stats() const override { return {}; }
  void shutdown() override {}

  std::shared_ptr<GenerationSink> sink;
  bool stopped = false;
};

class GenerationProducerTest : public testing::Test {
 protected:
  /// Starts a generation whose output is full after `room` deltas. The engine has made `made`
  /// deltas beyond that, as an engine does until it is told to stop.
  void start(std::size_t room, std::size_t made) {
    producer_ = std::make_shared<SmallGeneration>(home_, seen_, room);
    ASSERT_TRUE(producer_->start(engine_, {}));
    for (std::size_t i = 0; i < room + made; ++i) engine_.sink->on_delta({.text = "x"});
    loop_.run();
    ASSERT_EQ(seen_.deltas, room);
  }
  void complete(Completion::Reason reason) {
    Completion completion;
    completion.reason = reason;
    engine_.sink->on_complete(std::move(completion));
    engine_.sink = nullptr;
    loop_.run();
  }

  ManualExecutor loop_;
  LoopElsewhere home_{loop_};
  Ended seen_;
  ScriptedEngine engine_;
  std::shared_ptr<GenerationProducer> producer_;
};

TEST_F(GenerationProducerTest, CancelledWithoutRoomItEndsAllTheSame) {
  start(2, 30);
  producer_->on_cancel();
  loop_.run();
  EXPECT_TRUE(engine_.stopped);
  complete(Completion::Reason::cancelled);
  EXPECT_EQ(seen_.deltas, 32U) << "no delta is lost";
  ASSERT_EQ(seen_.completions.size(), 1U);
  EXPECT_EQ(seen_.completions[0].reason, Completion::Reason::cancelled);
}

TEST_F(GenerationProducerTest, CompletedWithoutRoomItEndsOnceItIsCancelled) {
  start(2, 30);
  complete(Completion::Reason::stop);
  EXPECT_TRUE(seen_.completions.empty()) << "the remaining deltas wait for room";
  producer_->on_cancel();
  loop_.run();
  EXPECT_EQ(seen_.deltas, 32U);
  ASSERT_EQ(seen_.completions.size(), 1U);
  EXPECT_EQ(seen_.completions[0].reason, Completion::Reason::stop);
}

TEST_F(GenerationProducerTest, CompletedWithoutRoomItEndsAtItsOutputsPace) {
  start(2, 2);
  complete(Completion::Reason::stop);
  for (std::size_t deltas = 3; deltas <= 4; ++deltas) {
    EXPECT_TRUE(seen_.completions.empty());
    producer_->on_writable();
    loop_.run();
    EXPECT_EQ(seen_.deltas, deltas);
  }
  producer_->on_writable();
  loop_.run();
  EXPECT_EQ(seen_.completions.size(), 1U);
}

}  // namespace
}  // namespace sluice
