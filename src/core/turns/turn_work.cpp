#include "core/turns/turn_work.hpp"

#include <algorithm>
#include <utility>

#include "core/sharing/client_turns.hpp"

namespace sluice {

void TurnWork::worked(std::size_t bytes) {
  left_ -= std::min(bytes, left_);
  loop_->at_turn_end(*this);
}

void TurnWork::wait(const std::string& client, Executor::Task task) {
  waiting_[client].push_back({std::move(task), under_way_});
  loop_->at_turn_end(*this);
}

void TurnWork::on_turn_end() {
  left_ = kTurn;
  // Before running tasks, because a task may throw.
  if (!waiting_.empty()) loop_->at_turn_end(*this);
  while (has_left() && !waiting_.empty()) {
    const auto turn = next_turn(waiting_, last_, [](const auto&) { return true; });
    last_ = turn->first;
    // The task may call wait() again. Until then, `next` counts as under way.
    Waiting next = std::move(turn->second.front());
    turn->second.pop_front();
    if (turn->second.empty()) waiting_.erase(turn);
    next.task();
  }
}

}  // namespace sluice
