#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace sluice {

struct ImageSize {
  std::uint32_t width = 0;   // pixels
  std::uint32_t height = 0;  // pixels
};

/// The size that the head of an image says: of a PNG (PNG, 11.2.1), GIF (GIF89a, 18), JPEG (T.81,
/// B.2.2) or WebP (RFC 9649, 2.5 to 2.7). Nothing: it is of another type, or cut off before its
/// size.
std::optional<ImageSize> image_size(std::string_view bytes);

}  // namespace sluice
