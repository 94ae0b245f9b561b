#include "core/turns/turn_watch.hpp"

#include <chrono>
#include <cstdint>
#include <optional>

#include "core/log/log.hpp"

namespace sluice {

void TurnWatch::begin(Work work) {
  work.name = work.name.substr(0, kMaxName);
  if (is_watching_ && work.name == name_ && work.kind == kind_) return;
  const TimePoint now = loop_->clock().now();
  if (is_watching_) {
    finish(now);
  } else {
    loop_->at_turn_end(*this);
  }
  name_ = work.name;
  kind_ = work.kind;
  since_ = now;
  is_watching_ = true;
}

void TurnWatch::on_turn_end() {
  is_watching_ = false;
  finish(loop_->clock().now());
}

void TurnWatch::finish(TimePoint now) {
  if (kind_.empty() || now - since_ < kLong) return;
  const std::optional<std::int64_t> left_out = limit_.take(now);
  if (!left_out) return;
  const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(now - since_);
  log_warning(
      "user code blocks its event loop: wrap a handler in blocking(), or await in_background(); "
      "other code must not wait",
      {{kind_, std::string_view(name_)},
       {"ms", std::int64_t{ms.count()}},
       {"left_out", *left_out}});
}

}  // namespace sluice
