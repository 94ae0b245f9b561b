#include "core/crypto/digest.hpp"

#include <gtest/gtest.h>
#include <string>

namespace sluice {
namespace {

TEST(Sha256, IsThatOfTheStandard) {
  // FIPS 180-4's examples.
  EXPECT_EQ(sha256_hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(Sha256().hex(), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}

TEST(Sha256, TellsTheDigestOfEachBeginning) {
  const std::string text(1000, 'x');
  Sha256 pieces;
  for (std::size_t at = 0; at < text.size(); at += 100) {
    pieces.add(std::string_view(text).substr(at, 100));
    EXPECT_EQ(pieces.hex(), sha256_hex(std::string_view(text).substr(0, at + 100)));
  }
}

}  // namespace
}  // namespace sluice
