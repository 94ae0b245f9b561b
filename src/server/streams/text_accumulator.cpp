#include "server/streams/text_accumulator.hpp"

#include <algorithm>
#include <utility>

#include "core/release_memory.hpp"
#include "stream/stream_error.hpp"

namespace sluice {
namespace {

/// Many texts may grow in the same turn. In blocks, none of them is copied as it grows.
constexpr std::size_t kBlock = std::size_t{64} << 10U;
/// Spare capacity for the end of the message that the text becomes.
constexpr std::size_t kSlack = 1024;

}  // namespace

bool TextAccumulator::append(std::string_view text) {
  if (is_too_long_) return true;
  if (size_ + text.size() > kMost) {
    is_too_long_ = true;
    release_memory(blocks_);
    release_memory(last_);
    size_ = 0;
    memory_.release();
    return true;
  }
  const std::size_t size = last_.size() + text.size();
  if (size > last_.capacity()) {
    const bool grows = size <= kBlock;
    const std::size_t capacity = grows ? std::min(std::max(size, 2 * last_.capacity()), kBlock)
                                       : std::max(text.size(), kBlock);
    if (!memory_.add(grows ? capacity - last_.capacity() : capacity)) return false;
    if (!grows && !last_.empty()) blocks_.push_back(std::exchange(last_, {}));
    last_.reserve(capacity);
  }
  last_.append(text);
  size_ += text.size();
  return true;
}

std::string TextAccumulator::take() {
  if (blocks_.empty()) return std::move(last_);
  std::string whole;
  whole.reserve(size_ + kSlack);
  for (std::string& block : blocks_) whole.append(std::exchange(block, {}));
  whole.append(last_);
  return whole;
}

Error TextAccumulator::no_memory() {
  return {kLimitReached,
          "Your streams have used all the memory that one client may have, and there is none for "
          "the whole text of "
          "this call's result; read or abort some, ask for less, or raise streams.max_total_bytes",
          {}};
}

}  // namespace sluice
