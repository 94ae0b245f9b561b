#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace sluice {

/// Chooses what a schedule does next from a fuzzer's input: its bytes in order, then zeros.
class Choices {
 public:
  Choices(const std::uint8_t* data, std::size_t size) : data_(data), end_(data + size) {}
  [[nodiscard]] bool empty() const { return data_ == end_; }
  std::uint8_t next() { return empty() ? 0 : *data_++; }
  std::size_t below(std::size_t limit) { return next() % limit; }
  template <class T>
  T* pick(std::vector<T>& from) {
    return from.empty() ? nullptr : &from[below(from.size())];
  }
  std::string_view bytes(std::size_t most) {
    const std::size_t size = std::min(most, static_cast<std::size_t>(end_ - data_));
    const std::string_view taken(reinterpret_cast<const char*>(data_), size);
    data_ += size;
    return taken;
  }

 private:
  const std::uint8_t* data_;
  const std::uint8_t* end_;
};

}  // namespace sluice
