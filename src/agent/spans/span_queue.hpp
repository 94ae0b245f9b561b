#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "client/backoff.hpp"
#include "core/clock.hpp"
#include "core/executor.hpp"
#include "sluice/spans.hpp"

namespace sluice {

/// Spans that wait to be sent, in batches, one after another. Belongs to the executor.
class SpanQueue {
 public:
  /// What has become of a batch.
  struct Outcome {
    enum class Kind : std::uint8_t { taken, refused, try_again };
    Kind kind = Kind::taken;
    std::string why = {};               // it was not taken
    std::optional<Duration> wait = {};  // that the receiver asks for, before it is tried again
  };
  using Done = std::function<void(Outcome)>;
  /// Sends a batch, which is valid until `done` is called: once, and not within the call.
  using Send = std::function<void(const std::vector<Span>& batch, Done done)>;

  struct Options {
    std::size_t max_waiting;  // the batch that is being sent not counted; further ones are dropped
    std::size_t max_batch;
    Duration interval;  // that a span waits for others
    Backoff::Policy retries = {
        .first = std::chrono::seconds(1), .longest = std::chrono::seconds(30), .attempts = 5};
  };

  SpanQueue(Executor& loop, Options options, Send send);
  ~SpanQueue();
  SpanQueue(const SpanQueue&) = delete;
  SpanQueue& operator=(const SpanQueue&) = delete;

  void add(Span span);
  /// Sends what there is without waiting for more, and calls `done` once all is sent or dropped.
  void flush(std::function<void()> done);

 private:
  void send_next();
  void send_batch();
  void on_outcome(Outcome outcome);
  void schedule(Duration wait, void (SpanQueue::*what)());

  Executor* loop_;
  Options options_;
  Send send_;
  std::deque<Span> waiting_;
  std::vector<Span> batch_;  // that is being sent; empty: none is
  Backoff backoff_;
  Executor::TimerId timer_ = 0;
  std::function<void()> flushed_;  // empty: nobody waits for that
  std::shared_ptr<const bool> alive_ = std::make_shared<const bool>(true);
};

}  // namespace sluice
