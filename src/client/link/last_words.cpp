#include "client/link/last_words.hpp"

#include <utility>

namespace sluice {

LastWords::~LastWords() {
  if (timer_ != 0) loop_->cancel(timer_);
}

void LastWords::begin(std::function<void()> done, Executor::Task on_limit) {
  done_ = std::move(done);
  timer_ = loop_->schedule_at(loop_->clock().now() + kLimit,
                              [this, on_limit = std::move(on_limit)]() mutable {
                                timer_ = 0;
                                on_limit();
                              });
}

std::function<void()> LastWords::end() {
  if (timer_ != 0) loop_->cancel(std::exchange(timer_, 0));
  if (!done_) return [] {};
  return std::exchange(done_, {});
}

}  // namespace sluice
