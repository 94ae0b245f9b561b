#pragma once

#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

#include "json/json.hpp"
#include "sluice/chat.hpp"

namespace sluice {

/// The most bytes that an image may have in Base64 to be shown to a model.
inline constexpr std::size_t kMaxImageBytes = std::size_t{8} << 20U;

/// An image, if it is one that models take: PNG, JPEG, GIF or WebP, of at most kMaxImageBytes. Its
/// type is what its first bytes say.
std::optional<ChatImage> image_of_base64(std::string_view base64);
/// The same of a content block of MCP.
std::optional<ChatImage> image_of_block(const json::object& block);

/// The last images among the blocks of `result` (CallToolResult), at most `most`, in their order.
std::vector<ChatImage> images_of_result(const json::object& result, std::size_t most);

/// Drops the first of `images` until there are at most `most`.
void keep_last(std::vector<ChatImage>& images, std::size_t most);

}  // namespace sluice
