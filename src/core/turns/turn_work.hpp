#pragma once

#include <cstddef>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "core/executor.hpp"

namespace sluice {

/// Limits the work for answering requests in one turn of a loop, so that other tasks of the loop
/// are never much delayed. A small request may ask for a large answer. Code that makes such an
/// answer first checks whether there is work left in this turn, and otherwise waits for a later
/// one. Belongs to its loop.
class TurnWork final : private Executor::TurnHook {
 public:
  explicit TurnWork(Executor& loop) : loop_(&loop) {}
  ~TurnWork() override { loop_->forget(*this); }
  TurnWork(const TurnWork&) = delete;
  TurnWork& operator=(const TurnWork&) = delete;

  /// Whether more work may be done in this turn.
  [[nodiscard]] bool has_left() const { return left_ > 0; }
  /// How much, in bytes of answers.
  [[nodiscard]] std::size_t left() const { return left_; }
  /// Whether nobody waits for a later turn.
  [[nodiscard]] bool is_idle() const { return waiting_.empty(); }
  /// Counts an answer of `bytes` bytes, or work that takes as long.
  void worked(std::size_t bytes);
  /// Runs `task` at once. If there is no work left or other tasks wait, it waits as with wait().
  template <class Task>
  void run(const std::string& client, Task task) {
    if (has_left() && is_idle()) {
      task();
    } else {
      wait(client, std::move(task));
    }
  }
  /// Runs `task` when there is work left, at the end of this turn at the earliest. The clients take
  /// turns.
  void wait(const std::string& client, Executor::Task task);
  /// Counts in under_way() as long as it is held, on any thread.
  using Mark = std::shared_ptr<const Executor*>;
  [[nodiscard]] Mark mark() const { return under_way_; }
  /// The number of waiting tasks and of marks held. Thread-safe.
  [[nodiscard]] std::size_t under_way() const {
    return static_cast<std::size_t>(under_way_.use_count()) - 1;
  }
  /// Drops all waiting tasks.
  void clear() { waiting_.clear(); }

  /// Bytes of answers that may be made in one turn.
  static constexpr std::size_t kTurn = std::size_t{1} << 20U;
  /// Bytes after which an answer that is made in parts lets other tasks run.
  static constexpr std::size_t kPart = std::size_t{256} << 10U;

 private:
  void on_turn_end() override;

  struct Waiting {
    Executor::Task task;
    Mark mark;
  };

  Executor* loop_;
  Mark under_way_ = std::make_shared<const Executor*>(loop_);
  std::map<std::string, std::deque<Waiting>, std::less<>> waiting_;  // no deque is empty
  std::string last_;  // the client whose turn was last
  std::size_t left_ = kTurn;
};

}  // namespace sluice
