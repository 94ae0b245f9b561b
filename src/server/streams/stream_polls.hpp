#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "core/turns/turn_work.hpp"
#include "protocol/stream_params.hpp"
#include "server/channel/reply_channel.hpp"
#include "stream/stream_manager.hpp"

namespace sluice {

/// Finds the stream of this loop that `poll` reads. If `place` is empty, sets it to the position to
/// read from: `poll.from`, or else the oldest kept chunk. With `poll.from`, acknowledges everything
/// below it.
Result<std::shared_ptr<ChunkStream>> begin_poll(StreamManager& streams, const RunPoll& poll,
                                                const std::string& principal,
                                                std::optional<Seq>& place);

/// Appends the result's JSON text if there is something to return at `place` or the poll does not
/// wait. Otherwise returns false.
bool answer_poll(std::string& out, ChunkStream& stream, Seq place, const RunPoll& poll);

/// A poll that is not answered at once. When the caller can take an answer, it is made in a turn of
/// the stream's loop that has work left. If there is nothing to return yet, the poll waits for
/// chunks or the end of its time, and tries again. Keeps itself alive until it is answered or the
/// caller leaves.
class LongPoll final : public std::enable_shared_from_this<LongPoll> {
 public:
  struct Facts {
    RunPoll poll;
    std::string principal;
    Executor* loop;          // the caller's
    TurnWork* work;          // of that loop
    StreamManager* streams;  // of the loop that has the stream
    std::shared_ptr<ReplyChannel> channel;
    /// Called once, on the caller's loop, unless the caller leaves before.
    std::move_only_function<void(Result<std::string>)> respond;
    std::shared_ptr<const void> mark;  // held while it waits
  };

  explicit LongPoll(Facts facts);
  ~LongPoll();
  LongPoll(const LongPoll&) = delete;
  LongPoll& operator=(const LongPoll&) = delete;

  /// Starts the poll. Called on the caller's loop.
  void start();

 private:
  class Wait;

  // On the caller's loop.
  void ask();
  // On the stream's.
  void answer(TurnWork::Mark mark);
  void wake(Duration left);
  void end(Result<std::string> result, TurnWork::Mark mark);
  void leave();

  Facts facts_;
  std::optional<Seq> place_;  // used on the stream's loop; empty before the first answer()
  std::string client_;
  std::unique_ptr<Wait> wait_;  // used on the stream's loop
  bool is_over_ = false;        // the same
};

}  // namespace sluice
