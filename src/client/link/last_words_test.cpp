#include "client/link/last_words.hpp"

#include <gtest/gtest.h>
#include <optional>

#include "core/manual_executor.hpp"

namespace sluice {
namespace {

class LastWordsTest : public testing::Test {
 protected:
  void begin() {
    words->begin([this] { ++closed; }, [this] { ++cut_off; });
  }

  ManualExecutor loop;
  std::optional<LastWords> words{loop};
  int closed = 0;
  int cut_off = 0;
};

TEST_F(LastWordsTest, AreCutOffAtTheLimitAndThenEnd) {
  EXPECT_FALSE(words->have_begun());
  begin();
  EXPECT_TRUE(words->have_begun());
  loop.advance(LastWords::kLimit - Duration(1));
  EXPECT_EQ(cut_off, 0);
  loop.advance(Duration(1));
  EXPECT_EQ(cut_off, 1);
  EXPECT_TRUE(words->have_begun());

  words->end()();
  EXPECT_EQ(closed, 1);
  EXPECT_FALSE(words->have_begun());
}

TEST_F(LastWordsTest, AreNotCutOffOnceTheyHaveEnded) {
  begin();
  const auto done = words->end();
  EXPECT_FALSE(words->have_begun());
  loop.advance(LastWords::kLimit);
  EXPECT_EQ(cut_off, 0);
  EXPECT_EQ(closed, 0);
  done();
  EXPECT_EQ(closed, 1);
}

TEST_F(LastWordsTest, ThatWereNotBegunEndWithNothing) {
  words->end()();
  EXPECT_EQ(closed, 0);
}

TEST_F(LastWordsTest, MayBeDestroyedByWhatCutsThemOff) {
  words->begin([] {}, [this] { words.reset(); });
  loop.advance(LastWords::kLimit);
  EXPECT_FALSE(words);
}

TEST_F(LastWordsTest, AreNotCutOffAfterTheirLinkHasGone) {
  begin();
  words.reset();
  loop.advance(LastWords::kLimit);
  EXPECT_EQ(cut_off, 0);
}

}  // namespace
}  // namespace sluice
