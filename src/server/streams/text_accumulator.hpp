#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/error.hpp"
#include "core/sharing/client_memory.hpp"

namespace sluice {

/// Text that a call sends in parts and that its result repeats as a whole. It is collected until
/// then, and charged to the client's memory. Not thread-safe.
class TextAccumulator {
 public:
  /// Without `memory`, kMost is the only limit.
  explicit TextAccumulator(std::shared_ptr<MemoryShare> memory) : memory_(std::move(memory)) {}

  /// Returns false if there is no memory; the call should then fail with no_memory(). A text that
  /// would become longer than kMost is dropped.
  [[nodiscard]] bool append(std::string_view text);
  /// Whether the text was dropped because it would be longer than kMost.
  [[nodiscard]] bool is_too_long() const { return is_too_long_; }
  [[nodiscard]] bool empty() const { return size_ == 0; }
  /// Moves the text out. Nothing may be appended afterwards. A long text has spare capacity for the
  /// end of a message. Throws std::bad_alloc.
  std::string take();

  static Error no_memory();

  /// The same as the default limit of a message. Longer texts are to be streamed.
  static constexpr std::size_t kMost = std::size_t{8} << 20U;

 private:
  std::vector<std::string> blocks_;
  std::string last_;  // behind the blocks
  std::size_t size_ = 0;
  MemoryHold memory_;  // for the capacity of all of them
  bool is_too_long_ = false;
};

}  // namespace sluice
