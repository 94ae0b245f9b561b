#include "proxy/upstream/level_teller.hpp"

namespace sluice {

void LevelTeller::want(LoggingLevel level, bool is_open) {
  wanted_ = level;
  if (is_open) want_told(true);
}

void LevelTeller::want_told(bool renews) {
  is_lost_ = false;
  is_told_again_ = false;
  if (wanted_ == (telling_ != 0 ? sent_ : told_)) return;
  ++round_;
  if (telling_ == 0) tell(renews);
}

void LevelTeller::tell_again() {
  if (!is_lost_) return;
  // The request that follows renews the session, if that is necessary.
  want_told(false);
  is_told_again_ = true;
}

void LevelTeller::begin_session(bool has_levels) {
  told_ = std::nullopt;
  // It would be repeated in the new session, beside another.
  if (std::exchange(telling_, 0) != 0) drop_();
  // A server that forgets each session then is not told for ever.
  if (has_levels) want_told(false);
  if (telling_ != 0) return;
  answered_ = round_;
  on_answered_();
}

void LevelTeller::end_session() {
  answered_ = round_;
  telling_ = 0;
  is_lost_ = false;
}

void LevelTeller::tell(bool renews) {
  sent_ = wanted_;
  telling_ = round_;
  drop_ = tell_(*wanted_, renews, [this, round = telling_](Outcome outcome) {
    if (telling_ == round) on_told(outcome);
  });
}

void LevelTeller::on_told(Outcome outcome) {
  // What was not answered in time may have been taken.
  told_ = outcome == Outcome::taken ? sent_ : std::nullopt;
  is_lost_ = outcome == Outcome::session_over && !is_told_again_;
  answered_ = std::exchange(telling_, 0);
  const bool has_changed = wanted_ != sent_;
  if (!has_changed) answered_ = round_;
  on_answered_();
  if (has_changed) tell(true);
}

}  // namespace sluice
