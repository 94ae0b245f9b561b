#include "net/connection/output_stage.hpp"

#include <algorithm>
#include <new>
#include <utility>

namespace sluice {
namespace {

/// Capacity for blocks that is kept while there are none, so that steady traffic allocates nothing.
constexpr std::size_t kKeptBlocks = 4;
/// Once this much of the text has been sent, its memory is worth reclaiming by moving the rest.
constexpr std::size_t kWorthMoving = std::size_t{16} << 10U;

}  // namespace

void OutputStage::share(BufferPool& pool, const Bytes& bytes, std::size_t offset,
                        std::size_t size) {
  drop_unfinished();
  add_block(unsent(pool), {.bytes = bytes, .offset = offset, .size = size, .own = 0});
  note_message();
}

void OutputStage::take(BufferPool& pool, std::string&& rest) {
  UnsentOutput& unsent = this->unsent(pool);
  if (rest.size() < kTakenText) {
    if (unsent.text.empty()) {
      unsent.text.swap(rest);
    } else {
      unsent.text.append(rest);
    }
    return;
  }
  const std::size_t size = rest.size();
  const std::size_t own = rest.capacity();
  add_block(unsent, {.bytes = Bytes(std::move(rest)), .offset = 0, .size = size, .own = own});
  note_message();
}

/// Appends `block` after everything else. If there is no memory, throws std::bad_alloc and changes
/// nothing.
void OutputStage::add_block(UnsentOutput& unsent, UnsentOutput::Block block) {
  const bool has_text = unsent.text_sent < unsent.text.size();
  const std::size_t needed = unsent.blocks.size() + (has_text ? 2 : 1);
  // Allocates before anything changes, because it may throw.
  if (unsent.blocks.capacity() < needed) {
    unsent.blocks.reserve(std::max(needed, 2 * unsent.blocks.size()));
  }
  if (has_text) {
    // The text must be sent before the block.
    const std::size_t rest = unsent.text.size() - unsent.text_sent;
    const std::size_t own = unsent.text.capacity();
    Bytes text(std::move(unsent.text));
    unsent.text = {};
    unsent.blocks.push_back({std::move(text), unsent.text_sent, rest, own});
    unsent.in_blocks += rest;
    unsent.own_in_blocks += own;
    unsent.text_sent = 0;
  }
  unsent.in_blocks += block.size;
  unsent.own_in_blocks += block.own;
  unsent.blocks.push_back(std::move(block));
}

bool OutputStage::added(const BufferSource& source) {
  if (empty()) {
    clear(source.pool);
  } else {
    note_message();
    draw(source.share);
    full_ = full_ || over_share_ || size() > limits_->high_water;
  }
  return !full_;
}

bool OutputStage::is_drained() {
  return full_ && size() <= limits_->low_water && std::exchange(full_, false);
}

void OutputStage::note_message() noexcept {
  if (unsent_ == nullptr) return;
  UnsentOutput& unsent = *unsent_;
  const std::size_t message = unsent.size() - unsent.noted;
  unsent.noted = unsent.size();
  if (message <= limits_->max_queued) return;
  try {
    unsent.long_messages.push_back({.end = unsent.noted, .size = message});
  } catch (const std::bad_alloc&) {
    // It counts in full, like short messages.
  }
}

std::size_t OutputStage::in_long() const {
  std::size_t bytes = 0;
  for (const UnsentOutput::LongMessage& message : unsent_->long_messages) {
    bytes += std::min(message.end, message.size);
  }
  return bytes;
}

/// Shared blocks are not counted: a thousand readers of a stream have the same ones.
void OutputStage::draw(const std::shared_ptr<MemoryShare>& share) {
  over_share_ = !unsent_->hold.hold(share, unsent_->text.capacity() + unsent_->own_in_blocks);
}

std::size_t OutputStage::gather(std::span<iovec> parts, std::size_t& total) const {
  std::size_t count = 0;
  total = 0;
  if (unsent_ == nullptr) return count;
  const UnsentOutput& unsent = *unsent_;
  for (std::size_t i = unsent.first_block; i < unsent.blocks.size(); ++i) {
    if (count == parts.size()) return count;
    const UnsentOutput::Block& block = unsent.blocks[i];
    parts[count++] = {const_cast<char*>(block.bytes.view().data()) + block.offset, block.size};
    total += block.size;
  }
  if (count < parts.size() && unsent.text_sent < unsent.text.size()) {
    const std::size_t rest = unsent.text.size() - unsent.text_sent;
    parts[count++] = {const_cast<char*>(unsent.text.data()) + unsent.text_sent, rest};
    total += rest;
  }
  return count;
}

void OutputStage::consume(const BufferSource& source, std::size_t bytes) noexcept {
  if (unsent_ == nullptr) return;
  UnsentOutput& unsent = *unsent_;
  if (bytes == unsent.size()) {
    clear(source.pool);
    return;
  }
  note_message();
  unsent.noted -= bytes;
  for (UnsentOutput::LongMessage& message : unsent.long_messages) {
    message.end -= std::min(message.end, bytes);
  }
  std::erase_if(unsent.long_messages,
                [](const UnsentOutput::LongMessage& message) { return message.end == 0; });
  while (unsent.first_block < unsent.blocks.size() && bytes > 0) {
    UnsentOutput::Block& block = unsent.blocks[unsent.first_block];
    const std::size_t part = std::min(bytes, block.size);
    block.offset += part;
    block.size -= part;
    bytes -= part;
    unsent.in_blocks -= part;
    if (block.size > 0) break;
    block.bytes = {};
    unsent.own_in_blocks -= block.own;
    ++unsent.first_block;
  }
  if (unsent.first_block == unsent.blocks.size()) {
    if (unsent.blocks.capacity() > kKeptBlocks)
      std::vector<UnsentOutput::Block>().swap(unsent.blocks);
    unsent.blocks.clear();
    unsent.first_block = 0;
  } else if (unsent.first_block > unsent.blocks.size() / 2) {
    unsent.blocks.erase(unsent.blocks.begin(),
                        unsent.blocks.begin() + static_cast<std::ptrdiff_t>(unsent.first_block));
    unsent.first_block = 0;
  }
  unsent.text_sent += bytes;
  if (unsent.text_sent >= kWorthMoving && unsent.text_sent >= unsent.text.size() / 2) compact();
  draw(source.share);
}

/// Moves at most one byte for each byte that has been sent.
void OutputStage::compact() noexcept {
  std::string& text = unsent_->text;
  if (text.size() - unsent_->text_sent < text.capacity() / 4) {
    try {
      std::string rest(text, unsent_->text_sent);
      text.swap(rest);
    } catch (const std::bad_alloc&) {
      text.erase(0, unsent_->text_sent);
    }
  } else {
    text.erase(0, unsent_->text_sent);
  }
  unsent_->text_sent = 0;
}

void OutputStage::clear(BufferPool& pool) noexcept {
  if (unsent_ == nullptr) return;
  UnsentOutput& unsent = *unsent_;
  if (unsent.blocks.capacity() > kKeptBlocks)
    std::vector<UnsentOutput::Block>().swap(unsent.blocks);
  unsent.blocks.clear();
  unsent.first_block = unsent.in_blocks = unsent.own_in_blocks = 0;
  unsent.text.clear();
  unsent.text_sent = unsent.noted = 0;
  unsent.long_messages.clear();
  unsent.hold.release();
  over_share_ = false;
  pool.give_unsent(std::move(unsent_));
}

}  // namespace sluice
