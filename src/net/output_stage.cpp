#include "net/output_stage.hpp"

#include <algorithm>
#include <new>
#include <utility>

namespace sluice {
namespace {

/// Room for blocks that an empty stage keeps, so that steady traffic allocates nothing.
constexpr std::size_t kKeptBlocks = 4;
/// Text that has been sent and still takes this much is worth moving the rest over it.
constexpr std::size_t kWorthMoving = std::size_t{16} << 10U;

}  // namespace

void OutputStage::share(const Bytes& bytes, std::size_t offset, std::size_t size) {
  const bool has_text = text_sent_ < text_.size();
  const std::size_t needed = blocks_.size() + (has_text ? 2 : 1);
  // Before anything changes: there may be no memory.
  if (blocks_.capacity() < needed) blocks_.reserve(std::max(needed, 2 * blocks_.size()));
  if (has_text) {
    // The text has to stay in front.
    const std::size_t rest = text_.size() - text_sent_;
    const std::size_t own = text_.capacity();
    Bytes text(std::move(text_));
    text_ = {};
    blocks_.push_back({std::move(text), text_sent_, rest, own});
    in_blocks_ += rest;
    own_in_blocks_ += own;
    text_sent_ = 0;
  }
  blocks_.push_back({bytes, offset, size, 0});
  in_blocks_ += size;
}

bool OutputStage::added() {
  note_message();
  over_budget_ = !draw();
  full_ = full_ || over_budget_ || size() > limits_->high_water;
  return !full_;
}

bool OutputStage::is_drained() {
  return full_ && size() <= limits_->low_water && std::exchange(full_, false);
}

/// What has been added since the last call is one message.
void OutputStage::note_message() noexcept {
  const std::size_t message = size() - noted_;
  noted_ = size();
  if (message <= limits_->max_queued) return;
  try {
    if (long_ == nullptr) long_ = std::make_unique<std::vector<LongMessage>>();
    long_->push_back({.end = noted_, .size = message});
  } catch (const std::bad_alloc&) {
    // It counts as several short ones do.
  }
}

std::size_t OutputStage::in_long() const {
  std::size_t bytes = 0;
  if (long_ == nullptr) return bytes;
  for (const LongMessage& message : *long_) bytes += std::min(message.end, message.size);
  return bytes;
}

/// Shared blocks do not count: a thousand readers of a stream have the same ones.
bool OutputStage::draw() {
  MemoryBudget* const budget = pool_->budget();
  const std::size_t held = text_.capacity() + own_in_blocks_;
  if (budget != nullptr && held > limits_->max_queued &&
      budget->used() - share_.drawn() + 2 * held > budget->limit()) {
    return false;
  }
  return share_.hold(budget, held);
}

std::size_t OutputStage::gather(std::span<iovec> parts, std::size_t& total) const {
  std::size_t count = 0;
  total = 0;
  for (std::size_t i = first_block_; i < blocks_.size(); ++i) {
    if (count == parts.size()) return count;
    const Block& block = blocks_[i];
    parts[count++] = {const_cast<char*>(block.bytes.view().data()) + block.offset, block.size};
    total += block.size;
  }
  if (count < parts.size() && text_sent_ < text_.size()) {
    const std::size_t rest = text_.size() - text_sent_;
    parts[count++] = {const_cast<char*>(text_.data()) + text_sent_, rest};
    total += rest;
  }
  return count;
}

void OutputStage::consume(std::size_t bytes) noexcept {
  note_message();
  noted_ -= bytes;
  if (long_ != nullptr) {
    for (LongMessage& message : *long_) message.end -= std::min(message.end, bytes);
    std::erase_if(*long_, [](const LongMessage& message) { return message.end == 0; });
    if (long_->empty()) long_ = nullptr;
  }
  while (first_block_ < blocks_.size() && bytes > 0) {
    Block& block = blocks_[first_block_];
    const std::size_t part = std::min(bytes, block.size);
    block.offset += part;
    block.size -= part;
    bytes -= part;
    in_blocks_ -= part;
    if (block.size > 0) break;
    block.bytes = {};
    own_in_blocks_ -= block.own;
    ++first_block_;
  }
  if (first_block_ == blocks_.size()) {
    if (blocks_.capacity() > kKeptBlocks) std::vector<Block>().swap(blocks_);
    blocks_.clear();
    first_block_ = 0;
  } else if (first_block_ > blocks_.size() / 2) {
    blocks_.erase(blocks_.begin(), blocks_.begin() + static_cast<std::ptrdiff_t>(first_block_));
    first_block_ = 0;
  }
  text_sent_ += bytes;
  if (text_sent_ == text_.size()) {
    if (text_.capacity() >= kMinText) pool_->give_text(std::exchange(text_, {}));
    text_sent_ = 0;
  } else if (text_sent_ >= kWorthMoving && text_sent_ >= text_.size() / 2) {
    compact();
  }
  over_budget_ = !draw();
}

/// Each byte is moved at most once for each byte that has been sent.
void OutputStage::compact() noexcept {
  if (text_.size() - text_sent_ < text_.capacity() / 4) {
    try {
      std::string rest = pool_->take_text();
      rest.append(text_, text_sent_);
      text_.swap(rest);
    } catch (const std::bad_alloc&) {
      text_.erase(0, text_sent_);
    }
  } else {
    text_.erase(0, text_sent_);
  }
  text_sent_ = 0;
}

void OutputStage::clear() {
  blocks_ = {};
  first_block_ = 0;
  in_blocks_ = 0;
  own_in_blocks_ = 0;
  text_ = {};
  text_sent_ = 0;
  noted_ = 0;
  long_ = nullptr;
  over_budget_ = false;
  share_.release(pool_->budget());
}

}  // namespace sluice
