#include "core/unique_function.hpp"

#include <array>
#include <gtest/gtest.h>
#include <memory>
#include <string>

namespace sluice {
namespace {

static_assert(sizeof(UniqueFunction<void()>) == 3 * sizeof(void*));

TEST(UniqueFunction, CallsWhatIsKeptInsideAndOutside) {
  int calls = 0;
  UniqueFunction<void()> small = [&calls] { ++calls; };
  const std::array<int, 20> numbers{1, 2, 3};
  UniqueFunction<int(int)> large = [numbers](int more) { return numbers[2] + more; };
  small();
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(large(4), 7);
}

TEST(UniqueFunction, DestroysWhatItOwnsOnce) {
  const auto owned = std::make_shared<int>(0);
  const auto padded = std::make_shared<std::string>();
  {
    UniqueFunction<void()> inside = [owned] {};
    UniqueFunction<void()> outside = [padded, more = std::string(100, 'x')] {};
    EXPECT_EQ(owned.use_count(), 2);
    UniqueFunction<void()> moved = std::move(inside);
    UniqueFunction<void()> away = std::move(outside);
    EXPECT_FALSE(inside);  // NOLINT(bugprone-use-after-move): the moved-from state is tested
    EXPECT_EQ(owned.use_count(), 2);
    EXPECT_EQ(padded.use_count(), 2);
    moved = nullptr;
    EXPECT_EQ(owned.use_count(), 1);
    moved = std::move(away);
    EXPECT_EQ(padded.use_count(), 2);
  }
  EXPECT_EQ(padded.use_count(), 1);
}

TEST(UniqueFunction, IsEmptyWithoutACallable) {
  EXPECT_FALSE(UniqueFunction<void()>());
  EXPECT_FALSE(UniqueFunction<void()>(nullptr));
  EXPECT_FALSE(UniqueFunction<void()>(std::function<void()>()));
  void (*const none)() = nullptr;
  EXPECT_FALSE(UniqueFunction<void()>(none));
}

TEST(UniqueFunction, TakesWhatCannotBeCopied) {
  UniqueFunction<int(std::unique_ptr<int>)> sum =
      [own = std::make_unique<int>(2)](std::unique_ptr<int> other) { return *own + *other; };
  EXPECT_EQ(sum(std::make_unique<int>(3)), 5);
}

TEST(UniqueFunction, MayBeReplacedByWhatItOwns) {
  struct Chain {
    UniqueFunction<int()> next;
  };
  auto chain = std::make_unique<Chain>();
  chain->next = [] { return 7; };
  Chain& inner = *chain;
  UniqueFunction<int()> function = [chain = std::move(chain)] { return chain->next(); };
  EXPECT_EQ(function(), 7);
  function = std::move(inner.next);
  EXPECT_EQ(function(), 7);
}

}  // namespace
}  // namespace sluice
