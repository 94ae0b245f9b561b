#include "server/call.hpp"

#include <utility>

#include "core/json.hpp"
#include "server/followed_stream.hpp"
#include "server/result_writer.hpp"
#include "server/stream_service.hpp"

namespace sluice {

/// The call's channel as its cursor sees it.
class Call::Sink final : public BlockSink {
 public:
  explicit Sink(Call& call) : call_(&call) {}
  bool write(std::string_view block) override {
    return call_->channel_ == nullptr || call_->channel_->write(block);
  }
  bool write(const Bytes& block) override { return write(block.view()); }
  void finish() override {
    if (call_->channel_ != nullptr) call_->channel_->finish();
  }
  void drop(const Error& error) override {
    if (call_->channel_ != nullptr) call_->channel_->drop(error);
  }

 private:
  Call* call_;
};

Call::Call(RequestId id, RequestContext context, std::string principal,
           std::shared_ptr<ReplyChannel> channel, StreamService& service,
           const ResultWriter& results)
    : id_(std::move(id)),
      context_(std::move(context)),
      principal_(std::move(principal)),
      channel_(std::move(channel)),
      service_(&service),
      results_(&results) {}

Call::~Call() {
  close();
}

Executor& Call::executor() const {
  return service_->executor();
}

void Call::encode(std::string& out, const Stream& stream, const Chunk& chunk) const {
  const Framing& framing = channel_->framing();
  const std::size_t mark = framing.begin(out);
  if (chunk.kind == ChunkKind::end) {
    out.append(stream.trailer());
  } else {
    out.append(R"({"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":)")
        .append(context_.progress_token)
        .append(R"(,"progress":)");
    append_number(out, chunk.seq + 1);
    if (context_.revision->progress_message) {
      out.append(R"(,"message":")").append(chunk.escaped).append("\"");
    }
    out.append("}}");
  }
  framing.end(out, mark);
}

void Call::open() {
  channel_->on_close([weak = weak_from_this()] {
    if (const auto call = weak.lock()) call->cancel();
  });
}

void Call::set_producer(StreamProducer* producer) {
  producer_ = producer;
  if (stream_ != nullptr) stream_->set_producer(producer);
}

bool Call::emit(std::string_view text) {
  if (channel_ == nullptr || context_.progress_token.empty() || !channel_->can_stream()) {
    return true;
  }
  if (stream_ == nullptr) {
    Result<std::shared_ptr<Stream>> stream = service_->streams().start(
        {.principal = principal_, .method = "tools/call", .priority = 0, .expects_poller = false});
    if (!stream) {
      fail(stream.error());
      if (producer_ != nullptr) producer_->on_cancel();
      return true;
    }
    stream_ = std::move(*stream);
    stream_->set_producer(producer_);
    PushCursor::Options options;
    options.shareable = false;
    const ChunkEncoder& encoder = *this;
    cursor_ =
        std::make_unique<PushCursor>(stream_, encoder, std::make_unique<Sink>(*this), options);
    channel_->on_drain([weak = weak_from_this()] {
      const auto call = weak.lock();
      if (call != nullptr && call->cursor_ != nullptr) call->cursor_->resume();
    });
    cursor_->resume();
  }
  return stream_->append(ChunkKind::text, text);
}

void Call::follow(const std::string& stream_id) {
  follow_stream(*service_, stream_id, shared_from_this());
}

void Call::flush() {
  if (stream_ != nullptr) stream_->flush();
}

void Call::complete(const ToolResult& result) {
  if (channel_ == nullptr) return;
  std::string message;
  results_->append_tool_result(message, id_, *context_.revision, result);
  answer(200, std::move(message));
}

void Call::fail(const Error& error) {
  if (channel_ == nullptr) return;
  std::string message;
  append_error(message, id_, error);
  answer(http_status_of(error, context_.revision, true), std::move(message));
}

void Call::answer(int http_status, std::string message) {
  if (stream_ == nullptr) {
    channel_->on_close({});
    channel_->reply(http_status, message);
    close();
    return;
  }
  // The end chunk carries it, behind everything emitted before; the call lives until it is out.
  channel_->on_close([self = shared_from_this()] { self->cancel(); });
  stream_->set_producer(nullptr);
  producer_ = nullptr;
  stream_->finish(std::move(message));
}

void Call::cancel() {
  const std::shared_ptr<Call> keep = shared_from_this();
  StreamProducer* const producer = std::exchange(producer_, nullptr);
  if (stream_ != nullptr) stream_->set_producer(nullptr);
  close();
  if (producer != nullptr) producer->on_cancel();
}

void Call::close() {
  channel_ = nullptr;
  cursor_ = nullptr;
  if (const std::shared_ptr<Stream> stream = std::move(stream_)) {
    stream_ = nullptr;
    service_->streams().discard(*stream);
  }
}

}  // namespace sluice
