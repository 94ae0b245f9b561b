#include "core/crypto/random.hpp"

#include <array>
#include <cstddef>
#include <gtest/gtest.h>
#include <set>
#include <string>

namespace sluice {
namespace {

TEST(Random, FillsAllOfTheBytes) {
  // Any byte may be zero sometimes, but no byte is zero every time.
  std::array<bool, 300> seen{};
  for (int round = 0; round < 20; ++round) {
    std::array<std::byte, 300> bytes{};
    random_bytes(bytes);
    for (std::size_t i = 0; i < bytes.size(); ++i) seen[i] = seen[i] || bytes[i] != std::byte{0};
  }
  for (const bool once : seen) EXPECT_TRUE(once);
  random_bytes({});
}

TEST(RandomId, HasItsLengthAndAlphabet) {
  for (const std::size_t length : {0U, 1U, 16U, 31U, 32U, 33U, 1000U}) {
    const std::string id = random_id(length);
    EXPECT_EQ(id.size(), length);
    EXPECT_EQ(id.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789"), std::string::npos);
  }
}

TEST(RandomId, DoesNotRepeat) {
  std::set<std::string> ids;
  for (int i = 0; i < 10000; ++i) ids.insert(random_id(16));
  EXPECT_EQ(ids.size(), 10000U);
}

// Chi-square test over 36 characters. By chance, the limit is exceeded less than once in 10^9 runs.
// A plain modulo, which makes the first four characters more likely by 1/7, exceeds it many times
// over.
TEST(RandomId, IsUniform) {
  constexpr std::size_t kDraws = 720000;
  std::array<std::size_t, 256> count{};
  for (const char c : random_id(kDraws)) ++count[static_cast<unsigned char>(c)];
  constexpr double kExpected = static_cast<double>(kDraws) / 36;
  double chi_square = 0;
  for (const char c : std::string("abcdefghijklmnopqrstuvwxyz0123456789")) {
    const double off = static_cast<double>(count[static_cast<unsigned char>(c)]) - kExpected;
    chi_square += off * off / kExpected;
  }
  EXPECT_LT(chi_square, 120.0);
}

TEST(ConstantTimeEqual, IsEquality) {
  EXPECT_TRUE(constant_time_equal("", ""));
  EXPECT_TRUE(constant_time_equal({}, ""));
  EXPECT_TRUE(constant_time_equal("secret", "secret"));
  EXPECT_FALSE(constant_time_equal("secret", "secre"));
  EXPECT_FALSE(constant_time_equal("", "s"));
  const std::string text(40, 'a');
  for (std::size_t at = 0; at < text.size(); ++at) {
    for (const int bit : {0, 3, 7}) {
      std::string other = text;
      other[at] = static_cast<char>(other[at] ^ (1 << bit));
      EXPECT_FALSE(constant_time_equal(text, other));
    }
  }
  EXPECT_FALSE(constant_time_equal(std::string_view("a\0b", 3), std::string_view("a\0c", 3)));
}

}  // namespace
}  // namespace sluice
