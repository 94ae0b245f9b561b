#include "engine/llama/scheduling/slot_chooser.hpp"

#include <algorithm>

namespace sluice {

std::size_t common_prefix(std::span<const std::int32_t> a, std::span<const std::int32_t> b) {
  return static_cast<std::size_t>(std::ranges::mismatch(a, b).in1 - a.begin());
}

std::optional<SlotChoice> choose_slot(std::span<const SlotView> slots,
                                      std::span<const std::int32_t> prompt, std::size_t min_copy) {
  const auto usable = prompt.first(prompt.empty() ? 0 : prompt.size() - 1);
  const auto shared = [&](const SlotView& slot) {
    return slot.foreign ? 0 : common_prefix(slot.tokens, usable);
  };
  std::optional<SlotChoice> best;    // the free slot that holds most of the prompt
  std::optional<std::size_t> other;  // the free slot with the least valuable content
  SlotChoice source;                 // the slot that holds most of the prompt, free or not
  for (std::size_t i = 0; i < slots.size(); ++i) {
    const SlotView& slot = slots[i];
    const std::size_t common = shared(slot);
    if (common > source.keep) source = {.slot = i, .keep = common};
    if (!slot.free) continue;
    if (!best || common > best->keep) best = SlotChoice{.slot = i, .keep = common};
    const auto age = [&](std::size_t at) {
      return slots[at].tokens.empty() ? 0 : slots[at].last_used + 1;
    };
    if (!other || age(i) < age(*other)) other = i;
  }
  if (!best) return std::nullopt;
  const std::size_t worth = std::min(usable.size(), slots[best->slot].tokens.size());
  if (best->keep == 0 || best->keep * 2 < worth) {
    best = SlotChoice{.slot = *other, .keep = shared(slots[*other])};
  }
  if (source.slot != best->slot && source.keep >= best->keep + min_copy) {
    best->keep = source.keep;
    best->copy_from = source.slot;
  }
  return best;
}

}  // namespace sluice
