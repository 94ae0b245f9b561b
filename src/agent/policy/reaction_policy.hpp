#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>

#include "core/clock.hpp"
#include "core/error.hpp"

namespace sluice {

/// When the model is shown what a running tool has written so far, and asked what it makes of it.
struct ReactionPolicy {
  enum class When : std::uint8_t {
    pass_through,  // never: it sees the result alone
    every_chunk,   // at once
    every_n,       // after `every` chunks
    debounce,      // when the tool pauses for `quiet`, or `max_wait` or `max_bytes` is reached
    match,         // when a line contains `pattern`
    on_demand,     // when it asks with tool_status
    on_idle,       // when it has nothing else to do
  };
  When when = When::pass_through;
  std::uint32_t every = 1;
  Duration quiet = std::chrono::milliseconds(300);
  Duration max_wait = std::chrono::seconds(2);
  std::size_t max_bytes = 4096;
  std::string pattern = {};  // RE2

  /// Whether an answer that the model is giving is broken off, rather than waited for.
  bool interrupts = false;
  /// The least time between two reactions to a call.
  Duration min_interval{};
  std::uint32_t max_reactions = 20;       // of a call; 0: no limit
  std::uint64_t max_reaction_tokens = 0;  // that the model writes in them; 0: no limit
};

/// Nothing, or what is wrong with it (-32602): a number that must not be 0, a pattern that is none.
Result<void> check(const ReactionPolicy& policy);

}  // namespace sluice
