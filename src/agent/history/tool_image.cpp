#include "agent/history/tool_image.hpp"

#include <algorithm>
#include <memory>
#include <ranges>
#include <string>
#include <string_view>
#include <utility>

#include "core/text/base64.hpp"
#include "json/members.hpp"

namespace sluice {
namespace {

/// The MIME type of a file that begins so; empty: models do not take it.
std::string_view type_of(std::string_view bytes) {
  constexpr std::size_t kWebpAt = 8;  // behind RIFF and a length
  if (bytes.starts_with("\x89PNG\r\n\x1a\n")) return "image/png";
  if (bytes.starts_with("\xFF\xD8\xFF")) return "image/jpeg";
  if (bytes.starts_with("GIF8")) return "image/gif";
  const bool is_webp = bytes.starts_with("RIFF") && bytes.size() > kWebpAt &&
                       bytes.substr(kWebpAt).starts_with("WEBP");
  return is_webp ? "image/webp" : "";
}

}  // namespace

std::optional<ChatImage> image_of_block(const json::object& block) {
  if (text_at(block, "type") != "image") return std::nullopt;
  return image_of_base64(text_at(block, "data"));
}

std::optional<ChatImage> image_of_base64(std::string_view base64) {
  if (base64.size() > kMaxImageBytes) return std::nullopt;
  const std::optional<std::string> bytes = decode_base64(base64);
  const std::string_view type = bytes ? type_of(*bytes) : "";
  if (type.empty()) return std::nullopt;
  return ChatImage{.mime_type = std::string(type),
                   .base64 = std::make_shared<const std::string>(base64)};
}

std::vector<ChatImage> images_of_result(const json::object& result, std::size_t most) {
  std::vector<ChatImage> images;
  const json::value* const content = result.if_contains("content");
  if (content == nullptr || !content->is_array()) return images;
  for (const json::value& each : content->get_array() | std::views::reverse) {
    if (images.size() == most) break;
    const json::object* const block = each.if_object();
    if (block == nullptr) continue;
    if (auto image = image_of_block(*block)) images.push_back(*std::move(image));
  }
  std::ranges::reverse(images);
  return images;
}

void keep_last(std::vector<ChatImage>& images, std::size_t most) {
  if (images.size() <= most) return;
  images.erase(images.begin(), images.end() - static_cast<std::ptrdiff_t>(most));
}

}  // namespace sluice
