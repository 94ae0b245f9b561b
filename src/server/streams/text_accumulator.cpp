#include "server/streams/text_accumulator.hpp"

#include <algorithm>

#include "stream/stream_error.hpp"

namespace sluice {
namespace {

/// Spare capacity for the end of the message that the text becomes.
constexpr std::size_t kSlack = 1024;

}  // namespace

bool TextAccumulator::append(std::string_view text) {
  if (is_too_long_) return true;
  const std::size_t size = text_.size() + text.size();
  if (size > kMost) {
    is_too_long_ = true;
    text_ = {};
    memory_.release();
    return true;
  }
  if (size > text_.capacity()) {
    // With the spare capacity, the text is not copied when a message is made of it.
    const std::size_t slack = text_.capacity() < kSlack ? 0 : kSlack;
    const std::size_t capacity = std::min(std::max(size, 2 * text_.capacity()), kMost) + slack;
    if (!memory_.add(capacity - text_.capacity())) return false;
    text_.reserve(capacity);
  }
  text_.append(text);
  return true;
}

Error TextAccumulator::no_memory() {
  return {kLimitReached,
          "Your streams hold as much memory as they may, and there is none for the whole text of "
          "this call's result; read or abort some, ask for less, or raise streams.max_total_bytes",
          {}};
}

}  // namespace sluice
