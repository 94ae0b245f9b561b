#include "agent/history/tool_image.hpp"

#include <algorithm>
#include <array>
#include <memory>
#include <ranges>
#include <string>
#include <string_view>
#include <utility>

#include "core/text/base64.hpp"
#include "json/members.hpp"

namespace sluice {
namespace {

constexpr std::array<std::pair<std::string_view, std::string_view>, 4> kSignatures = {{
    {"image/png", "\x89PNG\r\n\x1a\n"},
    {"image/jpeg", "\xFF\xD8\xFF"},
    {"image/gif", "GIF8"},
    {"image/webp", "RIFF"},
}};

bool is_file_of(std::string_view mime_type, std::string_view bytes) {
  for (const auto& [type, signature] : kSignatures) {
    if (type == mime_type) return bytes.starts_with(signature);
  }
  return false;
}

}  // namespace

std::optional<ChatImage> image_of_block(const json::object& block) {
  const std::string_view base64 = text_at(block, "data");
  const std::string_view mime_type = text_at(block, "mimeType");
  if (text_at(block, "type") != "image" || base64.size() > kMaxImageBytes) return std::nullopt;
  const std::optional<std::string> bytes = decode_base64(base64);
  if (!bytes || !is_file_of(mime_type, *bytes)) return std::nullopt;
  return ChatImage{.mime_type = std::string(mime_type),
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
