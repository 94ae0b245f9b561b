#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "client/answer.hpp"
#include "core/clock.hpp"

namespace sluice {

/// How fast an answer came: what the reader saw, and what the server reports about itself.
class AnswerStats {
 public:
  explicit AnswerStats(TimePoint asked) : asked_(asked) {}

  void on_delta(TimePoint at);
  void on_end(TimePoint at, const AnswerEnd& end);

  [[nodiscard]] std::optional<Duration> first_token() const;
  /// Tokens after the first one a second, by the server's own clock if it tells, else by ours.
  [[nodiscard]] std::optional<double> tokens_per_second() const;

  /// "42 tokens, 18.3 tokens/s, first after 210 ms, stopped at the length limit"; as much of it as
  /// is known.
  [[nodiscard]] std::string summary() const;

  /// {"finish_reason","usage","timings","first_token_ms","total_ms","tokens_per_second"}; unknown
  /// ones are left out.
  [[nodiscard]] json::object to_object() const;

 private:
  [[nodiscard]] std::int64_t tokens() const;

  TimePoint asked_;
  std::optional<TimePoint> first_;
  TimePoint last_{};
  TimePoint ended_{};
  std::int64_t deltas_ = 0;
  AnswerEnd end_;
};

}  // namespace sluice
