// The streams that are pushed to a MessageConnection.

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "json/json.hpp"
#include "protocol/chunk_json.hpp"
#include "rpc/error_codes.hpp"
#include "server/transport/message/message_connection.hpp"
#include "stream/stream_error.hpp"

namespace sluice {
namespace {

/// The most streams that are pushed to one connection.
constexpr std::size_t kMaxSubscriptions = 1024;
/// What a subscription takes of its client's memory, with the time that its end takes.
constexpr std::size_t kSubscriptionMemory = 1024;

Error too_many_subscriptions() {
  return {kLimitReached,
          "This connection is pushed " + std::to_string(kMaxSubscriptions) +
              " streams, the most it may; unsubscribe from some",
          {}};
}

}  // namespace

void PushedChunkEncoder::encode(std::string& out, const ChunkStream& stream,
                                const Chunk& chunk) const {
  const std::size_t mark = framing_->begin(out);
  append_pushed_chunk(out, stream, chunk);
  framing_->end(out, mark);
}

/// Pushes one stream to a connection.
class MessageConnection::StreamSink final : public BlockSink {
 public:
  /// `method`, which outlives the sink, is the method that pushed chunks name.
  StreamSink(MessageConnection& connection, StreamId stream_id, const char* method)
      : connection_(&connection),
        stream_id_(stream_id),
        method_(method),
        number_(++connection.subscribed_) {}

  [[nodiscard]] std::uint64_t number() const { return number_; }

  bool write(std::string_view block) override { return connection_->push(block); }
  bool write(const Bytes& block) override { return connection_->push(block); }
  void finish() override { connection_->unsubscribe_later(stream_id_, number_); }
  void drop(const Error& error) override {
    std::string message = R"({"jsonrpc":"2.0","method":)";
    append_json_string(message, method_);
    message.append(R"(,"params":{"stream_id":)");
    append_json_string(message, stream_id_);
    message.append(R"(,"delta":"","end":true,"error":)");
    append_json_error(message, error);
    message.append("}}");
    // The reply to `subscribe` may still wait for room, and comes first.
    connection_->answer({}, std::move(message));
    finish();
  }

