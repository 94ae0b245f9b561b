#include "server/streams/collected_run.hpp"

#include <utility>

#include "rpc/error_codes.hpp"
#include "server/streams/text_accumulator.hpp"
#include "stream/stream_error.hpp"

namespace sluice {
namespace {

/// How long a whole answer that is stopped for want of memory waits for others of its client to
/// give some back: they may be such answers too, which wait for this one.
constexpr Duration kMemoryWait = std::chrono::seconds(1);

}  // namespace

class CollectedRun final : public Cursor {
 public:
  CollectedRun(StreamManager& streams, std::shared_ptr<ChunkStream> stream, CollectedAnswer respond)
      : Cursor(stream, stream->first()),
        streams_(&streams),
        respond_(std::move(respond)),
        memory_(streams.memory_of(stream->principal())),
        text_(memory_),
        reasoning_(memory_),
        tool_calls_(memory_) {}
  ~CollectedRun() override { leave(); }

  void start() { on_chunks(); }

 private:
  void on_chunks() override {
    if (!respond_) return;
    bool has_memory = true;
    const Seq next = stream()->read(position(), [&](const Chunk& chunk) {
      has_memory = keep(chunk);
      return has_memory;
    });
    if (!has_memory) {
      answer(std::unexpected(TextAccumulator::no_memory()));
      return;
    }
    if (text_.is_too_long() || reasoning_.is_too_long() || tool_calls_.is_too_long()) {
      answer(fail(kLimitReached,
                  "The answer is longer than a whole reply may be; ask for it with "
                  "\"stream\":true"));
      return;
    }
    const bool ended = stream()->ended();
    pass(next);
    if (stream() == nullptr) return;
    if (ended) {
      answer(result());
    } else if (stream()->paused() && memory_->is_short() && timer_ == 0) {
      Executor& loop = streams_->executor();
      timer_ = loop.schedule_at(loop.clock().now() + kMemoryWait, [this] { on_no_memory(); });
    }
  }

  void on_no_memory() {
    timer_ = 0;
    if (stream() == nullptr || !stream()->paused() || !memory_->is_short()) return;
    answer(std::unexpected(TextAccumulator::no_memory()));
  }

  void on_dropped(const Error& error) override { answer(std::unexpected(error)); }

  /// False: there is no memory for it.
  bool keep(const Chunk& chunk) {
    switch (chunk.kind) {
      case ChunkKind::text:
        return text_.append(chunk.escaped);
      case ChunkKind::reasoning:
        return reasoning_.append(chunk.escaped);
      case ChunkKind::tool_call:
        return tool_calls_.append(tool_calls_.text().empty() ? "\"" : ",\"") &&
               tool_calls_.append(chunk.escaped) && tool_calls_.append("\"");
      case ChunkKind::message:
      case ChunkKind::end:
        break;
    }
    return true;
  }

  Result<std::string> result() {
    if (stream()->state() == StreamState::failed) return std::unexpected(stream()->error());
    const std::string& reasoning = reasoning_.text();
    const std::string& tool_calls = tool_calls_.text();
    std::string out = R"({"status":"completed","text":")";
    out.append(text_.text()).append("\"");
    if (!reasoning.empty()) out.append(R"(,"reasoning":")").append(reasoning).append("\"");
    if (!tool_calls.empty()) out.append(R"(,"tool_calls":[)").append(tool_calls).append("]");
    if (!stream()->trailer().empty()) out.append(",").append(stream()->trailer());
    out.push_back('}');
    return out;
  }

  void answer(Result<std::string> outcome) {
    CollectedAnswer respond = std::exchange(respond_, nullptr);
    leave();
    if (respond) respond(std::move(outcome));
  }

  void leave() {
    // At once, for others of its client may wait for the memory.
    for (TextAccumulator* text : {&text_, &reasoning_, &tool_calls_})
      *text = TextAccumulator(nullptr);
    if (timer_ != 0) streams_->executor().cancel(std::exchange(timer_, 0));
    if (stream() != nullptr) {
      respond_ = nullptr;
      const std::shared_ptr<ChunkStream> keep = stream()->shared_from_this();
      streams_->discard(*keep);
    }
  }

  StreamManager* streams_;
  CollectedAnswer respond_;
  std::shared_ptr<MemoryShare> memory_;
  Executor::TimerId timer_ = 0;  // while it waits for memory
  // Escaped, as the chunks are.
  TextAccumulator text_;
  TextAccumulator reasoning_;
  TextAccumulator tool_calls_;
};

std::shared_ptr<CollectedRun> collect_stream(StreamManager& streams,
                                             std::shared_ptr<ChunkStream> stream,
                                             CollectedAnswer respond) {
  auto run = std::make_shared<CollectedRun>(streams, std::move(stream), std::move(respond));
  // The caller takes the handle before an answer can come.
  streams.executor().post([weak = std::weak_ptr(run)] {
    if (const auto waiting = weak.lock()) waiting->start();
  });
  return run;
}

}  // namespace sluice
