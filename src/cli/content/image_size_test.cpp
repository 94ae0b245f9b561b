#include "cli/content/image_size.hpp"

#include <gtest/gtest.h>
#include <string>

namespace sluice {
namespace {

/// "300x200", or what takes its place.
std::string size_text(std::string_view bytes) {
  const auto size = image_size(bytes);
  if (!size) return "none";
  return std::to_string(size->width) + "x" + std::to_string(size->height);
}

template <std::size_t N>
std::string literal_bytes(const char (&literal)[N]) {
  return {literal, N - 1};
}

TEST(ImageSizeTest, OfEachType) {
  EXPECT_EQ(size_text(literal_bytes("\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\1\0\0\0\0\0\2")), "65536x2");
  EXPECT_EQ(size_text(literal_bytes("GIF87a\x2c\1\xc8\0")), "300x200");
  // A segment, a marker alone and a fill byte before the frame.
  EXPECT_EQ(
      size_text(literal_bytes("\xff\xd8\xff\xe0\0\4ab\xff\x01\xff\xff\xc2\0\x0b\x08\0\xc8\1\x2c")),
      "300x200");
  EXPECT_EQ(size_text(literal_bytes("RIFF....WEBPVP8X\x0a\0\0\0\0\0\0\0\x2b\1\0\xc7\0\0")),
            "300x200");
  EXPECT_EQ(size_text(literal_bytes("RIFF....WEBPVP8L....\x2f\x2b\xc1\x31\0.....")), "300x200");
  EXPECT_EQ(size_text(literal_bytes("RIFF....WEBPVP8 ....\0\0\0\x9d\1\x2a\x2c\1\xc8\0")),
            "300x200");
}

TEST(ImageSizeTest, OfNothingElse) {
  for (const std::string& bytes :
       {std::string(), std::string("<svg/>"), literal_bytes("\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0"),
        literal_bytes("GIF89a\1"), literal_bytes("\xff\xd8"),
        literal_bytes("\xff\xd8\xff\xe0\xff\xff--------"),
        literal_bytes("\xff\xd8rubbish, and more"), literal_bytes("RIFF....WEBPVP8X"),
        literal_bytes("RIFF....WEBPVP9 ...................")}) {
    EXPECT_EQ(size_text(bytes), "none") << bytes;
  }
}

}  // namespace
}  // namespace sluice