 private:
  MessageConnection* connection_;
  StreamId stream_id_;
  const char* method_;  // a pointer, to be small: each stream has one of these
  std::uint64_t number_;
};

/// Sends chunks of a stream. Chunks of several streams leave together at the end of the turn. If
/// only one stream is pushed, its chunks leave at once.
bool MessageConnection::push(std::string_view messages) {
  if (output_ == nullptr || subscriptions_.size() != 1) return send_framed(messages);
  if (!output_->push_framed(messages)) blocked_ = true;
  return may_send_more();
}

bool MessageConnection::push(const Bytes& messages) {
  const bool writable = send_framed(messages);
  if (output_ != nullptr && subscriptions_.size() == 1) output_->flush();
  return writable;
}

/// The stream has been pushed to its end, or is lost. Its subscription is on the stack, so it is
/// removed at the end of this turn, unless the peer has subscribed again by then.
void MessageConnection::unsubscribe_later(const StreamId& stream_id, std::uint64_t number) {
  service_->streams.executor().post([weak = weak_from_this(), stream_id, number] {
    const auto self = weak.lock();
    if (self == nullptr) return;
    const auto found = self->subscriptions_.find(stream_id);
    if (found == self->subscriptions_.end() || found->second.number != number) return;
    self->subscriptions_.erase(found);
    self->check_idle();
  });
}

/// Whether the request asks for a stream to be pushed here.
bool MessageConnection::pushes(const Message& message) const {
  if (message.method == "subscribe") return true;
  const StreamMethod* const method =
      service_->streams.definition().find_stream_method(message.method);
  if (method == nullptr) return false;
  const json::object& params = params_of(message);
  return !is_poll(params) && wants_stream(params, method->streams);
}

/// Handles a notification about a stream that is pushed here. Returns false if it is not one.
bool MessageConnection::handle_notification(const Message& message) {
  if (message.method == "unsubscribe") {
    std::string unheard;
    unsubscribe(message, unheard);
    return true;
  }
  if (message.method != "ack") return false;
  const Result<Acknowledge> ack = decode_ack(params_of(message));
  const auto found = ack ? subscriptions_.find(StreamId(ack->stream_id)) : subscriptions_.end();
  if (found == subscriptions_.end()) return false;
  const std::shared_ptr<Subscription> reader = found->second.reader;
  reader->acknowledge(ack->seq, [](const Result<void>&) {});
  return true;
}

/// On a connection that can be pushed to, `run` and its relatives push.
bool MessageConnection::serve(const Message& message, Caller& asker, std::string& out) {
  if (message.kind == MessageKind::notification) return handle_notification(message);
  if (pushes(message)) {
    if (message.method == "subscribe") {
      subscribe(message, asker, out);
    } else {
      run(message, *service_->streams.definition().find_stream_method(message.method), out);
    }
    return true;
  }
  if (message.method == "unsubscribe") {
    unsubscribe(message, out);
    return true;
  }
  if (message.method == "ack") return acknowledge(message, asker, out);
  return false;
}

/// For a subscription that makes `more` than there are. Errors: kLimitReached.
Result<MemoryHold> MessageConnection::memory_for_subscription(std::size_t more) const {
  if (subscriptions_.size() + more > kMaxSubscriptions) {
    return std::unexpected(too_many_subscriptions());
  }
  MemoryHold memory(service_->streams.streams().memory_of(principal_.id));
  if (!memory.add(kSubscriptionMemory)) return std::unexpected(no_memory_for_subscriptions());
  return memory;
}

/// A `run` whose chunks are pushed here. The reply goes out before the first of them.
void MessageConnection::run(const Message& message, const StreamMethod& method, std::string& out) {
  const Result<RunStart> options = decode_run_start(params_of(message));
  if (!options) return append_error(out, message.id, options.error());
  Result<MemoryHold> memory = memory_for_subscription(1);
  if (!memory) return append_error(out, message.id, memory.error());
  Result<std::shared_ptr<ChunkStream>> stream = service_->streams.start(
      method, params_of(message),
      {.principal = principal_, .storage = [this] { return storage(); }}, *options, false);
  if (!stream) return append_error(out, message.id, stream.error());
  append_stream_result(out, message.id, result_form(message), started_result(**stream));
  const StreamId id = (*stream)->id();
  const Seq from = (*stream)->first();
  auto sink = std::make_unique<StreamSink>(*this, id, method.name.c_str());
  const std::uint64_t number = sink->number();
  const std::shared_ptr<Subscription> reader = service_->streams.subscribe_local(
      std::move(*stream), from, options->window, *encoder_, true, std::move(sink));
  subscriptions_.insert_or_assign(id, Subscribed{reader, number, std::move(*memory)});
  send(std::exchange(out, {}));
  if (output_ != nullptr && !blocked_) reader->resume();
}

void MessageConnection::subscribe(const Message& message, Caller& asker, std::string& out) {
  Result<Subscribe> request = decode_subscribe(params_of(message));
  if (!request) return append_error(out, message.id, request.error());
  // A second subscription to a stream replaces the first.
  const bool is_replaced = subscriptions_.contains(StreamId(request->stream_id));
  Result<MemoryHold> memory = memory_for_subscription(is_replaced ? 0 : 1);
  if (!memory) return append_error(out, message.id, memory.error());
  Result<std::shared_ptr<ReplyChannel>> channel = asker.open_channel(message.id);
  if (!channel) return append_error(out, message.id, channel.error());
  auto sink = std::make_unique<StreamSink>(*this, StreamId(request->stream_id), "run");
  const std::uint64_t number = sink->number();
  service_->streams.subscribe(
      request->stream_id, principal_.id, request->from, request->window, *encoder_, true,
      std::move(sink),
      [weak = weak_from_this(), channel = std::move(*channel), id = message.id,
       form = result_form(message), stream_id = request->stream_id, number,
       memory = std::move(*memory)](Result<std::unique_ptr<Subscription>> subscribed) mutable {
        std::string reply;
        if (!subscribed) {
          append_error(reply, id, subscribed.error());
          channel->reply(200, std::move(reply));
          return;
        }
        const auto self = weak.lock();
        if (self == nullptr || self->output_ == nullptr) return;
        append_stream_result(reply, id, form,
                             R"({"stream_id":")" + stream_id + R"(","status":"subscribed"})");
        channel->reply(200, std::move(reply));
        if (self->output_ == nullptr) return;
        const std::shared_ptr<Subscription> reader = std::move(*subscribed);
        self->subscriptions_.insert_or_assign(StreamId(stream_id),
                                              Subscribed{reader, number, std::move(memory)});
        // While the output is full, the reply waits, and no chunk may overtake it.
        if (!self->blocked_) reader->resume();
      });
}

void MessageConnection::unsubscribe(const Message& message, std::string& out) {
  const Result<std::string> id = decode_stream_id(params_of(message));
  if (!id) return append_error(out, message.id, id.error());
  const auto found = subscriptions_.find(StreamId(*id));
  if (found == subscriptions_.end()) {
    return append_error(
        out, message.id,
        {kStreamNotFound, "This connection is not subscribed to that stream_id", {}});
  }
  subscriptions_.erase(found);
  append_stream_result(out, message.id, result_form(message),
                       R"({"stream_id":")" + *id + R"(","status":"unsubscribed"})");
}

/// Handles an ack for a stream that is pushed here. Others are left to the stream service.
bool MessageConnection::acknowledge(const Message& message, Caller& asker, std::string& out) {
  const Result<Acknowledge> ack = decode_ack(params_of(message));
  if (!ack) {
    append_error(out, message.id, ack.error());
    return true;
  }
  const auto found = subscriptions_.find(StreamId(ack->stream_id));
  if (found == subscriptions_.end()) return false;
  Result<std::shared_ptr<ReplyChannel>> channel = asker.open_channel(message.id);
  if (!channel) {
    append_error(out, message.id, channel.error());
    return true;
  }
  const std::shared_ptr<Subscription> reader = found->second.reader;
  reader->acknowledge(
      ack->seq, [channel = std::move(*channel), id = message.id, form = result_form(message),
                 stream_id = ack->stream_id](Result<void> result) {
        std::string reply;
        if (result) {
          append_stream_result(reply, id, form,
                               R"({"stream_id":")" + stream_id + R"(","status":"acknowledged"})");
        } else {
          append_error(reply, id, result.error());
        }
        channel->reply(200, std::move(reply));
      });
  return true;
}

}  // namespace sluice
