// Processes of the model that die in the middle of answers, again and again.

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <iterator>
#include <memory>
#include <mutex>
#include <random>
#include <set>
#include <string>
#include <sys/types.h>
#include <utility>
#include <vector>

#include "core/manual_executor.hpp"
#include "engine/rkllm/rkllm_engine.hpp"
#include "engine/rkllm/runtime/fake_rkllm_test_support.hpp"

namespace sluice::rkllm {
namespace {

using namespace std::chrono_literals;
using ::testing::AnyOf;

/// How many answers have begun and ended. Thread-safe.
class Counts {
 public:
  void add(int& of) {
    const std::lock_guard lock(mutex_);
    ++of;
    changed_.notify_all();
  }
  bool wait(const int& of, int number) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, 60s, [&] { return of >= number; });
  }

  int begun = 0;
  int ended = 0;

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
};

class CountedAnswer final : public GenerationSink {
 public:
  explicit CountedAnswer(Counts& counts) : counts_(&counts) {}
  bool on_delta(Delta /*delta*/) override {
    if (!std::exchange(has_begun_, true)) counts_->add(counts_->begun);
    return true;
  }
  void on_complete(Completion completion) override {
    EXPECT_FALSE(std::exchange(has_ended_, true));
    EXPECT_THAT(to_string(completion.reason), AnyOf("stop", "error"));
    counts_->add(counts_->ended);
  }

 private:
  Counts* counts_;
  bool has_begun_ = false;
  bool has_ended_ = false;
};

std::size_t open_files() {
  const std::filesystem::directory_iterator files("/proc/self/fd");
  return static_cast<std::size_t>(std::distance(begin(files), end(files)));
}

/// The rings of tokens that are mapped into this process.
std::size_t mapped_rings() {
  std::ifstream maps("/proc/self/maps");
  std::size_t found = 0;
  for (std::string line; std::getline(maps, line);) found += line.contains("memfd:tokens") ? 1 : 0;
  return found;
}

/// The processes that threads of this one have started, without these.
std::set<pid_t> children(const std::set<pid_t>& others = {}) {
  std::set<pid_t> found;
  for (const auto& thread : std::filesystem::directory_iterator("/proc/self/task")) {
    std::ifstream file(thread.path() / "children");
    for (pid_t pid = 0; file >> pid;) {
      if (!others.contains(pid)) found.insert(pid);
    }
  }
  return found;
}

/// SLUICE_NPU_KILLS says how many.
int kills() {
  const char* const given = std::getenv("SLUICE_NPU_KILLS");
#ifdef SLUICE_SANITIZED
  constexpr int kUsual = 25;
#else
  constexpr int kUsual = 250;
#endif
  return given == nullptr ? kUsual : std::atoi(given);
}

class RkllmKillsTest : public ::testing::TestWithParam<Abi> {};

TEST_P(RkllmKillsTest, LeaveNothingBehind) {
  const test::FakeScript script("repeat 40 say word\ndelay 1\nrepeat 40 say word\n");
  const std::string model = ::testing::TempDir() + "killed.rkllm";
  std::ofstream(model) << "a model";
  const std::size_t files = open_files();
  const std::set<pid_t> others = children();
  ManualExecutor home;
  auto made = make_rkllm_engine({.model_path = model,
                                 .library_path = test::fake_library(GetParam()),
                                 .slots = 2,
                                 .worker = {std::string(SLUICE_FAKE_RKLLM) + "/rkllm_worker"},
                                 .restart_pause = 1ms});
  ASSERT_TRUE(made) << made.error().message;
  RkllmEngine& engine = **made;
  const auto is_ready = engine.wait_ready(60s);
  ASSERT_TRUE(is_ready && *is_ready) << engine.not_ready();
  EXPECT_EQ(mapped_rings(), 2U);
  std::mt19937 dice(1);  // NOLINT(cert-msc51-cpp): the same kills each time
  Counts counts;
  std::vector<std::unique_ptr<Generation>> answers;
  for (int i = 0; i < kills(); ++i) {
    const int begun = counts.begun;
    for (int j = 0; j < 2; ++j) {
      GenerationRequest request;
      request.prompt = "Hi";
      auto started =
          engine.start(std::move(request), std::make_shared<CountedAnswer>(counts), home);
      ASSERT_TRUE(started) << started.error().message;
      answers.push_back(*std::move(started));
    }
    // Some die while they load the model, some in an answer, some between two.
    if (dice() % 4 != 0) ASSERT_TRUE(counts.wait(counts.begun, begun + 1));
    const std::set<pid_t> workers = children(others);
    if (!workers.empty()) {
      ::kill(*std::next(workers.begin(), static_cast<std::ptrdiff_t>(dice() % workers.size())),
             SIGKILL);
    }
    const int asked = 2 * (i + 1);
    ASSERT_TRUE(counts.wait(counts.ended, asked)) << counts.ended << " of " << asked << " ended";
    answers.clear();
  }
  engine.shutdown();
  answers.clear();
  made->reset();
  EXPECT_EQ(open_files(), files);
  EXPECT_EQ(mapped_rings(), 0U);
  EXPECT_TRUE(children(others).empty()) << "zombies are children, too";
}

INSTANTIATE_TEST_SUITE_P(Abis, RkllmKillsTest,
                         ::testing::Values(Abi::v1_1, Abi::v1_2_0, Abi::v1_2_1, Abi::v1_3_0));

}  // namespace
}  // namespace sluice::rkllm
