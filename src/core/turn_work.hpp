#pragma once

#include <cstddef>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "core/executor.hpp"

namespace sluice {

/// How much answering requests may do in one turn of a loop, so that what else runs there is never
/// late by much. What a request of few bytes asks for may be large; whoever makes it looks first
/// whether there is work left, and else waits for a later turn. Belongs to its loop.
class TurnWork final : private Executor::TurnHook {
 public:
  explicit TurnWork(Executor& loop) : loop_(&loop) {}
  ~TurnWork() override { loop_->forget(*this); }
  TurnWork(const TurnWork&) = delete;
  TurnWork& operator=(const TurnWork&) = delete;

  /// Whether more may be done in this turn.
  [[nodiscard]] bool has_left() const { return left_ > 0; }
  /// Says that an answer of so many bytes has been made, or something that takes as long.
  void worked(std::size_t bytes);
  /// Runs `task` at once, or if there is no work left or others wait, as wait().
  template <class Task>
  void run(const std::string& client, Task task) {
    if (has_left() && waiting_.empty()) {
      task();
    } else {
      wait(client, std::move(task));
    }
  }
  /// Runs `task` when there is work left, at the earliest at the end of this turn. Clients have
  /// their turns.
  void wait(const std::string& client, Executor::Task task);
  /// Counts as under way as long as it is held, on any thread.
  using Mark = std::shared_ptr<const Executor*>;
  [[nodiscard]] Mark mark() const { return under_way_; }
  /// How much waits, or holds a mark. Thread-safe.
  [[nodiscard]] std::size_t under_way() const {
    return static_cast<std::size_t>(under_way_.use_count()) - 1;
  }
  /// Forgets what waits.
  void clear() { waiting_.clear(); }

  /// Bytes in one turn.
  static constexpr std::size_t kTurn = std::size_t{1} << 20U;
  /// Bytes after which one answer that is made in parts lets others go on.
  static constexpr std::size_t kPart = std::size_t{256} << 10U;

 private:
  void on_turn_end() override;

  struct Waiting {
    Executor::Task task;
    Mark mark;
  };

  Executor* loop_;
  Mark under_way_ = std::make_shared<const Executor*>(loop_);
  std::map<std::string, std::deque<Waiting>, std::less<>> waiting_;  // none is empty
  std::string last_;                                                 // whose turn was last
  std::size_t left_ = kTurn;
};

}  // namespace sluice
