#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "client/answer.hpp"
#include "core/clock.hpp"

namespace sluice {

/// How fast an answer came, as seen by the reader and as reported by the server.
class AnswerStats {
 public:
  explicit AnswerStats(TimePoint asked) : asked_(asked) {}

  void on_delta(TimePoint at);
  void on_end(TimePoint at, const AnswerEnd& end);

  [[nodiscard]] std::optional<Duration> first_token() const;
  /// Tokens per second, not counting the first token. Uses the server's own timings if it reports
  /// them, otherwise our clock.
  [[nodiscard]] std::optional<double> tokens_per_second() const;

  /// "42 tokens, 18.3 tokens/s, first after 210 ms, cut off at the length limit". Parts that are
  /// not known are left out.
  [[nodiscard]] std::string summary() const;

  /// {"finish_reason","usage","timings","first_token_ms","total_ms","tokens_per_second"}; members
  /// that are not known are left out.
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
