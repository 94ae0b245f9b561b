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

/// Decides how many tokens of which prompts go into one step of the model, besides one token for
/// each answer in progress.
///
/// A step takes the same time for everyone in it. Prompts are therefore split into pieces that keep
/// steps short on any machine and model: the next token of other answers, a cancellation or a new
/// request waits for at most one step. Half of a step is for the oldest prompt and the rest for the
/// shortest ones, so that neither waits long for the other.
///
/// A piece is at least kPiece tokens, unless that would take longer than a step without answers
/// may. Each additional step delays the first token by the time that the answers take, and small
/// pieces cost more per token. The rest of a short prompt is processed at once if at least as many
/// prompts wait for their first token as answers are in progress: one long pause for a few costs
/// less than many pauses for all. Neither holds beside the answers of another client: that one
/// gains nothing from it, and whoever sends one prompt after another would make each step a long
/// pause.
class PrefillBudget {
 public:
  static constexpr std::uint32_t kFirst = 64;  // while the speed is unknown
  static constexpr std::uint32_t kLeast = 16;
  static constexpr std::uint32_t kPiece =
      256;  // the smallest piece worth a step, and the longest rest of a short prompt

  /// `most` is the maximum of tokens in a step. `pause` is how long a step with answers should
  /// take, `idle` how long any step may take.
  explicit PrefillBudget(std::uint32_t most, Duration pause = std::chrono::milliseconds(200),
                         Duration idle = std::chrono::seconds(1))
      : most_(std::max(most, kLeast)), pause_(pause), idle_(idle) {}

  /// Whether the prompts and the answers of a step belong to one client.
  enum class Clients : std::uint8_t { one, several };

  /// Returns the number of tokens to process of each prompt. `missing` has the remaining tokens of
  /// each prompt, oldest first; `answers` is the number of answers in progress.
  [[nodiscard]] std::vector<std::uint32_t> share(std::span<const std::uint32_t> missing,
                                                 std::size_t answers, Clients clients) const {
    std::vector<std::uint32_t> pieces(missing.size());
    std::uint32_t room = most_;
    const auto give = [&](std::size_t i, std::uint32_t tokens) {
      const std::uint32_t piece = std::min({tokens, missing[i] - pieces[i], room});
      pieces[i] += piece;
      room -= piece;
      return piece;
    };
    std::uint32_t left = tokens_within(idle_);
    const bool is_strict = answers > 0 && clients == Clients::several;
    if (answers > 0) {
      left = std::max(tokens_within(pause_), is_strict ? 0 : std::min(kPiece, left));
    }
    if (missing.size() > 1) left -= give(0, left / 2);
    std::vector<std::size_t> shortest(missing.size());
    std::iota(shortest.begin(), shortest.end(), 0);
    std::ranges::sort(shortest, {}, [&](std::size_t i) { return std::pair(missing[i], i); });
    for (const std::size_t i : shortest) left -= give(i, left);
    if (missing.size() < answers || is_strict) return pieces;
    for (std::size_t i = 0; i < missing.size(); ++i) {
      const std::uint32_t rest = missing[i] - pieces[i];
      if (rest <= kPiece && rest <= room) give(i, rest);
    }
    return pieces;
  }

  /// Records that a step with `tokens` tokens, of prompts and answers, took `elapsed`.
  void observe(std::uint32_t tokens, Duration elapsed) {
    if (tokens < kLeast) return;
    const Duration each = elapsed / tokens;
    // Follows a slowdown at once and a speed-up slowly.
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
  Duration each_{};  // time per token; zero: not known yet
};

}  // namespace sluice
