#include "core/crypto/sealer.hpp"

#include <gtest/gtest.h>
#include <string>

namespace sluice {
namespace {

Sealer::Key key_of(unsigned char byte) {
  Sealer::Key key;
  key.fill(byte);
  return key;
}

TEST(Sealer, OpensWhatItSealed) {
  const Sealer sealer;
  for (const std::string text : {"", "a", R"({"name":"Ada"})"}) {
    EXPECT_EQ(sealer.open(sealer.seal(text, "alice"), "alice"), text);
  }
  EXPECT_NE(sealer.seal("same", "alice"), sealer.seal("same", "alice"));
}

TEST(Sealer, OpensNothingElse) {
  const Sealer sealer;
  const std::string sealed = sealer.seal("secret", "alice");
  EXPECT_EQ(sealer.open(sealed, "mallory"), std::nullopt);
  EXPECT_EQ(sealer.open("", "alice"), std::nullopt);
  EXPECT_EQ(sealer.open("!", "alice"), std::nullopt);
  EXPECT_EQ(Sealer().open(sealed, "alice"), std::nullopt) << "each has a key of its own";
  for (std::size_t i = 0; i < sealed.size(); ++i) {
    std::string changed = sealed;
    changed[i] = changed[i] == 'A' ? 'B' : 'A';
    EXPECT_EQ(sealer.open(changed, "alice"), std::nullopt) << i;
    EXPECT_EQ(sealer.open(sealed.substr(0, i), "alice"), std::nullopt) << i;
  }
}

TEST(Sealer, KeysAreReplacedWithoutLosingWhatIsUnderWay) {
  const std::string before = Sealer({key_of(1)}).seal("text", "");
  const Sealer rotated({key_of(2), key_of(1)});
  EXPECT_EQ(rotated.open(before, ""), "text");
  const std::string after = rotated.seal("text", "");
  EXPECT_EQ(Sealer({key_of(2)}).open(after, ""), "text");
  EXPECT_EQ(Sealer({key_of(1)}).open(after, ""), std::nullopt);
}

}  // namespace
}  // namespace sluice
