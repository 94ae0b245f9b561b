#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace sluice {

/// What a model writes if it has nothing to say about an update.
inline constexpr std::string_view kPass = "[[pass]]";

/// Keeps kPass from the user, if it is all that the model writes.
class PassFilter {
 public:
  /// What is to be shown now that `delta` has been written.
  std::string take(std::string_view delta) {
    if (is_open_) return std::string(delta);
    held_ += delta;
    const std::string_view text = trimmed(held_);
    if (held_.size() > kMostHeld) {
      is_open_ = true;
      return std::move(held_);
    }
    if (kPass.starts_with(text) || (text.starts_with(kPass) && text.size() == kPass.size()))
      return {};
    is_open_ = true;
    return std::move(held_);
  }
  /// What is to be shown at the end of an answer that is whole. One that was broken off may have
  /// ended within the mark.
  std::string finish() {
    if (is_open_ || trimmed(held_) == kPass) return {};
    is_open_ = true;
    return std::move(held_);
  }

 private:
  static constexpr std::size_t kMostHeld = 64;

  static std::string_view trimmed(std::string_view text) {
    const std::size_t from = text.find_first_not_of(" \t\r\n");
    if (from == std::string_view::npos) return {};
    return text.substr(from, text.find_last_not_of(" \t\r\n") - from + 1);
  }

  std::string held_;
  bool is_open_ = false;
};

}  // namespace sluice
