// Runs of the whole runtime - agents, clients, servers and a store, on their threads - whose calls,
// limits and breaks come from a seed. The process of a run "dies" between two events, and another
// agent goes on with what is kept. Whatever the threads do: the events are one sequence, each chunk
// comes once and in its order although nobody may take it in time, calls end, and no tool does
// twice what has effects.

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <gtest/gtest.h>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <system_error>
#include <unistd.h>
#include <utility>

#include "memory_store.hpp"
#include "sluice/agent.hpp"
#include "sluice/server.hpp"

namespace sluice {

struct Emit {
  int n;
};

namespace {

#ifdef SLUICE_SANITIZED
constexpr unsigned kSeeds = 60;
#else
constexpr unsigned kSeeds = 300;
#endif
/// Every so many seeds are kept in a file.
constexpr unsigned kInFile = 20;
constexpr int kMostCalls = 64;
constexpr std::uint32_t kMostAnswers = 12;  // that call tools

/// A store in a file of its own.
class FileStore {
 public:
  explicit FileStore(unsigned seed)
      : path_(std::filesystem::temp_directory_path() /
              ("sluice-seeded-" + std::to_string(getpid()) + "-" + std::to_string(seed))) {}
  ~FileStore() {
    std::error_code ignored;
    for (const char* const suffix : {"", "-wal", "-shm"}) {
      std::filesystem::remove(path_.string() + suffix, ignored);
    }
  }
  FileStore(const FileStore&) = delete;
  FileStore& operator=(const FileStore&) = delete;
  [[nodiscard]] std::shared_ptr<RunStore> open() const { return sqlite_run_store(path_.string()); }

 private:
  const std::filesystem::path path_;
};

class SeededRun {
 public:
  explicit SeededRun(unsigned seed) : seed_(seed), random_(seed), file_(seed) {
    policy_.when =
        std::array{ReactionPolicy::When::pass_through, ReactionPolicy::When::every_chunk,
                   ReactionPolicy::When::on_demand, ReactionPolicy::When::on_idle}[random_() % 4];
    events_.overflow = random_() % 2 == 0 ? OutputOverflow::block : OutputOverflow::coalesce;
    events_.max_call_events = 1 + random_() % 8;
    if (seed % kInFile != 0) memory_ = std::make_shared<MemoryStore>();
  }

  void play() {
    bool is_over = false;
    for (int life = 0; life < 30 && !is_over && !::testing::Test::HasFailure(); ++life) {
      // The last one lives to see the end.
      const unsigned most = life == 29 || random_() % 3 == 0 ? UINT32_MAX : random_() % 80;
      const Agent agent = make_agent();
      Run run = begin(agent, life);
      is_over = take(run, most);
    }
    EXPECT_TRUE(is_over);
    for (std::size_t n = 0; n < done_.size(); ++n) EXPECT_LE(done_[n], 1) << "call " << n;
  }

 private:
  static int chunks_of(std::int64_t n) { return static_cast<int>(n * 7 % 40); }
  static bool fails(std::int64_t n) { return n % 5 == 4; }

  Agent make_agent() {
    const auto emit = [this](Emit in, Call& /*call*/) -> Stream<std::string> {
      ++done_.at(static_cast<std::size_t>(in.n));
      for (int i = 0; i < chunks_of(in.n); ++i) co_yield text(std::to_string(i) + " ");
      if (fails(in.n)) throw ToolError("it has failed");
      co_return "emitted " + std::to_string(in.n);
    };
    Server left("left", "1");
    left.tool("emit", "Emits numbers", emit);
    Server right("right", "1");
    right.tool("pour", "Emits numbers, too", emit);
    AgentOptions options;
    options.servers = {{"left", connect(left)}, {"right", connect(right)}};
    options.policy = policy_;
    options.budget.turns = 1000;  // answers that are broken off count
    options.events = events_;
    options.store = memory_ != nullptr ? memory_ : file_.open();
    return Agent(
        custom_model("seeded", [this](const ModelRequest&, ModelAnswer& to) { answer(to); }),
        std::move(options));
  }

  static Run begin(const Agent& agent, int life) {
    if (life > 0) {
      try {
        return agent.resume("run");
      } catch (const Error& error) {
        EXPECT_EQ(error.code, 404) << error.message;  // it had not been kept yet
      }
    }
    return agent.run("Go", "run");
  }

  /// What the model says is a matter of the seed and of how often it was asked.
  void answer(ModelAnswer& to) {
    const std::uint32_t number = answers_++;
    std::mt19937 random(seed_ * kMostAnswers + number);
    to.text("Well. ");
    if (number >= kMostAnswers) return;
    for (unsigned calls = random() % 4; calls > 0; --calls) {
      const int n = next_call_++;
      if (n < kMostCalls) to.call(random() % 2 == 0 ? "emit" : "pour", {{"n", n}});
    }
  }

  struct Seen {
    std::int64_t n = 0;
    std::uint64_t next = 0;  // the number of the next chunk
  };

  /// Takes so many events. Returns whether the last one was among them.
  bool take(Run& run, unsigned most) {
    std::map<std::string, Seen> calls;
    std::uint64_t number = 0;
    for (unsigned taken = 0; taken < most; ++taken) {
      const std::optional<AgentEvent> event = run.next();
      if (!event) {
        ADD_FAILURE() << "no last event";
        return true;
      }
      EXPECT_EQ(event->sequence_number, number++);
      switch (event->type) {
        case AgentEventType::tool_output_started:
          calls[event->call_id].n = event->data.at("arguments").at("n").as_int64();
          break;
        case AgentEventType::tool_output_delta:
          check_output(*event, calls[event->call_id]);
          break;
        case AgentEventType::tool_output_done:
          check_end(*event, calls[event->call_id]);
          calls.erase(event->call_id);
          break;
        case AgentEventType::run_done:
          EXPECT_EQ(event->data.at("status"), "completed") << event->data.at("reason");
          EXPECT_TRUE(calls.empty()) << "calls go on";
          EXPECT_FALSE(run.next()) << "it goes on";
          return true;
        default:
          break;
      }
    }
    return false;
  }
  static void check_output(const AgentEvent& event, Seen& seen) {
    EXPECT_EQ(event.first, seen.next) << "call " << seen.n;
    EXPECT_EQ(event.dropped, 0U);
    std::string expected;
    for (std::uint64_t i = event.first; i <= event.last; ++i) expected += std::to_string(i) + " ";
    EXPECT_EQ(event.text, expected);
    seen.next = event.last + 1;
  }
  static void check_end(const AgentEvent& event, const Seen& seen) {
    EXPECT_EQ(event.data.at("status"), fails(seen.n) ? "failed" : "completed");
    EXPECT_EQ(seen.next, static_cast<std::uint64_t>(chunks_of(seen.n))) << "call " << seen.n;
  }

  const unsigned seed_;
  std::mt19937 random_;
  ReactionPolicy policy_;
  RunEventsOptions events_;
  const FileStore file_;
  std::shared_ptr<RunStore> memory_;                 // null: it is kept in the file
  std::array<std::atomic<int>, kMostCalls> done_{};  // how often, by the call
  std::atomic<std::uint32_t> answers_ = 0;
  std::atomic<int> next_call_ = 0;
};

TEST(SeededRuns, WhatMustHoldHoldsOnAllThreads) {
  for (unsigned seed = 1; seed <= kSeeds; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    SeededRun(seed).play();
    if (::testing::Test::HasFailure()) return;
  }
}

}  // namespace
}  // namespace sluice
