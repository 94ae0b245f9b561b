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
  if (telling_ != 0) {
    // That request is sent again in the new session. Another one beside it could overtake it.
    is_renewed_ = true;
    return;
  }
  if (has_levels) want_told();
  if (telling_ != 0) return;
  answered_ = round_;
  on_answered_();
}

void LevelTeller::end_session() {
  answered_ = round_;
  telling_ = 0;
  is_renewed_ = false;
}

void LevelTeller::tell() {
  sent_ = wanted_;
  is_renewed_ = false;
  telling_ = round_;
  tell_(*wanted_, [this, round = telling_](bool is_taken) {
    if (telling_ == round) on_told(is_taken);
  });
}

void LevelTeller::on_told(bool is_taken) {
  // Nobody knows which session has answered. It is told once more, and not for ever.
  const bool was_renewed = std::exchange(is_renewed_, false);
  if (was_renewed && !std::exchange(is_told_again_, true)) return tell();
  is_told_again_ = false;
  // What was not answered in time may have been taken.
  told_ = is_taken && !was_renewed ? sent_ : std::nullopt;
  answered_ = std::exchange(telling_, 0);
  const bool has_changed = wanted_ != sent_;
  if (!has_changed) answered_ = round_;
  on_answered_();
  if (has_changed) tell();
}

}  // namespace sluice
