#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "core/client_memory.hpp"
#include "core/error.hpp"

namespace sluice {

/// What a call has said and its result repeats: kept until then, on its client's memory. Not
/// thread-safe.
class TextAccumulator {
 public:
  /// Without `memory` only kMost is a limit.
  explicit TextAccumulator(std::shared_ptr<MemoryShare> memory) : memory_(std::move(memory)) {}

  /// False: there is no memory for it, and the call is to fail with no_memory(). Nothing is kept of
  /// a text that would be longer than kMost.
  [[nodiscard]] bool append(std::string_view text);
  /// Whether it would be longer than kMost.
  [[nodiscard]] bool is_too_long() const { return is_too_long_; }
  [[nodiscard]] const std::string& text() const { return text_; }
  /// Nothing may be appended afterwards. There is room for some more behind it.
  std::string take() { return std::move(text_); }

  static Error no_memory();

  /// As a message is by default: longer ones are to be streamed.
  static constexpr std::size_t kMost = std::size_t{8} << 20U;

 private:
  std::string text_;
  MemoryHold memory_;  // of its capacity
  bool is_too_long_ = false;
};

}  // namespace sluice
