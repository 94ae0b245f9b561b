#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "core/clock.hpp"

namespace sluice {

/// How many tokens of which prompts go into one step of the model, beside one token for each answer
/// that is under way.
///
/// A step is as long for all who are in it. So prompts come in pieces that keep it short, whatever
/// the machine and the model: the others' next token, a cancellation and whoever is new wait for at
/// most one. Half of that is for the oldest prompt, and the rest for the shortest, so that neither
/// waits for the other for long. Pieces have a size that is worth a step, though, unless that takes
/// as long as a step without answers may: each further step puts the first token off by what the
/// answers take, and small pieces cost more a token. And short prompts go in whole while those who
/// wait for their first token are not fewer than those who are answered: one long pause for a few
/// costs less than many for all.
class PrefillBudget {
 public:
  static constexpr std::uint32_t kFirst = 64;  // while nothing is known
  static constexpr std::uint32_t kLeast = 16;
  static constexpr std::uint32_t kPiece = 256;  // is worth a step; what is left of a short prompt

  /// `most` tokens a step; `pause` is what a step should take beside answers, `idle` what any may.
  explicit PrefillBudget(std::uint32_t most, Duration pause = std::chrono::milliseconds(200),
                         Duration idle = std::chrono::seconds(1))
      : most_(std::max(most, kLeast)), pause_(pause), idle_(idle) {}

  /// The piece of each prompt, given what is `missing` of each, the oldest first, and how many
  /// answers are under way.
  [[nodiscard]] std::vector<std::uint32_t> share(std::span<const std::uint32_t> missing,
                                                 std::size_t answers) const {
    std::vector<std::uint32_t> pieces(missing.size());
    std::uint32_t room = most_;
    const auto give = [&](std::size_t i, std::uint32_t tokens) {
      const std::uint32_t piece = std::min({tokens, missing[i] - pieces[i], room});
      pieces[i] += piece;
      room -= piece;
      return piece;
    };
    std::uint32_t left = tokens_within(idle_);
    if (answers > 0) left = std::max(tokens_within(pause_), std::min(kPiece, left));
    if (missing.size() > 1) left -= give(0, left / 2);
    std::vector<std::size_t> shortest(missing.size());
    std::iota(shortest.begin(), shortest.end(), 0);
    std::ranges::sort(shortest, {}, [&](std::size_t i) { return std::pair(missing[i], i); });
    for (const std::size_t i : shortest) left -= give(i, left);
    if (missing.size() < answers) return pieces;
    for (std::size_t i = 0; i < missing.size(); ++i) {
      const std::uint32_t rest = missing[i] - pieces[i];
      if (rest <= kPiece && rest <= room) give(i, rest);
    }
    return pieces;
  }

  /// A step of `tokens`, of prompts and answers, took `elapsed`.
  void observe(std::uint32_t tokens, Duration elapsed) {
    if (tokens < kLeast) return;
    const Duration each = elapsed / tokens;
    // Follows at once what got slower, and slowly what got faster.
    each_ = each_ == Duration::zero() || each > each_ ? each : (each_ * 3 + each) / 4;
  }

 private:
  [[nodiscard]] std::uint32_t tokens_within(Duration time) const {
    if (each_ <= Duration::zero()) return kFirst;
    return static_cast<std::uint32_t>(std::clamp<std::int64_t>(time / each_, kLeast, most_));
  }

  std::uint32_t most_;
  Duration pause_;
  Duration idle_;
  Duration each_{};  // what a token takes; zero: not known yet
};

}  // namespace sluice
