#include "cli/content/image_size.hpp"

#include <cstddef>

namespace sluice {
namespace {

std::uint32_t byte_at(std::string_view bytes, std::size_t at) {
  return static_cast<unsigned char>(bytes[at]);
}

/// The number of `count` bytes at `at`, most significant first.
std::uint32_t big_endian(std::string_view bytes, std::size_t at, std::size_t count) {
  std::uint32_t out = 0;
  for (std::size_t i = 0; i < count; ++i) out = (out << 8U) | byte_at(bytes, at + i);
  return out;
}

/// The same, least significant first.
std::uint32_t little_endian(std::string_view bytes, std::size_t at, std::size_t count) {
  std::uint32_t out = 0;
  for (std::size_t i = count; i > 0; --i) out = (out << 8U) | byte_at(bytes, at + i - 1);
  return out;
}

std::optional<ImageSize> size_of_png(std::string_view bytes) {
  constexpr std::size_t kStart = 16;
  if (bytes.size() < kStart + 8) return std::nullopt;
  return ImageSize{big_endian(bytes, kStart, 4), big_endian(bytes, kStart + 4, 4)};
}

std::optional<ImageSize> size_of_gif(std::string_view bytes) {
  if (bytes.size() < 10) return std::nullopt;
  return ImageSize{little_endian(bytes, 6, 2), little_endian(bytes, 8, 2)};
}

/// Goes from segment to segment until that of the frame.
std::optional<ImageSize> size_of_jpeg(std::string_view bytes) {
  for (std::size_t at = 2; at + 9 <= bytes.size();) {
    if (byte_at(bytes, at) != 0xff) return std::nullopt;
    const std::uint32_t marker = byte_at(bytes, at + 1);
    if (marker == 0xff) {  // a fill byte
      ++at;
      continue;
    }
    const bool is_frame =
        marker >= 0xc0 && marker <= 0xcf && marker != 0xc4 && marker != 0xc8 && marker != 0xcc;
    if (is_frame) return ImageSize{big_endian(bytes, at + 7, 2), big_endian(bytes, at + 5, 2)};
    // Of those before the frame, all but these have a length.
    const bool is_alone = marker == 0x01 || (marker >= 0xd0 && marker <= 0xd9);
    at += is_alone ? 2 : 2 + big_endian(bytes, at + 2, 2);
  }
  return std::nullopt;
}

std::optional<ImageSize> size_of_webp(std::string_view bytes) {
  if (bytes.size() < 30) return std::nullopt;
  const std::string_view kind = bytes.substr(12, 4);
  if (kind == "VP8X") {
    return ImageSize{little_endian(bytes, 24, 3) + 1, little_endian(bytes, 27, 3) + 1};
  }
  if (kind == "VP8L") {
    const std::uint32_t sides = little_endian(bytes, 21, 4);
    return ImageSize{(sides & 0x3fffU) + 1, ((sides >> 14U) & 0x3fffU) + 1};
  }
  if (kind != "VP8 ") return std::nullopt;
  return ImageSize{little_endian(bytes, 26, 2) & 0x3fffU, little_endian(bytes, 28, 2) & 0x3fffU};
}

}  // namespace

std::optional<ImageSize> image_size(std::string_view bytes) {
  constexpr std::string_view kPng("\x89PNG\r\n\x1a\n\0\0\0\rIHDR", 16);
  if (bytes.starts_with(kPng)) return size_of_png(bytes);
  if (bytes.starts_with("GIF87a") || bytes.starts_with("GIF89a")) return size_of_gif(bytes);
  if (bytes.starts_with("\xff\xd8")) return size_of_jpeg(bytes);
  const bool is_webp = bytes.starts_with("RIFF") && bytes.substr(0, 12).ends_with("WEBP");
  return is_webp ? size_of_webp(bytes) : std::nullopt;
}

}  // namespace sluice
