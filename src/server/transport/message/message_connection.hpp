#pragma once

#include <cstdint>
#include <deque>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "server/channel/framing.hpp"
#include "server/channel/reply_channel.hpp"
#include "server/dispatch/service.hpp"

namespace sluice {

/// The sending side under a MessageConnection. Belongs to its loop; after the peer has gone every
/// call does nothing. No call ends the connection: on_close() comes later.
class MessageOutput {
 public:
  virtual ~MessageOutput() = default;
  /// Queues one message, which is not framed yet. As send_framed().
  virtual bool send(std::string message) = 0;
  /// Queues messages that are framed already. Returns false if they are queued but the caller
  /// should wait for on_drain(), or for the end of its connection.
  virtual bool send_framed(std::string_view messages) = 0;
  /// The same, shared, not copied.
  virtual bool send_framed(const Bytes& messages) = 0;
  /// Sends what is queued now instead of at the turn's end.
  virtual void flush() = 0;
  /// As send_framed() and flush().
  virtual bool push_framed(std::string_view messages) = 0;
};

/// Encodes pushed chunks as messages of one framing. Outlives every connection that uses it.
/// Connections with the same encoder share encoded chunks.
class PushedChunkEncoder final : public ChunkEncoder {
 public:
  /// `framing` outlives the encoder.
  explicit PushedChunkEncoder(const Framing& framing) : framing_(&framing) {}
  [[nodiscard]] const Framing& framing() const { return *framing_; }
  void encode(std::string& out, const ChunkStream& stream, const Chunk& chunk) const override;

