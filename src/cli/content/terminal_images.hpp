#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "core/error.hpp"

namespace sluice {

/// How a terminal is told to show an image.
enum class ImageProtocol : std::uint8_t {
  none,
  kitty,   // sw.kovidgoyal.net/kitty/graphics-protocol
  iterm2,  // iterm2.com/documentation-images.html
};

using LookUpVariable = std::function<std::optional<std::string>(const std::string& name)>;

/// The protocol of the terminal that the environment describes: kitty and Ghostty; iTerm2, WezTerm
/// and mintty. None within tmux and screen, which do not pass images on.
ImageProtocol image_protocol(const LookUpVariable& environment);

/// What the value of --images means for standard output: "auto" goes by the environment, and
/// without a terminal nothing is shown. Error: kExitUsage.
Result<ImageProtocol> chosen_images(std::string_view choice);

/// What makes the terminal show the image. Empty, if it cannot: with kitty's protocol what is no
/// PNG, another type than an image, what has more than kMaxShownImage bytes or a side of more than
/// kMaxImageSide pixels, and an image whose size is not known (image_size()). Nothing of the bytes
/// reaches the terminal but in Base64.
std::string image_sequence(ImageProtocol protocol, std::string_view mime_type,
                           std::string_view bytes);
inline constexpr std::size_t kMaxShownImage = std::size_t{8} << 20U;
inline constexpr std::uint32_t kMaxImageSide = 10'000;

}  // namespace sluice
