#pragma once

// What a user says to an agent.

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "sluice/chat.hpp"

namespace sluice {

/// An image, from the bytes of its file. Throws Error -32602 if it is no PNG, JPEG, GIF or WebP, or
/// has more than 8 MiB in Base64.
ChatImage image_from_bytes(std::string_view bytes);

/// One message of a user: texts and images in their order, such as
/// `{"What is this?", image_from_bytes(file)}`. A text alone is an input too.
class AgentInput {
 public:
  using Item = std::variant<std::string, ChatImage>;

  // NOLINTBEGIN(google-explicit-constructor,hicpp-explicit-conversions): a text is an input
  AgentInput(std::string text) : text_(std::move(text)) {}
  AgentInput(const char* text) : text_(text) {}
  /// Throws Error -32602 if an image is none that image_from_bytes() takes.
  AgentInput(std::initializer_list<Item> items) : AgentInput(std::vector<Item>(items)) {}
  AgentInput(const std::vector<Item>& items);
  // NOLINTEND(google-explicit-constructor,hicpp-explicit-conversions)

  /// Each item is a paragraph. That of an image says what it is, such as `[image: image/png]`.
  [[nodiscard]] const std::string& text() const { return text_; }
  [[nodiscard]] const std::vector<ChatImage>& images() const { return images_; }
  [[nodiscard]] bool is_empty() const { return text_.empty(); }

 private:
  std::string text_;
  std::vector<ChatImage> images_;
};

}  // namespace sluice
