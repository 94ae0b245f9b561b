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

/// Brings an answer from the client's loop to another thread. A loop that is far ahead waits, so
/// that a slow terminal slows the connection down instead of filling the memory.
class AnswerQueue final : public AnswerSink {
 public:
  struct Text {
    AnswerDelta::Kind kind;
    std::string text;
    TimePoint at;  // received
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

  // On the client's loop.
  void on_delta(const AnswerDelta& delta) override;
  void on_retry(const Error& why, Duration wait) override;
  void on_end(const AnswerEnd& end) override;

  /// Readable while there are events to take.
  [[nodiscard]] int fd() const { return fd_; }
  /// The next event, if there is one.
  std::optional<Event> take();
  /// Nobody takes any more: what still comes is dropped, and the loop never waits.
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
