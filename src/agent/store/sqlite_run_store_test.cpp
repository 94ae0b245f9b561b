#include <filesystem>
#include <fstream>
#include <future>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>
#include <sys/stat.h>
#include <utility>
#include <vector>

#include "agent/store/store_thread.hpp"
#include "core/error.hpp"
#include "json/json.hpp"
#include "sluice/run_store.hpp"

namespace sluice {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class SqliteRunStoreTest : public ::testing::Test {
 protected:
  SqliteRunStoreTest() {
    std::string folder = ::testing::TempDir() + "sluice-runs-XXXXXX";
    folder_ = ::mkdtemp(folder.data());
  }
  ~SqliteRunStoreTest() override { std::filesystem::remove_all(folder_); }
  SqliteRunStoreTest(const SqliteRunStoreTest&) = delete;
  SqliteRunStoreTest& operator=(const SqliteRunStoreTest&) = delete;

  [[nodiscard]] std::string path() const { return folder_ + "/runs.db"; }

 private:
  std::string folder_;
};

TEST_F(SqliteRunStoreTest, KeepsRunsForOtherProcesses) {
  const std::string state = std::string("{\"a\":\"\0b\"}", 10) + std::string(1 << 20, ' ');
  {
    const auto store = sqlite_run_store(path());
    EXPECT_EQ(store->load("one").version, 0U);
    EXPECT_EQ(store->save("one", state, 0), 1U);
    EXPECT_EQ(store->save("two", "{}", 0), 1U);
    EXPECT_EQ(store->save("two", "[]", 1), 2U);
  }
  const auto store = sqlite_run_store(path());
  EXPECT_EQ(store->load("one").state, state);
  EXPECT_EQ(store->load("two").state, "[]");
  EXPECT_EQ(store->load("two").version, 2U);
  EXPECT_THAT(store->list(), ::testing::UnorderedElementsAre("one", "two"));
  store->erase("one");
  EXPECT_THAT(store->list(), ElementsAre("two"));
  struct stat about{};
  ASSERT_EQ(::stat(path().c_str(), &about), 0);
  EXPECT_EQ(about.st_mode & 0777U, 0600U);
}

TEST_F(SqliteRunStoreTest, OnlyOneGoesOnWithARun) {
  const auto mine = sqlite_run_store(path());
  const auto theirs = sqlite_run_store(path());
  const auto is_refused = [](RunStore& store, std::uint64_t version) {
    try {
      store.save("one", "{}", version);
      return false;
    } catch (const Error& error) {
      EXPECT_EQ(error.code, kBusy);
      EXPECT_THAT(error.message, HasSubstr("goes on elsewhere"));
      return true;
    }
  };
  EXPECT_EQ(mine->save("one", "{}", 0), 1U);
  EXPECT_TRUE(is_refused(*theirs, 0));
  EXPECT_EQ(theirs->save("one", "{}", 1), 2U);
  EXPECT_TRUE(is_refused(*mine, 1));
  mine->erase("one");
  EXPECT_TRUE(is_refused(*theirs, 2));
}

TEST_F(SqliteRunStoreTest, SaysWhatIsWrongWithTheFile) {
  const auto why = [](const std::string& file) -> std::string {
    try {
      sqlite_run_store(file);
    } catch (const Error& error) {
      EXPECT_EQ(error.code, 500);
      return error.message;
    }
    return "";
  };
  EXPECT_THAT(why(path() + "/none/runs.db"), HasSubstr("cannot be opened"));
  std::ofstream(path()) << std::string(5000, 'x');
  EXPECT_THAT(why(path()), HasSubstr("not a database"));
  EXPECT_THAT(why(":memory:"), HasSubstr(":memory: is none"));
  EXPECT_THAT(why(""), HasSubstr("cannot be opened"));
}

TEST_F(SqliteRunStoreTest, KeepsNothingInAFileThatIsGone) {
  const auto store = sqlite_run_store(path());
  store->save("one", "{}", 0);
  std::filesystem::rename(path(), path() + ".old");
  const auto code = [&] {
    try {
      store->save("two", "{}", 0);
    } catch (const Error& error) {
      EXPECT_THAT(error.message, HasSubstr("moved or deleted"));
      return error.code;
    }
    return 0;
  };
  EXPECT_EQ(code(), 500);
  const auto other = sqlite_run_store(path());
  EXPECT_EQ(code(), 500) << "the file there is another";
  std::filesystem::rename(path() + ".old", path());
  EXPECT_EQ(store->save("two", "{}", 0), 1U);
}

/// A store that a test lets wait or fail.
class SlowStore final : public RunStore {
 public:
  std::uint64_t save(const std::string& run_id, const std::string& /*state*/,
                     std::uint64_t version) override {
    open.get_future().wait();
    if (run_id == "bad") throw std::runtime_error("secret");
    if (run_id == "worse") throw 7;
    saved.push_back(run_id);
    return version + 1;
  }
  KeptRun load(const std::string& /*run_id*/) override { return {}; }
  std::vector<std::string> list() override { return {}; }
  void erase(const std::string& /*run_id*/) override {}

  std::promise<void> open;
  std::vector<std::string> saved;
};

TEST(StoreThreadTest, SavesWhatWaitsBeforeItEnds) {
  const auto store = std::make_shared<SlowStore>();
  std::uint64_t version = 0;
  {
    StoreThread thread(store);
    thread.save("one", json::object(), 4,
                [&](const Result<std::uint64_t>& saved) { version = *saved; });
    store->open.set_value();
  }
  EXPECT_THAT(store->saved, ElementsAre("one"));
  EXPECT_EQ(version, 5U);
}

TEST(StoreThreadTest, AStoreThatThrowsIsAnError) {
  for (const char* const run : {"bad", "worse"}) {
    const auto store = std::make_shared<SlowStore>();
    store->open.set_value();
    std::promise<Result<std::uint64_t>> outcome;
    StoreThread thread(store);
    thread.save(run, json::object(), 0,
                [&](const Result<std::uint64_t>& saved) { outcome.set_value(saved); });
    EXPECT_FALSE(outcome.get_future().get());
  }
}

}  // namespace
}  // namespace sluice
