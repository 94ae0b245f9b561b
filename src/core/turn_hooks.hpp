#pragma once

#include "core/executor.hpp"

namespace sluice {

/// The turn-end hooks of one executor, in the order in which they were added. Allocates nothing.
/// Not thread-safe.
class TurnHooks {
 public:
  TurnHooks() = default;
  ~TurnHooks() {
    take_all(waiting_);
    take_all(running_);
  }
  TurnHooks(const TurnHooks&) = delete;
  TurnHooks& operator=(const TurnHooks&) = delete;

  void add(Executor::TurnHook& hook) { link(waiting_, hook); }
  static void remove(Executor::TurnHook& hook) { unlink(hook); }
  [[nodiscard]] bool empty() const {
    return waiting_.next_ == &waiting_ && running_.next_ == &running_;
  }

  /// Calls the hooks. Hooks that are added meanwhile wait for the next turn.
  void run() {
    if (waiting_.next_ != &waiting_) append_waiting();
    while (running_.next_ != &running_) {
      Link& next = *running_.next_;
      unlink(next);
      static_cast<Executor::TurnHook&>(next).on_turn_end();
    }
  }

 private:
  using Link = Executor::TurnLink;

  /// An empty list is linked to itself.
  struct List : Link {
    List() { previous_ = next_ = this; }
  };

  static void link(List& list, Link& link) {
    link.previous_ = list.previous_;
    link.next_ = &list;
    list.previous_->next_ = &link;
    list.previous_ = &link;
  }
  static void unlink(Link& link) {
    link.previous_->next_ = link.next_;
    link.next_->previous_ = link.previous_;
    link.previous_ = link.next_ = nullptr;
  }
  /// Appends after hooks that were not called because an earlier one threw.
  void append_waiting() {
    running_.previous_->next_ = waiting_.next_;
    waiting_.next_->previous_ = running_.previous_;
    waiting_.previous_->next_ = &running_;
    running_.previous_ = waiting_.previous_;
    waiting_.previous_ = waiting_.next_ = &waiting_;
  }
  static void take_all(List& list) {
    while (list.next_ != &list) unlink(*list.next_);
  }

  List waiting_;
  List running_;
};

}  // namespace sluice
