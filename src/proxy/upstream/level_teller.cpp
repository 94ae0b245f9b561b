#include "proxy/upstream/level_teller.hpp"

namespace sluice {

void LevelTeller::want(LoggingLevel level, bool is_open) {
  wanted_ = level;
  if (is_open) want_told();
}

void LevelTeller::want_told() {
  if (wanted_ == (telling_ != 0 ? sent_ : told_)) return;
  ++round_;
  if (telling_ == 0) tell();
}

void LevelTeller::begin_session(bool has_levels) {
  told_ = std::nullopt;
  // It would be repeated in the new session, beside another.
  const bool is_dropped = std::exchange(telling_, 0) != 0;
  if (is_dropped) drop_();
  // A server that forgets each session then is not told for ever.
  const bool is_given_up = is_dropped && was_dropped_;
  was_dropped_ = is_dropped && !is_given_up;
  if (has_levels && !is_given_up) want_told();
  if (telling_ != 0) return;
  answered_ = round_;
  on_answered_();
}

void LevelTeller::end_session() {
  answered_ = round_;
  telling_ = 0;
  was_dropped_ = false;
}

void LevelTeller::tell() {
  sent_ = wanted_;
  telling_ = round_;
  drop_ = tell_(*wanted_, [this, round = telling_](bool is_taken) {
    if (telling_ == round) on_told(is_taken);
  });
}

void LevelTeller::on_told(bool is_taken) {
  was_dropped_ = false;
  // What was not answered in time may have been taken.
  told_ = is_taken ? sent_ : std::nullopt;
  answered_ = std::exchange(telling_, 0);
  const bool has_changed = wanted_ != sent_;
  if (!has_changed) answered_ = round_;
  on_answered_();
  if (has_changed) tell();
}

}  // namespace sluice
