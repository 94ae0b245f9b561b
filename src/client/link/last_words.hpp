#pragma once

#include <chrono>
#include <functional>

#include "core/clock.hpp"
#include "core/executor.hpp"

namespace sluice {

/// The end of a link that is closed while it still has something to send: how long that may take,
/// and who waits for it. Belongs to the link and its loop.
class LastWords {
 public:
  /// How long a link that is closed goes on sending what needs no answer.
  static constexpr Duration kLimit = std::chrono::seconds(2);

  /// `loop` outlives this.
  explicit LastWords(Executor& loop) : loop_(&loop) {}
  ~LastWords();
  LastWords(const LastWords&) = delete;
  LastWords& operator=(const LastWords&) = delete;

  /// Calls `on_limit` after kLimit, unless end() comes first. `done` is for end(). Call once.
  void begin(std::function<void()> done, Executor::Task on_limit);
  /// Whether end() is to come.
  [[nodiscard]] bool have_begun() const { return static_cast<bool>(done_); }
  /// Returns what to call when the link has ended: `done` of begin(), or what does nothing if that
  /// was not called. Takes the limit back.
  [[nodiscard]] std::function<void()> end();

 private:
  Executor* loop_;
  std::function<void()> done_;
  Executor::TimerId timer_ = 0;
};

}  // namespace sluice
