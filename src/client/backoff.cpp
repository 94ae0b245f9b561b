#include "client/backoff.hpp"

#include <algorithm>
#include <span>

#include "core/crypto/random.hpp"

namespace sluice {

std::optional<Duration> Backoff::next() {
  if (used_ >= policy_.attempts) return std::nullopt;
  Duration wait = policy_.first;
  for (std::uint32_t i = 0; i < used_ && wait < policy_.longest; ++i) wait *= 2;
  wait = std::min(wait, policy_.longest);
  ++used_;
  std::uint32_t random = 0;
  random_bytes(std::as_writable_bytes(std::span(&random, 1)));
  const double share = 0.5 + static_cast<double>(random) / 4294967296.0 / 2;
  return Duration(static_cast<Duration::rep>(static_cast<double>(wait.count()) * share));
}

void Backoff::set_first(Duration first) {
  policy_.first = std::clamp<Duration>(first, std::chrono::milliseconds(1), policy_.longest);
}

}  // namespace sluice
