#include "net/output_queue.hpp"

#include <algorithm>
#include <utility>

namespace sluice {
namespace {

/// Room for blocks that an empty queue keeps, so that steady traffic allocates nothing.
constexpr std::size_t kKeptBlocks = 4;

}  // namespace

void OutputQueue::share(const Bytes& bytes, std::size_t offset, std::size_t size) {
  if (text_sent_ < text_.size()) {
    // The text has to stay in front.
    const std::size_t rest = text_.size() - text_sent_;
    blocks_.push_back({Bytes(std::exchange(text_, {})), text_sent_, rest});
    in_blocks_ += rest;
    text_sent_ = 0;
  }
  blocks_.push_back({bytes, offset, size});
  in_blocks_ += size;
}

std::size_t OutputQueue::gather(std::span<iovec> parts, std::size_t& total) const {
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

void OutputQueue::consume(std::size_t bytes) {
  while (first_block_ < blocks_.size() && bytes > 0) {
    Block& block = blocks_[first_block_];
    const std::size_t part = std::min(bytes, block.size);
    block.offset += part;
    block.size -= part;
    bytes -= part;
    in_blocks_ -= part;
    if (block.size > 0) break;
    block.bytes = {};
    ++first_block_;
  }
  if (first_block_ == blocks_.size()) {
    if (blocks_.capacity() > kKeptBlocks) blocks_ = {};
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
  }
}

void OutputQueue::clear() {
  blocks_ = {};
  first_block_ = 0;
  in_blocks_ = 0;
  text_ = {};
  text_sent_ = 0;
}

}  // namespace sluice
