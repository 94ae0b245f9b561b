#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace sluice {

/// A slot as the choice sees it. `tokens` are those whose keys and values it holds.
struct SlotView {
  std::span<const std::int32_t> tokens;
  bool free = false;
  bool foreign = false;         // its content may not be used for this prompt
  std::uint64_t last_used = 0;  // larger is later
};

struct SlotChoice {
  std::size_t slot = 0;
  std::size_t keep = 0;  // of its tokens, from the beginning
  std::optional<std::size_t> copy_from =
      {};  // another slot, free or not, that holds more of the prompt
};

/// The length of the longest common prefix.
std::size_t common_prefix(std::span<const std::int32_t> a, std::span<const std::int32_t> b);

/// Chooses a free slot for `prompt`; nothing if none is free.
///
/// The one that already holds the longest beginning of the prompt is taken if that is worth its
/// content: at least half of the prompt or of what it holds. Otherwise an empty one, or the one
/// whose content was longest unused, gives way, and the beginning is copied from the slot that has
/// it when that saves at least `min_copy` tokens. The last token of the prompt is never kept: it
/// must be computed to predict the next.
std::optional<SlotChoice> choose_slot(std::span<const SlotView> slots,
                                      std::span<const std::int32_t> prompt, std::size_t min_copy);

}  // namespace sluice
