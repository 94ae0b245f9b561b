#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/clock.hpp"
#include "fault.hpp"
#include "protocol/revision.hpp"

namespace sluice::faults {

/// A tools/call of the client.
struct PlannedCall {
  const Fault* fault;
  Duration begins;                         // after connecting
  std::optional<Duration> cancelled = {};  // after it has begun
  std::optional<Duration> timeout = {};    // in total
  int progress = 0;                        // notifications before the answer
};

/// What the client does when it hears an answer.
enum class Reaction : std::uint8_t {
  none,
  cancels,  // what is still unanswered
  leaves,   // it destroys the session
};

/// What client and server do. Everything else follows from the seed too.
struct Plan {
  std::uint64_t seed;
  Transport transport;
  const Revision* revision;  // of the server
  bool is_pinned;            // the client knows it
  const Fault* connecting;   // of the request that connects
  /// What the faults of Place::refusal drip and cut.
  const Fault* refusal;
  std::vector<PlannedCall> calls;
  Reaction reaction = Reaction::none;
  std::optional<Duration> leaves = {};  // when the session is destroyed, after connecting
  std::size_t max_message = std::size_t{64} << 10U;  // that the client takes, in bytes
  /// After how many bytes what is cut is cut, if it is so long. Otherwise, the seed decides.
  std::optional<std::size_t> cut_at = {};

  [[nodiscard]] std::string describe() const;
};

/// What a request of the plan can be refused with.
std::vector<const Fault*> refusals_for(const Plan& plan, bool is_connecting);
Plan draw_plan(std::uint64_t seed);
/// The same, with this fault, over this transport, in this request.
Plan draw_plan(std::uint64_t seed, const Fault& fault, Transport transport, bool is_connecting);

}  // namespace sluice::faults
