#pragma once

#include <algorithm>
#include <cstdint>

#include "core/clock.hpp"

namespace sluice {

/// How many prompt tokens go into one step of the model, beside the tokens being decoded. As many
/// as keep a step short, whatever the machine and the model: the others' next token and a
/// cancellation wait for at most one step.
class PrefillBudget {
 public:
  static constexpr std::uint32_t kFirst = 64;
  static constexpr std::uint32_t kLeast = 16;

  explicit PrefillBudget(std::uint32_t most, Duration target = std::chrono::milliseconds(100))
      : most_(std::max(most, kLeast)), target_(target) {}

  [[nodiscard]] std::uint32_t tokens() const { return tokens_; }

  /// A step with `tokens` prompt tokens took `elapsed`. Steps that did not use the budget up say
  /// nothing about a larger one.
  void observe(std::uint32_t tokens, Duration elapsed) {
    if (tokens == 0) return;
    if (elapsed > target_ * 2) {
      tokens_ = std::max(kLeast, tokens_ / 2);
    } else if (elapsed < target_ / 2 && tokens >= tokens_) {
      tokens_ = tokens_ * 2;
    }
    tokens_ = std::min(tokens_, most_);
  }

 private:
  std::uint32_t most_;
  Duration target_;
  std::uint32_t tokens_ = std::min(kFirst, most_);
};

}  // namespace sluice
