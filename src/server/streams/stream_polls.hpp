#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "core/turn_work.hpp"
#include "protocol/stream_params.hpp"
#include "server/channel/reply_channel.hpp"
#include "stream/stream_manager.hpp"

namespace sluice {

/// Finds the stream of this loop that `poll` reads, and acknowledges what is below `poll.from`.
/// That is where it reads; without it nothing is acknowledged, and `place` says where, which is set
/// to the oldest kept chunk if it is not.
Result<std::shared_ptr<ChunkStream>> begin_poll(StreamManager& streams, const RunPoll& poll,
                                                const std::string& principal,
                                                std::optional<Seq>& place);

/// Appends the result's JSON text if there is something to return at `place` or no time to wait.
bool answer_poll(std::string& out, ChunkStream& stream, Seq place, const RunPoll& poll);

/// A poll that is not answered at once: its answer is made in a turn of the stream's loop that has
/// work left, when its caller has room, and that again and again until there are chunks or its time
/// is over. Keeps itself until it is answered or the caller leaves.
class LongPoll final : public std::enable_shared_from_this<LongPoll> {
 public:
  struct Facts {
    RunPoll poll;
    std::string principal;
    Executor* loop;          // the caller's
    TurnWork* work;          // of that loop
    StreamManager* streams;  // which has the stream, on whichever loop
    std::shared_ptr<ReplyChannel> channel;
    /// Called once, on the caller's loop, unless the caller leaves before.
    std::move_only_function<void(Result<std::string>)> respond;
    std::shared_ptr<const void> mark;  // held while it waits
  };

  explicit LongPoll(Facts facts);
  ~LongPoll();
  LongPoll(const LongPoll&) = delete;
  LongPoll& operator=(const LongPoll&) = delete;

  /// Begins, on the caller's loop.
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
  std::optional<Seq> place_;  // of the stream's loop; once it has been there
  std::string client_;
  std::unique_ptr<Wait> wait_;  // of the stream's loop
  bool is_over_ = false;        // the same
};

}  // namespace sluice
