#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <variant>

#include "client/answer.hpp"

namespace sluice {

/// Passes an answer from the client's loop to another thread. The loop waits while the queue is
/// full, so that a slow terminal slows the connection down instead of filling memory.
class AnswerQueue final : public AnswerSink {
 public:
  struct Text {
    AnswerDelta::Kind kind;
    std::string text;
    TimePoint at;  // when it was received
  };
  struct Retry {
    Error why;
    Duration wait;
  };
  using Event = std::variant<Text, Retry, AnswerEnd>;

  AnswerQueue();
  ~AnswerQueue() override;
  AnswerQueue(const AnswerQueue&) = delete;
  AnswerQueue& operator=(const AnswerQueue&) = delete;

  // Called on the client's loop.
  void on_delta(const AnswerDelta& delta) override;
  void on_retry(const Error& why, Duration wait) override;
  void on_end(const AnswerEnd& end) override;

  /// A descriptor that is readable while there are events to take.
  [[nodiscard]] int fd() const { return fd_; }
  /// The next event, if there is one.
  std::optional<Event> take();
  /// Nobody will take events any more. Later events are dropped, and the loop never waits.
  void abandon();

 private:
  void push(Event event, std::size_t bytes);

  static constexpr std::size_t kMaxBytes = std::size_t{1} << 20U;

  int fd_;
  std::mutex mutex_;
  std::condition_variable room_;
  std::deque<Event> events_;  // guarded by mutex_, like all below
  std::size_t bytes_ = 0;
  bool abandoned_ = false;
};

}  // namespace sluice
