#include "core/text/base64.hpp"

#include <gtest/gtest.h>

namespace sluice {
namespace {

std::string encoded(std::string_view bytes) {
  std::string out = "before ";
  append_base64(out, bytes);
  return out.substr(7);
}

TEST(Base64, HasTheVectorsOfTheRfc) {  // RFC 4648, section 10
  const std::pair<std::string_view, std::string_view> vectors[] = {{"", ""},
                                                                   {"f", "Zg=="},
                                                                   {"fo", "Zm8="},
                                                                   {"foo", "Zm9v"},
                                                                   {"foob", "Zm9vYg=="},
                                                                   {"fooba", "Zm9vYmE="},
                                                                   {"foobar", "Zm9vYmFy"}};
  for (const auto& [bytes, text] : vectors) {
    EXPECT_EQ(encoded(bytes), text);
    EXPECT_EQ(decode_base64(text), bytes);
  }
}

TEST(Base64, ReturnsWhatWentIn) {
  std::string bytes;
  for (int i = 0; i < 200'000; ++i) bytes.push_back(static_cast<char>(i * 7 + i / 251));
  for (const std::size_t size : {1UL, 2UL, 3UL, 49'151UL, 49'152UL, 49'153UL, 200'000UL}) {
    const std::string part = bytes.substr(0, size);
    EXPECT_EQ(decode_base64(encoded(part)), part) << size;
  }
}

TEST(Base64, RefusesEverythingElse) {
  for (const std::string_view text : {"Z", "Zg", "Zg=", "Zh==", "Zm9=", "Zg==Zg==", "Zm 9", " Zm9",
                                      "Zm9v\n", "====", "Z===", "Zm9-", "Zm9\x80", "=m9v"}) {
    EXPECT_EQ(decode_base64(text), std::nullopt) << text;
  }
}

TEST(Base64, OfUrlsHasNoPaddingAndItsOwnAlphabet) {
  std::string bytes;
  for (int i = 0; i < 256; ++i) bytes.push_back(static_cast<char>(255 - i));
  for (std::size_t size = 0; size <= bytes.size(); ++size) {
    const std::string text = to_base64url(bytes.substr(0, size));
    EXPECT_EQ(text.find_first_of("+/="), std::string::npos);
    EXPECT_EQ(decode_base64url(text), bytes.substr(0, size));
  }
  EXPECT_EQ(to_base64url("\xFB\xFF"), "-_8");
  for (const std::string_view text : {"Zg==", "Zm9+", "Zm9/", "Z", "Zh", "Zm 9"}) {
    EXPECT_EQ(decode_base64url(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace sluice
