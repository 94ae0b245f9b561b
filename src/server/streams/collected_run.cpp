#include "server/streams/collected_run.hpp"

#include <new>
#include <optional>
#include <string>
#include <utility>

#include "core/sharing/client.hpp"
#include "rpc/error_codes.hpp"
#include "server/streams/text_accumulator.hpp"
#include "stream/stream_error.hpp"

namespace sluice {
namespace {

/// How long a run that has stopped for lack of memory waits for its client's other requests to
/// release some. The wait is limited because those may be such runs too, which wait for this one.
constexpr Duration kMemoryWait = std::chrono::seconds(1);

/// One run whose text is collected. Kept alive by its channel, and by the task that answers.
class CollectedRun final : public Cursor, public std::enable_shared_from_this<CollectedRun> {
 public:
  CollectedRun(StreamManager& streams, std::shared_ptr<ChunkStream> stream, const Message& request,
               std::shared_ptr<ReplyChannel> channel, std::shared_ptr<const void> mark)
      : Cursor(stream, stream->first()),
        streams_(&streams),
        id_(request.id),
        form_(result_form(request)),
        channel_(std::move(channel)),
        mark_(std::move(mark)),
        client_(client_of(stream->principal())),
        memory_(streams.memory_of(stream->principal())),
        text_(memory_),
        reasoning_(memory_),
        tool_calls_(memory_),
        members_(memory_) {}
  ~CollectedRun() override { leave_stream(); }

  void start() {
    channel_->on_close([self = shared_from_this()](DisconnectReason) { self->leave(); });
    // Posted, because no answer may come before the caller knows that it comes later.
    streams_->executor().post([weak = weak_from_this()] {
      if (const auto self = weak.lock()) self->on_chunks();
    });
  }

 private:
  /// Starts the response, in which the text is collected so that a long text is not copied. Returns
  /// false if there is no memory for it.
  bool begin() {
    if (!text_.empty()) return true;
    std::string head;
    begin_result(head, id_);
    head.append(R"({"status":"completed","text":")");
    const bool has_memory = text_.append(head);
    if (!has_memory) end(TextAccumulator::no_memory());
    return has_memory;
  }

  void on_chunks() override {
    if (stream() == nullptr || !begin()) return;
    bool has_memory = true;
    const Seq next = stream()->read(position(), [&](const Chunk& chunk) {
      has_memory = keep(chunk);
      return has_memory;
    });
    if (!has_memory) {
      end(TextAccumulator::no_memory());
      return;
    }
    if (text_.is_too_long() || reasoning_.is_too_long() || tool_calls_.is_too_long() ||
        members_.is_too_long()) {
      end(Error{kLimitReached,
                "The answer is longer than a whole reply may be; ask for it with \"stream\":true",
                {}});
      return;
    }
    const bool ended = stream()->ended();
    pass(next);
    if (stream() == nullptr) return;
    if (ended) {
      if (stream()->state() == StreamState::failed) {
        end(stream()->error());
      } else {
        trailer_ = stream()->trailer();
        end(std::nullopt);
      }
    } else if (stream()->paused() && memory_->is_short() && timer_ == 0) {
      Executor& loop = streams_->executor();
      timer_ = loop.schedule_at(loop.clock().now() + kMemoryWait, [this] { on_no_memory(); });
    }
  }

  void on_no_memory() {
    timer_ = 0;
    if (stream() == nullptr || !stream()->paused() || !memory_->is_short()) return;
    end(TextAccumulator::no_memory());
  }

  void on_dropped(const Error& error) override { end(error); }

  /// Returns false if there is no memory for the chunk.
  bool keep(const Chunk& chunk) {
    switch (chunk.kind) {
      case ChunkKind::text:
        return text_.append(chunk.escaped);
      case ChunkKind::reasoning:
        return reasoning_.append(chunk.escaped);
      case ChunkKind::tool_call:
        return (tool_calls_.empty() || tool_calls_.append(",")) &&
               tool_calls_.append(chunk.escaped);
      case ChunkKind::members:
        return members_.append(",") && members_.append(chunk.escaped);
      case ChunkKind::message:
      case ChunkKind::end:
        break;
    }
    return true;
  }

  /// Called when the whole text is there or something has failed. Discards the stream at once. The
  /// answer is made at the end of this turn at the earliest, because a write to the stream may be
  /// on the stack.
  void end(std::optional<Error> error) {
    if (std::exchange(is_ended_, true) || channel_ == nullptr) return;
    if (error) drop_text();
    error_ = std::move(error);
    leave_stream();
    // Until then, the task given to when_writable() may be all that keeps this alive.
    channel_->when_writable([self = shared_from_this()] {
      self->streams_->work().wait(self->client_, [self] { self->answer(); });
    });
  }

  void answer() {
    const std::shared_ptr<ReplyChannel> channel = std::exchange(channel_, nullptr);
    if (channel == nullptr) return;
    const std::shared_ptr<CollectedRun> keep = shared_from_this();
    std::string message;
    try {
      if (!error_) message = response();
    } catch (const std::bad_alloc&) {
      error_ = TextAccumulator::no_memory();
    }
    if (error_) append_error(message, id_, *error_);
    // Released before the reply, because whoever takes the message charges it to the same share.
    drop_text();
    streams_->work().worked(message.size());
    channel->on_close({});
    channel->reply(200, std::move(message));
    mark_ = nullptr;
  }

  std::string response() {
    const std::string reasoning = reasoning_.take();
    const std::string tool_calls = tool_calls_.take();
    const std::string members = members_.take();
    std::string out = text_.take();
    out.append("\"");
    if (!reasoning.empty()) out.append(R"(,"reasoning":")").append(reasoning).append("\"");
    if (!tool_calls.empty()) out.append(R"(,"tool_calls":[)").append(tool_calls).append("]");
    out.append(members);
    if (!trailer_.empty()) out.append(",").append(trailer_);
    out.push_back('}');
    end_stream_result(out, form_);
    return out;
  }

  /// The caller has gone.
  void leave() {
    channel_ = nullptr;
    mark_ = nullptr;
    drop_text();
    leave_stream();
  }

  void drop_text() {
    for (TextAccumulator* text : {&text_, &reasoning_, &tool_calls_, &members_})
      *text = TextAccumulator(nullptr);
  }

  void leave_stream() {
    if (timer_ != 0) streams_->executor().cancel(std::exchange(timer_, 0));
    if (stream() == nullptr) return;
    is_ended_ = true;
    const std::shared_ptr<ChunkStream> keep = stream()->shared_from_this();
    streams_->discard(*keep);
  }

  StreamManager* streams_;
  RequestId id_;
  ResultForm form_;
  std::shared_ptr<ReplyChannel> channel_;  // null once answered or the caller has gone
  std::shared_ptr<const void> mark_;
  std::string client_;
  std::string trailer_;
  std::optional<Error> error_;
  bool is_ended_ = false;
  std::shared_ptr<MemoryShare> memory_;
  Executor::TimerId timer_ = 0;  // while it waits for memory
  // Escaped, as the chunks are.
  TextAccumulator text_;
  TextAccumulator reasoning_;
  TextAccumulator tool_calls_;
  TextAccumulator members_;  // each after a comma
};

}  // namespace

void answer_whole(StreamManager& streams, std::shared_ptr<ChunkStream> stream,
                  const Message& request, std::shared_ptr<ReplyChannel> channel,
                  std::shared_ptr<const void> mark) {
  std::make_shared<CollectedRun>(streams, std::move(stream), request, std::move(channel),
                                 std::move(mark))
      ->start();
}

}  // namespace sluice
