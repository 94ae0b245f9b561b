#include "json/arena.hpp"

#include <array>
#include <cstdint>
#include <cstring>
#include <gtest/gtest.h>
#include <string>

#include "json/parser.hpp"

namespace sluice {
namespace {

struct JsonArenaTest : testing::Test {
  [[nodiscard]] bool is_in_block(const void* memory) const {
    const auto* const at = static_cast<const unsigned char*>(memory);
    return at >= block.data() && at < block.data() + block.size();
  }

  alignas(std::max_align_t) std::array<unsigned char, 64> block{};
  JsonArena arena{block};
};

TEST_F(JsonArenaTest, AlignsWhatItGives) {
  EXPECT_EQ(arena.allocate(1, 1), block.data());
  EXPECT_EQ(arena.allocate(8, 8), block.data() + 8);
  EXPECT_EQ(arena.allocate(3, 1), block.data() + 16);
  EXPECT_EQ(arena.allocate(4, 4), block.data() + 20);
}

TEST_F(JsonArenaTest, TakesFromTheHeapWhatTheBlockHasNoRoomFor) {
  EXPECT_TRUE(is_in_block(arena.allocate(60, 1)));
  void* const beyond = arena.allocate(8, 4);
  EXPECT_FALSE(is_in_block(beyond));
  std::memset(beyond, 1, 8);
  EXPECT_TRUE(is_in_block(arena.allocate(4, 4)));
  EXPECT_FALSE(is_in_block(arena.allocate(1, 1)));
  void* const large = arena.allocate(1'000'000, 8);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(large) % 8, 0U);
  std::memset(large, 1, 1'000'000);
}

TEST_F(JsonArenaTest, HasTheWholeBlockAgainWhenCleared) {
  arena.allocate(60, 1);
  arena.allocate(60, 1);
  arena.clear();
  EXPECT_EQ(arena.allocate(64, 1), block.data());
}

TEST_F(JsonArenaTest, HoldsTheValuesOfATextThatIsLongerThanTheBlock) {
  std::string text = "[";
  for (int i = 0; i < 1000; ++i)
    text.append(R"({"a name of some length":"a text of some length"},)");
  text.append("0]");
  JsonParser parser;
  const auto value = parser.parse(text, &arena);
  ASSERT_TRUE(value);
  EXPECT_EQ(to_json(*value), text);
  EXPECT_TRUE(value->storage().is_deallocate_trivial());
}

TEST(KeptJsonArena, LivesAsLongAsAValueOfIt) {
  json::object kept;
  {
    json::object first(make_arena());
    for (int i = 0; i < 100; ++i) first[std::to_string(i)] = std::string(100, 'a');
    json::object second(std::move(first));
    second["more"] = {1, "two", {{"three", 3}}};
    json::object* const moved = new json::object(std::move(second));
    EXPECT_EQ(moved->size(), 101U);
    kept = *moved;
    const json::value last = moved->at("more");
    delete moved;
    EXPECT_EQ(to_json(last), R"([1,"two",{"three":3}])");
  }
  EXPECT_EQ(kept.at("99").as_string(), std::string(100, 'a'));
}

}  // namespace
}  // namespace sluice
