#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace sluice {

/// What the choice needs to know of a slot. `tokens` are the tokens whose keys and values it holds.
struct SlotView {
  std::span<const std::int32_t> tokens;
  bool free = false;
  bool foreign = false;         // its content must not be used for this prompt
  std::uint64_t last_used = 0;  // larger is later
};

struct SlotChoice {
  std::size_t slot = 0;
  std::size_t keep = 0;  // how many of its first tokens to keep
  std::optional<std::size_t> copy_from =
      {};  // another slot, free or not, that holds more of the prompt
};

/// The length of the longest common prefix.
std::size_t common_prefix(std::span<const std::int32_t> a, std::span<const std::int32_t> b);

/// Chooses a free slot for `prompt`; nothing if none is free.
///
/// A slot that holds the longest beginning of the prompt is chosen if that beginning is worth
/// keeping: it is at least half of the prompt or of the slot's content. Otherwise an empty slot is
/// chosen, or the one whose content has been unused for longest; the beginning is copied to it from
/// the slot that has it if that saves at least `min_copy` tokens. The last token of the prompt is
/// never kept, because it must be computed to predict the next one.
std::optional<SlotChoice> choose_slot(std::span<const SlotView> slots,
                                      std::span<const std::int32_t> prompt, std::size_t min_copy);

}  // namespace sluice
