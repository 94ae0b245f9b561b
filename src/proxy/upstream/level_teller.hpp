#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <utility>

#include "protocol/logging_level.hpp"

namespace sluice {

/// Tells a server of the legacy era which log level its client wants: by one request after the
/// other, so that what is wanted last is told last. Other requests wait for that, because over HTTP
/// they could overtake it. Belongs to its loop.
class LevelTeller {
 public:
  enum class Outcome : std::uint8_t { taken, refused, session_over };
  using Told = std::function<void(Outcome)>;
  /// Sends `logging/setLevel`. `told` is called at most once, later. `renews`: a session that is
  /// forgotten is replaced for it. Returns what drops the request.
  using Tell = std::function<std::function<void()>(LoggingLevel level, bool renews, Told told)>;
  /// Counts the levels that were to be told.
  using Round = std::uint64_t;

  /// `on_answered` is called when is_answered() may have changed.
  LevelTeller(Tell tell, std::function<void()> on_answered)
      : tell_(std::move(tell)), on_answered_(std::move(on_answered)) {}
  LevelTeller(const LevelTeller&) = delete;
  LevelTeller& operator=(const LevelTeller&) = delete;

  /// `is_open`: there is a session whose server has log levels. Kept for sessions that follow.
  void want(LoggingLevel level, bool is_open);
  /// What is wanted last.
  [[nodiscard]] std::optional<LoggingLevel> wanted() const { return wanted_; }
  /// A request begins, before which the server is told what it could not be told.
  void tell_again();
  /// A session begins, perhaps in place of one that the server has forgotten. It knows of no level.
  /// `has_levels`: its server has them.
  void begin_session(bool has_levels);
  /// Nothing is under way any more.
  void end_session();

  /// Of the last level that was to be told. A request that begins now waits until it is answered.
  [[nodiscard]] Round round() const { return round_; }
  [[nodiscard]] bool is_answered(Round round) const { return round <= answered_; }

 private:
  void want_told(bool renews);
  void tell(bool renews);
  void on_told(Outcome outcome);

  const Tell tell_;
  const std::function<void()> on_answered_;
  std::optional<LoggingLevel> wanted_;
  std::optional<LoggingLevel> told_;  // that the server has taken in this session
  std::optional<LoggingLevel> sent_;  // that it was told last
  std::function<void()> drop_;        // that request
  bool is_lost_ = false;              // with its session
  bool is_told_again_ = false;        // what was lost, once in a session
  Round round_ = 0;
  Round telling_ = 0;   // 0: none
  Round answered_ = 0;  // the last one that the server has answered
};

}  // namespace sluice
