#include "server/calls/call_memory.hpp"

#include <utility>

#include "core/log/over_limit.hpp"

namespace sluice {

Result<MemoryHold> hold_for_call(const StreamManager& streams, const std::string& principal,
                                 std::size_t bytes, std::string_view what) {
  if (bytes <= CoarseHold::kFree) return MemoryHold();
  return hold_all(streams.memory_of(principal), bytes, what);
}

Result<MemoryHold> hold_all(std::shared_ptr<MemoryShare> share, std::size_t bytes,
                            std::string_view what) {
  MemoryHold hold(std::move(share));
  if (hold.add(bytes)) return hold;
  return over_limit(
      "Your streams, calls and subscriptions have used all the memory that one client may have, "
      "and there is "
      "none for " +
      std::string(what) + "; wait for some, or raise streams.max_total_bytes");
}

}  // namespace sluice
