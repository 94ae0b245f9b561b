#include "core/crypto/siphash.hpp"

#include <gtest/gtest.h>
#include <string>

namespace sluice {
namespace {

// The key is 00 01 ... 0f and the text of length n is 00 01 ... (n-1), as in the paper's appendix A
// and the vectors of the reference implementation.
TEST(SipHash, HashesAsItsAuthorsDo) {
  const SipHashKey key = {0x0706050403020100, 0x0f0e0d0c0b0a0908};
  std::string text;
  while (text.size() < 16) text.push_back(static_cast<char>(text.size()));
  EXPECT_EQ(siphash(key, text.substr(0, 0)), 0x726fdb47dd0e0e31U);
  EXPECT_EQ(siphash(key, text.substr(0, 1)), 0x74f839c593dc67fdU);
  EXPECT_EQ(siphash(key, text.substr(0, 8)), 0x93f5f5799a932462U);
  EXPECT_EQ(siphash(key, text.substr(0, 15)), 0xa129ca6149be45e5U);
}

}  // namespace
}  // namespace sluice
