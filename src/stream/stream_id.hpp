#pragma once

#include <algorithm>
#include <array>
#include <compare>
#include <cstddef>
#include <string_view>

namespace sluice {

/// A stream's id, stored in place: a string would allocate memory. Comparison orders ids and does
/// not take constant time. Use it only for ids of streams that their holder already knows.
class StreamId {
 public:
  static constexpr std::size_t kLength = 16;

  /// Text of any other length makes an id that no stream has.
  explicit StreamId(std::string_view id) {
    std::ranges::copy(id.substr(0, kLength), text_.begin());
    if (id.size() > kLength) text_ = {};
  }
  // Implicit, so that an id can be passed as text.
  operator std::string_view() const { return {text_.data(), text_.size()}; }  // NOLINT

  auto operator<=>(const StreamId&) const = default;

 private:
  std::array<char, kLength> text_{};
};

}  // namespace sluice
