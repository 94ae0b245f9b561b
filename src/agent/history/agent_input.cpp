#include "sluice/agent_input.hpp"

#include <memory>

#include "agent/history/tool_image.hpp"
#include "core/error.hpp"
#include "core/text/base64.hpp"

namespace sluice {
namespace {

ChatImage shown_image(std::string_view base64) {
  if (auto image = image_of_base64(base64)) return *std::move(image);
  throw Error{-32602, "Models take images that are PNG, JPEG, GIF or WebP, of at most 8 MiB", {}};
}

}  // namespace

ChatImage image_from_bytes(std::string_view bytes) {
  std::string base64;
  if (bytes.size() <= kMaxImageBytes) append_base64(base64, bytes);
  return shown_image(base64);
}

AgentInput::AgentInput(const std::vector<Item>& items) {
  for (const Item& item : items) {
    std::string text;
    if (const auto* const words = std::get_if<std::string>(&item)) {
      text = *words;
    } else {
      const ChatImage& given = std::get<ChatImage>(item);
      images_.push_back(shown_image(given.base64 == nullptr ? "" : *given.base64));
      text = "[image: " + images_.back().mime_type + "]";
    }
    if (!text_.empty() && !text.empty()) text_ += "\n\n";
    text_ += text;
  }
}

}  // namespace sluice
