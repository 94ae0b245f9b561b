#pragma once

#include <algorithm>
#include <array>
#include <compare>
#include <cstddef>
#include <string_view>

namespace sluice {

/// A stream's id by value, where a string would need memory of its own. Compares in order, not in
/// constant time: for the ids of streams that their holder has already been given.
class StreamId {
 public:
  static constexpr std::size_t kLength = 16;

  /// Text of another length makes an id that no stream has.
  explicit StreamId(std::string_view id) {
    std::ranges::copy(id.substr(0, kLength), text_.begin());
    if (id.size() > kLength) text_ = {};
  }
  // Implicit, so that an id is text wherever text is wanted.
  operator std::string_view() const { return {text_.data(), text_.size()}; }  // NOLINT

  auto operator<=>(const StreamId&) const = default;

 private:
  std::array<char, kLength> text_{};
};

}  // namespace sluice
