#include "core/text/percent_encoding.hpp"

#include <gtest/gtest.h>
#include <string>

namespace sluice {
namespace {

TEST(PercentEncoding, Decodes) {
  EXPECT_EQ(percent_decode(""), "");
  EXPECT_EQ(percent_decode("a+b%20c%2fd%2F"), "a+b c/d/");
  EXPECT_EQ(percent_decode("%ff"), "\xFF");
  for (const char* broken : {"%", "a%2", "%2g", "%g2", "%-1", "% 1", "%%41"}) {
    EXPECT_EQ(percent_decode(broken), std::nullopt) << broken;
  }
}

TEST(PercentEncoding, EncodesSegments) {
  const auto encoded = [](std::string_view text) {
    std::string out;
    append_percent_encoded(out, text);
    return out;
  };
  EXPECT_EQ(encoded("a-Z_0.9~!$&'()*+,;="), "a-Z_0.9~!$&'()*+,;=");
  EXPECT_EQ(encoded("a b/c:d@e?f#g%h"), "a%20b%2Fc%3Ad%40e%3Ff%23g%25h");
  EXPECT_EQ(encoded("\xC3\xA9"), "%C3%A9");
  std::string all;
  for (int c = 0; c < 256; ++c) all.push_back(static_cast<char>(c));
  EXPECT_EQ(percent_decode(encoded(all)), all);
}

TEST(PercentEncoding, EncodesQueries) {
  std::string out;
  append_query_encoded(out, "a-Z_0.9~ &=+/:");
  EXPECT_EQ(out, "a-Z_0.9~%20%26%3D%2B%2F%3A");
  EXPECT_EQ(form_decode("a+b%2Bc%20d"), "a b+c d");
  EXPECT_EQ(form_decode("%g"), std::nullopt);
}

}  // namespace
}  // namespace sluice
