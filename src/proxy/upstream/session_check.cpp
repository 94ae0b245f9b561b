#include "proxy/upstream/session_check.hpp"

namespace sluice {

void SessionCheck::want(bool is_wanted) {
  is_wanted_ = is_wanted;
  schedule();
}

void SessionCheck::on_answered(bool is_over) {
  const bool is_vain = is_over && was_renewed_;
  if (!is_vain) vain_pause_.reset();
  if (std::exchange(is_vain_, is_vain) == is_vain) return;
  unschedule();
  schedule();
}

void SessionCheck::end() {
  is_wanted_ = false;
  unschedule();
}

void SessionCheck::unschedule() {
  if (timer_ != 0) loop_->cancel(std::exchange(timer_, 0));
}

void SessionCheck::schedule() {
  if (!is_wanted_ || timer_ != 0) return;
  const Duration pause = is_vain_ ? *vain_pause_.next() : *pause_.next();
  timer_ = loop_->schedule_at(loop_->clock().now() + pause, [this] {
    timer_ = 0;
    schedule();
    if (!is_wanted_) return;
    was_renewed_ = false;
    check_();
  });
}

}  // namespace sluice