 private:
  const Framing* framing_;
};

/// A connection that carries messages in both directions, whatever the transport: its unanswered
/// requests, the streams that are pushed to it, and the session that `initialize` has begun on it.
/// Belongs to its loop. Owned by the transport that passes it the messages, and by channels that
/// are still to answer.
class MessageConnection final : public Caller,
                                public std::enable_shared_from_this<MessageConnection> {
 public:
  /// `service` and `encoder` outlive the connection.
  /// `fields` are the header fields that handlers may read of the request that has opened it.
  MessageConnection(Service& service, Principal principal, const PushedChunkEncoder& encoder,
                    std::vector<RequestField> fields = {});
  ~MessageConnection() override;

  /// Sets the output. Call it before the first message; the output must exist until on_close().
  void attach(MessageOutput& output);

  /// Handles one message from the peer; `text` is valid during the call. Returns false if it is
  /// handled later: a long message, a batch that takes several turns, an initialize or a subscribe
  /// that waits for its answer. Also returns false if many long answers wait for the output. In all
  /// these cases `handled` has been moved from. It runs when the caller may go on, unless the peer
  /// goes before. Messages passed in the meantime would overtake this one.
  bool on_message(std::string_view text, Executor::Task& handled);
  /// The same for a message that may be kept, so that a long one is not copied.
  bool on_kept_message(std::string text, Executor::Task& handled);
  /// Sends an error for input that is not a message.
  void refuse(const Error& error);
  /// Called when the output takes framed messages again.
  void on_drain();
  /// Called when the peer has gone: cancels its requests, ends its session, stops pushing its
  /// streams.
  void on_close();
  /// Called when the peer sends no more requests: ends what listens to changes, and runs `task`
  /// once, as soon as no request is unanswered and no stream is pushed.
  void when_idle(Executor::Task task);

  // Caller
  [[nodiscard]] const Principal& principal() const override { return principal_; }
  Result<std::shared_ptr<ReplyChannel>> open_channel(const RequestId& id) override;
  Result<std::shared_ptr<Session>> session() override { return agreed_; }
  [[nodiscard]] bool has_capacity() const override { return !blocked_; }
  Result<std::shared_ptr<Session>> begin_session(const Revision& revision,
                                                 const ClientDescription& client) override;
  std::shared_ptr<SessionStorage> storage() override;
  [[nodiscard]] std::optional<std::string> field(std::string_view name) const override;
  bool serve(const Message& message, Caller& asker, std::string& out) override;
  void add_listener(std::weak_ptr<ChangeListener> listener) override;
  RetainedCaller keep() override { return {shared_from_this(), nullptr}; }

 private:
  class Agreement;
  class Channel;
  class StreamSink;
  class TakingTurns;

  /// A message that holds up those behind it until it is answered.
  struct Unhandled {
    RequestId id = {};  // unless it is a batch
    Executor::Task handled = {};
  };
  using UnhandledPtr = std::shared_ptr<Unhandled>;

  /// A long message that is not handled yet.
  struct Later {
    std::unique_ptr<LongMessage> message;
    Executor::Task handled;
  };

  /// Long answers, which are made one after the other when the output has room.
  struct LongAnswers {
    std::deque<Channel*> waiting;      // each removes itself
    Channel* current = nullptr;        // the one that is being made, which removes itself too
    std::vector<Executor::Task> held;  // tasks `handled` that run when fewer wait
  };

  /// A stream that is pushed here. `number` tells apart all that have ever been.
  struct Subscribed {
    std::shared_ptr<Subscription> reader;
    std::uint64_t number;
    MemoryHold memory;
  };

  /// A whole answer that waits for room.
  struct KeptAnswer {
    std::string message;
    MemoryHold memory;
    std::shared_ptr<const void> mark;
  };

  /// What few connections have, apart to keep the others small.
  struct Rare {
    std::vector<RequestField> fields;
    std::shared_ptr<SessionStorage> storage;               // null before the first use
    std::vector<std::weak_ptr<ChangeListener>> listeners;  // each with an unanswered request
    std::vector<UnhandledPtr> held_up;                     // each with an unanswered request
    std::unique_ptr<std::list<Later>> later;               // null before the first
    std::unique_ptr<LongAnswers> long_answers;             // null before the first
    std::unique_ptr<std::deque<KeptAnswer>> kept;          // null before the first
    std::unique_ptr<Executor::Task> idle_task;
  };

  /// Made at the first use.
  Rare& rare() {
    if (rare_ == nullptr) rare_ = std::make_unique<Rare>();
    return *rare_;
  }
  [[nodiscard]] LongAnswers* long_answers() const {
    return rare_ == nullptr ? nullptr : rare_->long_answers.get();
  }
  [[nodiscard]] bool has_kept() const {
    return rare_ != nullptr && rare_->kept != nullptr && !rare_->kept->empty();
  }
  bool may_go_on(Executor::Task& handled);
  void handle_later(std::string text, Executor::Task handled);
  void handle_long(std::list<Later>::iterator at);
  UnhandledPtr handle(std::string_view text, LongMessage* parsed);
  UnhandledPtr handle_batch(std::string_view text, LongMessage* parsed, std::string& response);
  void go_on(UnhandledPtr handled);
  UnhandledPtr handle(const std::expected<Message, MessageError>& message, std::string& response);
  Outcome dispatch_batched(const Message& message, Caller& caller, std::string& out);
  void cancel_request(const Message& message);

  // Pushed streams (pushed_streams.cpp).
  [[nodiscard]] bool pushes(const Message& message) const;
  bool handle_notification(const Message& message);
  [[nodiscard]] Result<MemoryHold> memory_for_subscription(std::size_t more) const;
  void run(const Message& message, const StreamMethod& method, std::string& out);
  void subscribe(const Message& message, Caller& asker, std::string& out);
  void unsubscribe(const Message& message, std::string& out);
  bool acknowledge(const Message& message, Caller& asker, std::string& out);
  bool push(std::string_view messages);
  bool push(const Bytes& messages);
  void unsubscribe_later(const StreamId& stream_id, std::uint64_t number);

  // For channels and sinks.
  void forget(const RequestId& id);
  void add_long_answer(Channel& channel);
  void remove_long_answer(const Channel& channel);
  void next_long_answer();
  void let_go_on(LongAnswers& long_ones);
  void send(std::string message);
  void answer(const RequestId& id, std::string message);
  void send_kept();
  void serve_waiting();
  bool may_send_more();
  bool send_framed(const auto& messages) {
    if (output_ == nullptr) return true;
    if (!output_->send_framed(messages)) blocked_ = true;
    return may_send_more();
  }
  [[nodiscard]] bool is_idle() const {
    return pending_.empty() && subscriptions_.empty() && !has_kept() &&
           (rare_ == nullptr || rare_->later == nullptr || rare_->later->empty());
  }
  void check_idle();

  Service* service_;
  Principal principal_;
  const PushedChunkEncoder* encoder_;
  MessageOutput* output_ = nullptr;  // null once the peer has gone
  std::map<StreamId, Subscribed> subscriptions_;
  std::map<RequestId, std::weak_ptr<Channel>> pending_;
  std::size_t pending_bytes_ = 0;  // memory that they take
  CoarseHold pending_hold_;
  std::shared_ptr<Session> agreed_;     // null before `initialize`
  std::weak_ptr<Agreement> agreement_;  // which owns the session
  std::unique_ptr<Rare> rare_;
  std::uint64_t subscribed_ = 0;
  std::uint64_t batches_ = 0;      // the number of batches answered later
  std::uint32_t next_served_ = 0;  // index among those that waited for the output
  bool was_quiet_ = true;          // when the last initialize came, no request was unanswered
  bool blocked_ = false;
  bool takes_turns_ = false;  // serve_waiting() is running
  bool stopped_ = false;      // a sender was told to wait for its next turn
};

}  // namespace sluice
