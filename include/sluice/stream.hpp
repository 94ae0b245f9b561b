#pragma once

// Stream, the coroutine type of handlers that send partial output before their result.
//
//   Stream<Total> count(Count in) {
//     for (int i = 1; i <= in.to; ++i) co_yield text(std::to_string(i) + "\n");
//     co_return Total{in.to};
//   }

#include <concepts>
#include <coroutine>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "sluice/call.hpp"
#include "sluice/task.hpp"

namespace sluice {

namespace detail {

struct TextChunk {
  std::string text;
  bool send(Call& call) const { return call.text(text); }
};
struct ProgressChunk {
  double progress;
  std::optional<double> total;
  std::string message;
  bool send(Call& call) const { return call.progress(progress, total, message); }
};
struct LogChunk {
  LoggingLevel level;
  json::value data;
  std::string logger;
  bool send(Call& call) const { return call.log(level, data, logger); }
};

/// Suspends until there is room. With an empty `room`, it does not suspend.
template <class Room>
class Yield {
 public:
  explicit Yield(std::optional<Room> room) : room_(std::move(room)) {
    if (room_) wait_.emplace(*room_);
  }
  bool await_ready() const noexcept { return !wait_ || wait_->await_ready(); }
  void await_suspend(AwaiterHandle awaiter) { wait_->await_suspend(awaiter); }
  void await_resume() const noexcept {}

 private:
  std::optional<Room> room_;
  std::optional<typename Room::Wait> wait_;
};

}  // namespace detail

/// Partial output for co_yield, as Call::text().
inline detail::TextChunk text(std::string text) {
  return {std::move(text)};
}
/// Progress for co_yield, as Call::progress(). `progress` must rise from one to the next.
inline detail::ProgressChunk progress(double progress, std::optional<double> total = {},
                                      std::string message = {}) {
  return {progress, total, std::move(message)};
}
/// A log message for co_yield, as Call::log().
inline detail::LogChunk log(LoggingLevel level, json::value data, std::string logger = {}) {
  return {level, std::move(data), std::move(logger)};
}

template <std::same_as<std::string> Text>
detail::LogChunk log(LoggingLevel level, const Text& text, std::string logger = {}) {
  return log(level, json::value(std::string_view(text)), std::move(logger));
}

/// A coroutine that yields text(), progress() and log(), and returns a `T`. Under backpressure a
/// co_yield suspends until the peer has read enough. Over HTTP, the first co_yield turns the reply
/// into an event stream.
template <class T>
class [[nodiscard]] Stream {
 public:
  class promise_type : public detail::ValuePromise<T> {  // NOLINT(readability-identifier-naming)
   public:
    Stream get_return_object() { return Stream(detail::Frame<promise_type>(*this)); }

    template <class Chunk>
    auto yield_value(const Chunk& chunk) {
      static_assert(
          requires(Call& call) { chunk.send(call); },
          "a Stream yields sluice::text(), sluice::progress() or sluice::log()");
      using Room = decltype(call_->room());
      return detail::Yield<Room>(chunk.send(*call_) ? std::nullopt
                                                    : std::optional<Room>(call_->room()));
    }
    void set_call(Call& call) { call_ = &call; }

   private:
    Call* call_ = nullptr;
  };

  /// Awaiting this runs the coroutine to its end, sends what it yields to `call`, which must
  /// outlive it, and returns or throws what it does.
  auto to(Call& call) && {
    frame_.get().promise().set_call(call);
    return detail::RunToEnd<promise_type>(std::move(frame_));
  }

 private:
  explicit Stream(detail::Frame<promise_type> frame) : frame_(std::move(frame)) {}

  detail::Frame<promise_type> frame_;
};

}  // namespace sluice
