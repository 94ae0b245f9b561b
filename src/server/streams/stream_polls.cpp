#include "server/streams/stream_polls.hpp"

#include <algorithm>
#include <utility>

#include "core/sharing/client.hpp"
#include "core/sharing/client_memory.hpp"
#include "protocol/chunk_json.hpp"
#include "stream/stream_error.hpp"

namespace sluice {
namespace {

/// About this much goes into one poll's reply; the rest waits for the next.
constexpr std::size_t kPollBytes = std::size_t{256} << 10U;
/// What answering a poll takes of the work of a turn, besides the bytes of the answer.
constexpr std::size_t kPollCost = 1024;
/// Bytes that a waiting poll takes.
constexpr std::size_t kWaitMemory = 1024;

/// Appends the result of a poll from `from`, at most `max_chunks`. Records the stream as delivered
/// if that includes the last chunk.
void append_poll_result(std::string& out, ChunkStream& stream, Seq from, std::size_t max_chunks) {
  out.append(R"({"stream_id":")").append(stream.id()).append(R"(","chunks":[)");
  const std::size_t start = out.size();
  const Seq next = stream.read(from, [&](const Chunk& chunk) {
    if (out.size() - start >= kPollBytes || chunk.seq - from >= max_chunks) return false;
    if (out.size() > start) out.push_back(',');
    append_poll_chunk(out, stream, chunk);
    return true;
  });
  const bool whole = stream.ended() && next >= stream.next();
  if (whole) stream.note_delivered();
  out.append(whole ? R"(],"has_more":false})" : R"(],"has_more":true})");
}

}  // namespace

Result<std::shared_ptr<ChunkStream>> begin_poll(StreamManager& streams, const RunPoll& poll,
                                                const std::string& principal,
                                                std::optional<Seq>& place) {
  Result<std::shared_ptr<ChunkStream>> found = streams.find(poll.stream_id, principal);
  if (!found) return found;
  ChunkStream& stream = **found;
  if (!place) place = poll.from.value_or(stream.first());
  // One past the last chunk acknowledges the whole stream.
  if (Result<void> valid = stream.check_position(*place); !valid) {
    return std::unexpected(std::move(valid.error()));
  }
  if (poll.from) stream.poll_from(*poll.from);
  return found;
}

bool answer_poll(std::string& out, ChunkStream& stream, Seq place, const RunPoll& poll) {
  if (place >= stream.next() && !stream.ended() && poll.wait.count() != 0) return false;
  append_poll_result(out, stream, place, poll.max_chunks);
  return true;
}

/// The cursor of a waiting poll.
class LongPoll::Wait final : public Cursor {
 public:
  /// `memory` is held as long as this.
  Wait(LongPoll& poll, std::shared_ptr<ChunkStream> stream, MemoryHold memory)
      : Cursor(std::move(stream), *poll.place_),
        memory_(std::move(memory)),
        poll_(&poll),
        loop_(&this->stream()->executor()),
        until_(loop_->clock().now() + poll.facts_.poll.wait) {
    timer_ = loop_->schedule_at(until_, [this] {
      timer_ = 0;
      wake();
    });
  }
  ~Wait() override { loop_->cancel(timer_); }

  /// Why the stream has gone; nothing while it exists.
  [[nodiscard]] const std::optional<Error>& lost() const { return lost_; }

 private:
  void on_chunks() override { wake(); }
  void on_dropped(const Error& error) override {
    lost_ = error;
    if (LongPoll* const poll = rest()) poll->end(std::unexpected(error), nullptr);
  }

  void wake() {
    if (LongPoll* const poll = rest()) {
      poll->wake(std::max(until_ - loop_->clock().now(), Duration{}));
    }
  }
  /// Ends the wait; after that this only holds the position. Returns null if the wait had ended
  /// before.
  LongPoll* rest() {
    loop_->cancel(std::exchange(timer_, 0));
    return std::exchange(poll_, nullptr);
  }

  MemoryHold memory_;
  LongPoll* poll_;
  Executor* loop_;
  TimePoint until_;
  Executor::TimerId timer_ = 0;
  std::optional<Error> lost_;
};

LongPoll::LongPoll(Facts facts) : facts_(std::move(facts)), client_(client_of(facts_.principal)) {}

LongPoll::~LongPoll() = default;

void LongPoll::start() {
  facts_.channel->on_close([self = shared_from_this()](DisconnectReason) { self->leave(); });
  ask();
}

void LongPoll::ask() {
  facts_.channel->when_writable([self = shared_from_this()] {
    StreamManager* const streams = self->facts_.streams;
    auto make = [self, streams, mark = self->facts_.work->mark()]() mutable {
      streams->work().run(self->client_, [self, mark = std::move(mark)]() mutable {
        self->answer(std::move(mark));
      });
    };
    if (&streams->executor() == self->facts_.loop) {
      make();
    } else {
      streams->executor().post(std::move(make));
    }
  });
}

void LongPoll::answer(TurnWork::Mark mark) {
  if (is_over_) return;
  const RunPoll& poll = facts_.poll;
  facts_.streams->work().worked(kPollCost);
  Result<std::shared_ptr<ChunkStream>> stream =
      begin_poll(*facts_.streams, poll, facts_.principal, place_);
  if (!stream) {
    // The stream may have gone since the poll was woken.
    if (wait_ != nullptr && wait_->lost()) stream = std::unexpected(*wait_->lost());
    end(std::unexpected(std::move(stream.error())), std::move(mark));
    return;
  }
  std::string result;
  if (!answer_poll(result, **stream, *place_, poll)) {
    MemoryHold memory((*stream)->memory_share());
    if (memory.add(kWaitMemory)) {
      wait_ = std::make_unique<Wait>(*this, std::move(*stream), std::move(memory));
      facts_.loop->post([self = shared_from_this()] { self->facts_.channel->give_way(); });
      return;
    }
    // Without memory it cannot wait. It is answered as if its time were over, because what frees
    // memory is that the client goes on reading.
    facts_.poll.wait = {};
    answer_poll(result, **stream, *place_, poll);
  }
  facts_.streams->work().worked(result.size());
  end(std::move(result), std::move(mark));
}

/// There are chunks, or the time is over: tries to answer again. The position is held meanwhile.
void LongPoll::wake(Duration left) {
  facts_.poll.wait = std::chrono::duration_cast<std::chrono::milliseconds>(left);
  facts_.loop->post([self = shared_from_this()] { self->ask(); });
}

/// `mark` counts the poll as under way until the caller's loop has responded.
void LongPoll::end(Result<std::string> result, TurnWork::Mark mark) {
  is_over_ = true;
  const std::shared_ptr<LongPoll> keep = shared_from_this();
  // The wait may be what calls this, so it is destroyed last.
  const std::unique_ptr<Wait> place = std::move(wait_);
  facts_.loop->post([keep, mark = std::move(mark), result = std::move(result)]() mutable {
    keep->facts_.respond(std::move(result));
  });
}

/// The caller has gone: ends the poll on the stream's loop.
void LongPoll::leave() {
  facts_.streams->executor().post([self = shared_from_this()] {
    self->is_over_ = true;
    self->wait_ = nullptr;
  });
}

}  // namespace sluice
