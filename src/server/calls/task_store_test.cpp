#include "server/calls/task_store.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/manual_executor.hpp"
#include "server/notifications/change_notifier.hpp"

namespace sluice {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

/// Tests with a store whose results may have 1000 bytes in total.
class TaskStoreTest : public ::testing::Test {
 protected:
  using Record = std::shared_ptr<TaskRecord>;

  Record begin(std::string_view client) {
    return store.create({.principal = std::string(client), .revision = &revision}, loop).value();
  }
  /// Ends `task` with a result of `bytes`.
  static void end(const Record& task, std::size_t bytes) {
    std::string outcome = R"(,"result":")";
    outcome.append(bytes - outcome.size() - 1, 'x').push_back('"');
    task->end(TaskRecord::Ending::result, {}, R"({"jsonrpc":"2.0","id":0)" + outcome + "}");
  }
  Record ended(std::string_view client, std::size_t bytes) {
    Record task = begin(client);
    end(task, bytes);
    return task;
  }
  bool is_kept(const Record& task) {
    return store.find(task->id(), task->principal(), revision) != nullptr &&
           task->status() == TaskStatus::completed;
  }

  const Revision& revision = *find_revision("2025-11-25");
  ManualExecutor loop;
  ChangeNotifier changes{{}};
  TaskStore store{{.result_memory = 1000}, loop.clock(), changes};
};

TEST_F(TaskStoreTest, WhoseResultsAreMostMakesRoomForOthers) {
  const Record first = begin("alice");
  const Record second = ended("alice", 300);
  end(first, 300);
  const Record third = ended("alice", 400);
  EXPECT_TRUE(is_kept(first) && is_kept(second) && is_kept(third)) << "as much as is free";
  const Record others = ended("bob", 300);
  EXPECT_TRUE(is_kept(others));
  EXPECT_FALSE(is_kept(second)) << "the first that has ended";
  EXPECT_TRUE(is_kept(first) && is_kept(third));
}

TEST_F(TaskStoreTest, NobodyLosesResultsToWhoHasMore) {
  const Record small = ended("bob", 100);
  const Record equal = ended("carol", 400);
  std::vector<Record> all;
  for (int i = 0; i < 20; ++i) {
    all.push_back(ended("alice", 200));
    EXPECT_TRUE(is_kept(all.back()));
  }
  EXPECT_TRUE(is_kept(small));
  EXPECT_TRUE(is_kept(equal)) << "as many bytes as the other has";
  EXPECT_TRUE(is_kept(all[18]));
  EXPECT_FALSE(is_kept(all[17]));
  EXPECT_EQ(store.size(), 4U);
}

TEST_F(TaskStoreTest, WhoHasNoResultYetGetsOneKept) {
  std::vector<Record> small;
  for (int i = 0; i < 10; ++i) small.push_back(ended("client" + std::to_string(i), 100));
  const Record first = ended("alice", 200);
  EXPECT_TRUE(is_kept(first));
  EXPECT_FALSE(is_kept(small[0]) || is_kept(small[1]));
  // Another result of alice displaces nobody else's.
  const Record second = ended("alice", 200);
  EXPECT_TRUE(is_kept(second));
  EXPECT_FALSE(is_kept(first));
  for (std::size_t i = 2; i < small.size(); ++i) EXPECT_TRUE(is_kept(small[i])) << i;
}

TEST_F(TaskStoreTest, ANetworkOfIpv6SharesItsResults) {
  const Record small = ended("bob", 300);
  const Record first = ended("2001:db8::1", 350);
  const Record second = ended("2001:db8::2", 350);
  const Record third = ended("2001:db8::3", 200);
  EXPECT_TRUE(is_kept(small) && is_kept(second) && is_kept(third));
  EXPECT_FALSE(is_kept(first));
}

TEST_F(TaskStoreTest, AResultOfMoreThanHalfOfTheMemoryFailsItsTask) {
  const Record kept = ended("alice", 500);
  EXPECT_TRUE(is_kept(kept));
  const Record large = ended("bob", 501);
  EXPECT_EQ(large->status(), TaskStatus::failed);
  EXPECT_THAT(large->outcome().value(), HasSubstr("larger than the 500 bytes"));
  EXPECT_TRUE(is_kept(kept));
}

TEST_F(TaskStoreTest, WhatIsForgottenOrExpiredGivesItsMemoryBack) {
  const Record forgotten = ended("alice", 500);
  ended("alice", 500);
  ended("bob", 500);
  // The record may still be in use.
  EXPECT_THAT(forgotten->outcome().value(), HasSubstr(R"("code":-32602)"));
  loop.advance(2h);
  store.sweep();
  EXPECT_EQ(store.size(), 0U);
  const Record first = ended("carol", 500);
  const Record second = ended("carol", 500);
  EXPECT_TRUE(is_kept(first) && is_kept(second));
}

TEST_F(TaskStoreTest, ATaskThatEndsWithoutItsStoreKeepsItsResult) {
  Record task;
  {
    TaskStore other({.result_memory = 1000}, loop.clock(), changes);
    task = other.create({.principal = "alice", .revision = &revision}, loop).value();
  }
  end(task, 100);
  EXPECT_EQ(task->status(), TaskStatus::completed);
}

TEST_F(TaskStoreTest, ATaskAsksOnlySoManyQuestions) {
  const Record task = begin("alice");
  std::vector<std::string> refused;
  const auto ask = [&] {
    auto withdraw = task->ask(
        {{"key", "roots/list", {}}},
        [&refused](const Result<std::vector<json::value>>& answers) {
          if (!answers) refused.push_back(answers.error().message);
        },
        MemoryHold());
    if (withdraw) withdraw();
  };
  for (std::size_t i = 0; i < TaskRecord::kMaxQuestions; ++i) ask();
  refused.clear();
  ask();
  ASSERT_EQ(refused.size(), 1U);
  EXPECT_THAT(refused.front(), HasSubstr("at most 1000 questions"));
}

}  // namespace
}  // namespace sluice
