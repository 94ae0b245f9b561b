#include "server/calls/followed_stream.hpp"

#include <cstring>
#include <string_view>
#include <utility>

#include "core/sharing/client.hpp"
#include "core/turns/turn_work.hpp"
#include "json/json.hpp"
#include "protocol/chunk_json.hpp"
#include "server/streams/text_accumulator.hpp"

namespace sluice {
namespace {

/// What passing on a byte takes of the work of a turn, in bytes of an answer.
constexpr std::size_t kPassCost = 8;

/// Encodes each chunk as one line of JSON. The call's loop decodes it again.
class LineEncoder final : public ChunkEncoder {
 public:
  void encode(std::string& out, const ChunkStream& stream, const Chunk& chunk) const override {
    append_poll_chunk(out, stream, chunk);
    out.push_back('\n');
  }
};

const LineEncoder kLineEncoder;

/// Passes the chunks of a stream to the call that follows it, in turns of the loop that have work
/// left. The sink of the subscription keeps it alive until leave().
class Follower final : public StreamProducer, public std::enable_shared_from_this<Follower> {
 public:
  Follower(std::shared_ptr<PendingRequest> call, TurnWork& work)
      : call_(std::move(call)),
        work_(&work),
        client_(client_of(call_->principal().id)),
        text_(call_->memory()) {}

  void attach(std::unique_ptr<Subscription> subscription) {
    if (call_ == nullptr) return;
    subscription_ = std::move(subscription);
    go_on();
  }

  void on_writable() override { go_on(); }
  void on_cancel() override { leave(); }

  bool take(std::string_view block) {
    work_->worked(block.size() * kPassCost);
    bool writable = true;
    while (call_ != nullptr && !block.empty()) {
      const std::size_t end = block.find('\n');
      writable = take_chunk(block.substr(0, end)) && writable;
      block.remove_prefix(end + 1);
    }
    if (!writable || work_->has_left()) return writable;
    go_on();
    return false;
  }

  void fail(const Error& error) {
    if (const std::shared_ptr<PendingRequest> call = leave()) call->fail(error);
  }

 private:
  void go_on() {
    if (subscription_ == nullptr) return;
    work_->run(client_, [self = shared_from_this()] {
      if (self->subscription_ != nullptr) self->subscription_->resume();
    });
  }

  bool take_chunk(std::string_view line) {
    const Result<json::value> chunk = parse_json(line);
    if (!chunk || !chunk->is_object()) return true;
    const json::object& members = chunk->get_object();
    if (members.at("end").get_bool()) {
      complete(members);
      return true;
    }
    const json::string& delta = members.at("delta").get_string();
    if (!text_.append(delta)) {
      fail(TextAccumulator::no_memory());
      return true;
    }
    return delta.empty() || call_->emit(delta);
  }

  void complete(const json::object& last) {
    const std::shared_ptr<PendingRequest> call = leave();
    if (const json::value* error = last.if_contains("error")) {
      call->complete({.text = std::string(error->at("message").get_string()), .is_error = true});
      return;
    }
    if (text_.is_too_long()) {
      call->complete(
          {.text = "The answer is too long for a tool's result; read the stream with run",
           .is_error = true});
      return;
    }
    json::object structured;
    for (const char* name : {"finish_reason", "usage", "timings"}) {
      if (const json::value* value = last.if_contains(name)) structured[name] = *value;
    }
    call->complete({.text = text_.take(), .structured_text = to_json(structured)});
  }

  std::shared_ptr<PendingRequest> leave() {
    const std::shared_ptr<PendingRequest> call = std::exchange(call_, nullptr);
    if (call == nullptr) return nullptr;
    call->set_producer(nullptr);
    // Destroyed later, because the subscription may be what calls this.
    call->executor().post([subscription = std::move(subscription_)] {});
    return call;
  }

  std::shared_ptr<PendingRequest> call_;
  TurnWork* work_;
  std::string client_;
  std::unique_ptr<Subscription> subscription_;
  TextAccumulator text_;
};

class FollowerSink final : public BlockSink {
 public:
  explicit FollowerSink(std::shared_ptr<Follower> follower) : follower_(std::move(follower)) {}
  bool write(std::string_view block) override { return follower_->take(block); }
  bool write(const Bytes& block) override { return follower_->take(block.view()); }
  void finish() override {}
  void drop(const Error& error) override { follower_->fail(error); }

 private:
  std::shared_ptr<Follower> follower_;
};

}  // namespace

void follow_stream(StreamService& streams, const std::string& stream_id,
                   const std::shared_ptr<PendingRequest>& call) {
  const auto follower = std::make_shared<Follower>(call, streams.streams().work());
  call->set_producer(follower.get());
  streams.subscribe(stream_id, call->principal().id, std::nullopt, 0, kLineEncoder, false,
                    std::make_unique<FollowerSink>(follower),
                    [follower](Result<std::unique_ptr<Subscription>> subscribed) {
                      if (subscribed) {
                        follower->attach(std::move(*subscribed));
                      } else {
                        follower->fail(subscribed.error());
                      }
                    });
}

}  // namespace sluice
